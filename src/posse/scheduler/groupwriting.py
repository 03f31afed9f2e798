"""Writes the status of PodGroups, wherever their API keeps it.

Ours keep it apart, as a subresource. Volcano's and kube-batch's own definitions do not: there it is
written with the rest of the object, and whoever asks for it apart is told that there is no such
thing.
"""

from __future__ import annotations

from typing import Any

from posse.kube.connection import Connection
from posse.kube.errors import NotFound
from posse.objects.groups import PodGroup
from posse.objects.kinds import Kind


class GroupWriter:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        # Kinds whose status is a part of the object like any other.
        self._whole: dict[Kind, None] = {}

    async def status(
        self, kind: Kind, name: str, namespace: str, uid: str, status: dict[str, Any]
    ) -> PodGroup:
        """Merges `status` into that of the PodGroup which has this uid."""
        patch = {"metadata": {"uid": uid}, "status": status}
        if kind not in self._whole:
            try:
                return await self._connection.patch(
                    kind, name, patch, namespace, subresource="status", model=PodGroup
                )
            except NotFound:
                if await self._kept_apart(kind):
                    raise
                self._whole[kind] = None
        return await self._connection.patch(kind, name, patch, namespace, model=PodGroup)

    async def _kept_apart(self, kind: Kind) -> bool:
        served = await self._connection.resources(kind.group, kind.version)
        return any(resource.get("name") == f"{kind.plural}/status" for resource in served)
