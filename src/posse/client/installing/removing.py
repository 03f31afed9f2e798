"""Taking an installation away: its programs, roles and webhooks; what people made stays.

Definitions, Queues, PodGroups and jobs stay, and so do the priority classes that jobs name. With
`purge` the definitions that Posse brought go too, and with them every object of those kinds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from posse.client.errors import PosseError
from posse.client.installing.applying import remove
from posse.client.installing.inventory import INVENTORY, kind_of
from posse.client.installing.marking import MANAGED_BY, SELECTOR, labels_of
from posse.client.installing.precedence import CRITICAL
from posse.kube.connection import Connection
from posse.kube.errors import NotFound
from posse.objects.kinds import (
    CUSTOM_RESOURCE_DEFINITION,
    DEPLOYMENT,
    PRIORITY_CLASS,
    QUEUE,
    Kind,
)

_LONGEST_END = 30.0
_LOOK_EVERY = 0.2


class Leaving(msgspec.Struct, frozen=True):
    kind: Kind
    obj: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.kind.singular}/{self.obj['metadata']['name']}"


async def leavings(connection: Connection, *, purge: bool) -> list[Leaving]:
    """What would be removed, in order; PosseError where that is somebody else's to do."""
    found: list[Leaving] = []
    for kind in reversed(INVENTORY):
        try:
            marked = (await connection.list(kind, labels=SELECTOR)).items
        except NotFound:
            continue  # not every cluster serves every kind
        found += [
            Leaving(kind, obj)
            for obj in marked
            if (purge or not outlives(obj)) and not obj["metadata"].get("deletionTimestamp")
        ]
    if any(
        one.kind == DEPLOYMENT and labels_of(one.obj).get(MANAGED_BY) == "Helm" for one in found
    ):
        raise PosseError("Posse was installed here with Helm; let Helm uninstall it")
    return found


async def uninstall(
    connection: Connection, found: list[Leaving], say: Callable[[str], None]
) -> None:
    """Definitions take their objects with them, which takes a moment; it is waited for, so that
    an installation may follow at once."""
    for one in found:
        gone = await remove(connection, one.kind, one.obj)
        say(f"{one} {'removed' if gone else 'was gone'}")
    deadline = connection.world.monotonic() + _LONGEST_END
    for one in found:
        if one.kind == CUSTOM_RESOURCE_DEFINITION and not await _ended(connection, one, deadline):
            say(f"{one} is still on its way out: some of its objects have finalizers")


async def _ended(connection: Connection, one: Leaving, deadline: float) -> bool:
    meta = one.obj["metadata"]
    while True:
        try:
            now = await connection.get(one.kind, meta["name"])
        except NotFound:
            return True
        if now["metadata"]["uid"] != meta["uid"]:
            return True
        if connection.world.monotonic() >= deadline:
            return False
        await asyncio.sleep(_LOOK_EVERY)


def outlives(obj: dict[str, Any]) -> bool:
    """Whether jobs that stay would miss it."""
    kind = kind_of(obj)
    if kind == PRIORITY_CLASS:
        return bool(obj["metadata"]["name"] != CRITICAL)
    return kind in (CUSTOM_RESOURCE_DEFINITION, QUEUE)
