"""Leases that say: this node's agent lives.

One renewal per node and period, spread evenly over the period and sent in small groups, so that a
thousand nodes are a steady trickle and never a burst.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any

from posse.kube.connection import Connection
from posse.kube.errors import AlreadyExists, KubeError, NotFound
from posse.objects.kinds import LEASE, NODE
from posse.objects.times import rfc3339_micro
from posse.world import World

log = logging.getLogger(__name__)

NAMESPACE = "kube-node-lease"
SLOTS = 10
AT_ONCE = 16

Manifest = dict[str, Any]


class Heartbeats:
    """`present` gives the Node object while it exists: a deleted node has no heartbeat."""

    def __init__(
        self,
        connection: Connection,
        world: World,
        names: Sequence[str],
        present: Callable[[str], Manifest | None],
        *,
        every: float = 10.0,
        lasting: int = 40,
    ) -> None:
        self._connection = connection
        self._world = world
        self._names = tuple(names)
        self._present = present
        self._every = every
        self._lasting = lasting
        self._gate = asyncio.Semaphore(AT_ONCE)

    async def run(self) -> None:
        await self._beat(self._names)
        while True:
            for slot in range(SLOTS):
                await asyncio.sleep(self._every / SLOTS)
                await self._beat(self._names[slot::SLOTS])

    async def _beat(self, names: Sequence[str]) -> None:
        async with asyncio.TaskGroup() as tasks:
            for name in names:
                tasks.create_task(self._renew(name))

    async def _renew(self, name: str) -> None:
        node = self._present(name)
        if node is None:
            return
        async with self._gate:
            renewed = rfc3339_micro(self._world.now())
            try:
                try:
                    await self._connection.patch(
                        LEASE, name, {"spec": {"renewTime": renewed}}, NAMESPACE
                    )
                except NotFound:
                    await self._connection.create(
                        LEASE, self._lease(node, name, renewed), NAMESPACE
                    )
            except AlreadyExists:
                log.debug("the lease of %s was made by somebody else just now", name)
            except KubeError as error:
                # The next beat comes soon; a lease outlasts several missed ones.
                log.warning("the lease of %s was not renewed: %s", name, error)

    def _lease(self, node: Manifest, name: str, renewed: str) -> Manifest:
        owner = {
            "apiVersion": NODE.api_version,
            "kind": NODE.kind,
            "name": name,
            "uid": node["metadata"]["uid"],
        }
        return {
            "apiVersion": LEASE.api_version,
            "kind": LEASE.kind,
            "metadata": {"name": name, "namespace": NAMESPACE, "ownerReferences": [owner]},
            "spec": {
                "holderIdentity": name,
                "leaseDurationSeconds": self._lasting,
                "renewTime": renewed,
            },
        }
