"""Marks a pod as disrupted by the scheduler: its controller must not count that as a failure."""

from __future__ import annotations

from posse.kube.connection import Connection, Patch
from posse.objects.kinds import POD
from posse.objects.times import rfc3339
from posse.scheduler.reading.pods import DISRUPTED
from posse.world import World


async def mark_disrupted(
    connection: Connection,
    world: World,
    *,
    namespace: str,
    name: str,
    uid: str,
    reason: str,
    why: str,
    status: str = "True",
) -> None:
    """Status "False" takes the mark back."""
    condition = {
        "type": DISRUPTED,
        "status": status,
        "reason": reason,
        "message": why,
        "lastTransitionTime": rfc3339(world.now()),
    }
    await connection.patch(
        POD,
        name,
        {"metadata": {"uid": uid}, "status": {"conditions": [condition]}},
        namespace,
        how=Patch.STRATEGIC,
        subresource="status",
    )
