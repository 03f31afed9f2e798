"""Who owns whom, over all kinds, by uid.

Pure: watches feed it, the collector asks it. Owners that no watch has shown may appear as uids in
references only; what becomes of those is for a live look to decide.
"""

from __future__ import annotations

import msgspec

from posse.objects.kinds import Kind
from posse.objects.meta import ObjectMeta, OwnerReference

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"


class Tracked(msgspec.Struct):
    """Any object, read for its metadata alone."""

    metadata: ObjectMeta


class Entry(msgspec.Struct, frozen=True):
    kind: Kind
    meta: ObjectMeta

    @property
    def uid(self) -> str:
        return self.meta.uid

    @property
    def waits_for_dependents(self) -> bool:
        return self.meta.deleting and FOREGROUND in self.meta.finalizers

    @property
    def lets_dependents_go(self) -> bool:
        return self.meta.deleting and ORPHAN in self.meta.finalizers

    def is_meant_by(self, reference: OwnerReference, namespace: str) -> bool:
        """The reference, in an object of that namespace, names this very object."""
        group = reference.api_version.rpartition("/")[0]
        return (
            reference.uid == self.uid
            and (group, reference.kind) == (self.kind.group, self.kind.kind)
            and reference.name == self.meta.name
            and self.meta.namespace in ("", namespace)
        )


class Graph:
    def __init__(self) -> None:
        self.objects: dict[str, Entry] = {}
        self._dependents: dict[str, dict[str, None]] = {}

    def put(self, entry: Entry) -> None:
        self._unlink(entry.uid)
        self.objects[entry.uid] = entry
        for reference in entry.meta.owner_references:
            self._dependents.setdefault(reference.uid, {})[entry.uid] = None

    def remove(self, uid: str) -> None:
        self._unlink(uid)
        self.objects.pop(uid, None)

    def dependents(self, uid: str) -> list[Entry]:
        """Everything that names `uid` as an owner, in the order in which it was first seen."""
        return [self.objects[dependent] for dependent in self._dependents.get(uid, {})]

    def blocking(self, uid: str) -> list[Entry]:
        """The dependents for which a foreground deletion of `uid` waits."""
        return [
            entry
            for entry in self.dependents(uid)
            if any(r.uid == uid and r.block_owner_deletion for r in entry.meta.owner_references)
        ]

    def _unlink(self, uid: str) -> None:
        known = self.objects.get(uid)
        if known is None:
            return
        for reference in known.meta.owner_references:
            siblings = self._dependents.get(reference.uid)
            if siblings is not None:
                siblings.pop(uid, None)
                if not siblings:
                    del self._dependents[reference.uid]
