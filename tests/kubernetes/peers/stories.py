"""What stories about other people's operators ask of a cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from posse.local.node.manifests import simulated
from posse.objects import kinds
from posse.objects.groups import PodGroup
from posse.objects.kinds import Kind
from posse.objects.pods import Pod
from tests.kubernetes.peers.operators import Operators
from tests.kubernetes.riding import RealBackend, RealRide


@asynccontextmanager
async def cluster(operators: Operators, nodes: int, gpus: int) -> AsyncIterator[RealRide]:
    """Simulated nodes and our scheduler, without our controllers."""
    capacity = {"nvidia.com/gpu": str(gpus), "ephemeral-storage": "100Gi"}
    made = [
        simulated({"metadata": {"name": f"node-{index}"}, "status": {"capacity": capacity}})
        for index in range(nodes)
    ]
    async with RealBackend(operators.plane, ("node", "scheduler")).riding(made) as running:
        yield running


async def conditions(running: RealRide, kind: Kind, name: str) -> dict[str, str]:
    found = await running.connection.get(kind, name, running.namespace)
    items = (found.get("status") or {}).get("conditions") or []
    return {item["type"]: item["status"] for item in items}


async def succeeds(running: RealRide, kind: Kind, name: str) -> None:
    async def succeeded() -> bool:
        now = await conditions(running, kind, name)
        assert now.get("Failed") != "True", f"{name} has failed"
        return now.get("Succeeded") == "True"

    await running.until(succeeded, f"{kind.kind} {name} has succeeded")


async def pods(running: RealRide, name: str) -> list[Pod]:
    listed = await running.connection.list(kinds.POD, running.namespace, model=Pod)
    return [pod for pod in listed.items if pod.metadata.name.startswith(f"{name}-")]


async def seated(running: RealRide, name: str) -> int:
    return sum(1 for pod in await pods(running, name) if pod.spec.node_name)


async def verdict(running: RealRide, name: str) -> str:
    """Why the gang waits: its PodGroup says it, and in dialects that cannot, each of its pods."""
    listed = await running.connection.list(kinds.POD_GROUP, running.namespace, model=PodGroup)
    groups = [group for group in listed.items if group.metadata.name.startswith(name)]
    told = [condition for group in groups for condition in group.status.conditions]
    if not groups:
        told = [said for pod in await pods(running, name) for said in pod.status.conditions]
    waits = (("Unschedulable", "True"), ("PodScheduled", "False"))
    found = [one.message for one in told if (one.type, one.status) in waits]
    return found[0] if found else ""


async def run(running: RealRide, name: str, members: int) -> None:
    """Until so many pods of the job run."""

    async def all_of_them() -> bool:
        found = await pods(running, name)
        return [pod.status.phase for pod in found] == ["Running"] * members

    await running.until(all_of_them, f"{members} pods of {name} run")


async def waits_whole(running: RealRide, name: str, members: int) -> None:
    """Every pod is there, none has a node, and the group says what is short."""

    async def waits() -> bool:
        there = len(await pods(running, name)) == members
        return there and "GPUs" in await verdict(running, name)

    await running.until(waits, f"{name} waits for GPUs")
    await running.linger(2)
    assert await seated(running, name) == 0
