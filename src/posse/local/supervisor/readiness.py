"""Is the cluster ready? What is missing has the name of the service that owes it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from posse.controllers.program import LEASE_NAME as CONTROLLERS_LEASE
from posse.kube.connection import Connection
from posse.kube.errors import KubeError, NotFound
from posse.objects.kinds import LEASE, NODE
from posse.objects.nodes import Node
from posse.objects.times import parse_time
from posse.scheduler.config import LEASE_NAME as SCHEDULER_LEASE
from posse.world import World

LEASES = {"scheduler": SCHEDULER_LEASE, "controllers": CONTROLLERS_LEASE}
NAMESPACE = "kube-system"


class Missing(msgspec.Struct, frozen=True):
    service: str
    what: str


async def missing(
    connection: Connection,
    world: World,
    *,
    identity: str,
    nodes: Sequence[str],
    since: float = 0.0,
) -> Missing | None:
    """The first thing that a ready cluster has and this one lacks.

    The store remembers leases and nodes of an earlier life of the cluster: only what was said
    after `since`, in wall seconds, counts.
    """
    try:
        await connection.version()
    except KubeError as error:
        return Missing("apiserver", f"the API server does not answer: {error}")
    try:
        for service, name in LEASES.items():
            if not await _leads(connection, world, name, identity, since):
                return Missing(service, f"the {service} has not taken its lease")
        present = await connection.list(NODE, model=Node)
    except KubeError as error:
        return Missing("apiserver", f"the API server failed: {error}")
    ready = {n.metadata.name for n in present.items if n.ready and _said(n) >= int(since)}
    absent = [name for name in nodes if name not in ready]
    if absent:
        return Missing("node", f"{len(absent)} of {len(nodes)} nodes are not ready: {absent[0]}")
    return None


async def _leads(
    connection: Connection, world: World, name: str, identity: str, since: float
) -> bool:
    try:
        lease = await connection.get(LEASE, name, NAMESPACE)
    except NotFound:
        return False
    spec = lease.get("spec") or {}
    renewed = _wall(spec.get("renewTime"))
    lasting = float(spec.get("leaseDurationSeconds") or 0)
    alive = renewed >= since and renewed + lasting > world.now()
    return alive and spec.get("holderIdentity") == identity


def _said(node: Node) -> float:
    """When the node's agent last said that it is ready."""
    for condition in node.status.conditions:
        if condition.type == "Ready":
            return _wall(condition.last_heartbeat_time)
    return 0.0


def _wall(text: str | None) -> float:
    try:
        return parse_time(text) if text else 0.0
    except ValueError:
        return 0.0
