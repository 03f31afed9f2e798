"""A bystander who sees every pod as the API server tells it, and minds what may never be."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from posse.kube.cache import Cache, Change
from posse.objects import kinds, quantity
from posse.objects.nodes import Node
from posse.objects.pods import Pod
from posse.objects.requests import pod_requests
from tests.kubernetes.riding import RealRide


class Bystander:
    def __init__(self, ride: RealRide, nodes: list[Node]) -> None:
        self.violations: list[str] = []
        self._room = {
            node.metadata.name: {
                resource: quantity.base_units(resource, amount, resource)
                for resource, amount in node.status.allocatable.items()
            }
            for node in nodes
        }
        self._moved = asyncio.Event()
        self.cache = Cache(
            ride.connect(), kinds.POD, Pod, namespace=ride.namespace, on_change=self._see
        )

    async def first_seated(self, gang: str) -> int:
        """Waits for the gang's first pod that has a node; says how many have one by then."""
        while not (count := self.seated(gang)):
            self._moved.clear()
            async with asyncio.timeout(60):
                await self._moved.wait()
        return count

    def seated(self, gang: str) -> int:
        pods = self.cache.objects.values()
        return sum(1 for pod in pods if pod.metadata.name.startswith(f"{gang}-") and _seat(pod))

    def _see(self, change: Change[Pod]) -> None:
        old, new = change.old, change.new
        self._moved.set()
        if new is None or not _seat(new):
            return
        if old is not None and _seat(old) and _seat(old) != _seat(new):
            self.violations.append(f"{new.metadata.name} went from {_seat(old)} to {_seat(new)}")
        node = _seat(new)
        used: Counter[str] = Counter()
        # The cache may not hold the new one yet.
        mates = self.cache.objects | {new.key: new}
        for pod in mates.values():
            if _seat(pod) == node and pod.status.phase not in ("Succeeded", "Failed"):
                used.update(pod_requests(pod.spec))
                used["pods"] += 1
        for resource, amount in used.items():
            if amount > self._room[node].get(resource, 0):
                self.violations.append(f"{node}: {amount} {resource} are asked of it")


@asynccontextmanager
async def bystander(ride: RealRide) -> AsyncIterator[Bystander]:
    nodes = await ride.connection.list(kinds.NODE, model=Node)
    standing = Bystander(ride, nodes.items)
    watching = asyncio.create_task(standing.cache.run())
    try:
        await standing.cache.synced()
        yield standing
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


def _seat(pod: Pod) -> str:
    return pod.spec.node_name or ""
