"""Creating an owned object exactly once, whatever the cache shows and whatever answer is lost."""

from __future__ import annotations

from posse.kube.connection import Connection
from posse.kube.errors import AlreadyExists, Conflict, NotFound, Unreachable
from posse.objects.kinds import Kind
from posse.objects.ownership import (
    Manifest,
    controlled_by,
    controller_of,
    metadata_of,
    uid_of,
)


class ForeignObjectError(Exception):
    """An object of this name is there and belongs to somebody else, or is on its way out."""

    def __init__(self, kind: Kind, obj: Manifest) -> None:
        self.kind = kind
        self.obj = obj
        metadata = metadata_of(obj)
        self.ending = bool(metadata.get("deletionTimestamp"))
        owner = controller_of(obj)
        whose = f"{owner.get('kind')} {owner.get('name')}" if owner else "nobody"
        super().__init__(
            f"{kind.kind} {metadata.get('name')} is there already and belongs to {whose}"
            + (", it is being deleted" if self.ending else "")
        )


async def create_owned(connection: Connection, kind: Kind, obj: Manifest) -> Manifest:
    """Create `obj`, which names its controller; an earlier creation of it counts as this one.

    Raises ForeignObjectError when the name is taken by an object of another owner, and also by one
    of ours that is being deleted: its replacement has to wait until it is gone.
    """
    metadata = metadata_of(obj)
    owner = controller_of(obj)
    try:
        return await connection.create(kind, obj, metadata.get("namespace") or "")
    except AlreadyExists:
        present = await connection.get(kind, metadata["name"], metadata.get("namespace") or "")
    except Unreachable:
        # The answer was lost, not necessarily the write: the name tells.
        if not metadata.get("name"):
            raise
        try:
            present = await connection.get(kind, metadata["name"], metadata.get("namespace") or "")
        except NotFound:
            return await connection.create(kind, obj, metadata.get("namespace") or "")
    if owner is None or not controlled_by(present, str(owner.get("uid"))):
        raise ForeignObjectError(kind, present)
    if metadata_of(present).get("deletionTimestamp"):
        raise ForeignObjectError(kind, present)
    return present


async def delete_exactly(connection: Connection, kind: Kind, obj: Manifest) -> bool:
    """Delete this very object and no later one of its name; False when it was gone already."""
    metadata = metadata_of(obj)
    try:
        await connection.delete(
            kind,
            metadata["name"],
            metadata.get("namespace") or "",
            uid=uid_of(obj),
            propagation="Background",
        )
    except (NotFound, Conflict):
        return False
    return True
