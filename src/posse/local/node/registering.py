"""Nodes announce themselves and keep their status true.

Labels, taints and cordons that others set on a node stay. A node that somebody deletes stays
deleted until the agent is started again, as with a kubelet.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

from posse.controllers.runtime import WorkQueue
from posse.kube.cache import Cache, Change
from posse.kube.connection import Connection, Patch
from posse.kube.errors import AlreadyExists, KubeError, NotFound
from posse.local.node.manifests import reported_status
from posse.objects.kinds import NODE
from posse.objects.times import rfc3339
from posse.world import World

log = logging.getLogger(__name__)

Manifest = dict[str, Any]

WORKERS = 16


class Registrar:
    def __init__(
        self,
        connection: Connection,
        world: World,
        nodes: Sequence[Manifest],
        *,
        port: int,
        every: float = 300.0,
    ) -> None:
        self._connection = connection
        self._world = world
        self._nodes = {node["metadata"]["name"]: node for node in nodes}
        self._port = port
        self._every = every
        self._due: dict[str, float] = {}  # monotonic time of the next status without a change
        self._queue: WorkQueue[str] = WorkQueue(world)
        self.cache: Cache[Manifest] = Cache(
            connection, NODE, dict[str, Any], on_change=self._changed
        )

    def present(self, name: str) -> Manifest | None:
        return self.cache.get("", name)

    async def register(self) -> None:
        """Every node is there with our labels when this returns; an absent server is waited for."""
        waiting: dict[str, None] = dict.fromkeys(self._nodes)

        async def worker() -> None:
            while waiting:
                name = next(iter(waiting))
                del waiting[name]
                await self._register(name)

        async with asyncio.TaskGroup() as tasks:
            for _ in range(WORKERS):
                tasks.create_task(worker())

    async def run(self) -> None:
        """Keep the statuses true. The cache runs with it."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self.cache.run())
                await self.cache.synced()
                for name in self._nodes:
                    self._queue.add(name)
                for _ in range(WORKERS):
                    tasks.create_task(self._work())
        finally:
            self._queue.close()

    async def _register(self, name: str) -> None:
        node = self._nodes[name]
        pause = 0.1
        while True:
            try:
                now = rfc3339(self._world.now())
                whole = {**node, "status": reported_status(node, port=self._port, now=now)}
                try:
                    await self._connection.create(NODE, whole)
                    self._due[name] = self._world.monotonic() + self._world.jitter(self._every)
                except AlreadyExists:
                    labels = {"metadata": {"labels": node["metadata"]["labels"]}}
                    await self._connection.patch(NODE, name, labels)
            except KubeError as error:
                log.warning("node %s was not registered: %s", name, error)
                await asyncio.sleep(self._world.jitter(pause))
                pause = min(pause * 2, 5.0)
            else:
                return

    def _changed(self, change: Change[Manifest]) -> None:
        if change.new is not None and change.new["metadata"]["name"] in self._nodes:
            self._queue.add(change.new["metadata"]["name"])

    async def _work(self) -> None:
        while True:
            name = await self._queue.take()
            try:
                await self._post(name)
            except KubeError as error:
                delay = self._queue.retry(name)
                log.warning("status of node %s: %s; again in %.1fs", name, error, delay)
            else:
                self._queue.forget(name)
            finally:
                self._queue.done(name)

    async def _post(self, name: str) -> None:
        node = self.cache.get("", name)
        if node is None:
            return
        monotonic = self._world.monotonic()
        wanted = reported_status(self._nodes[name], port=self._port, now=rfc3339(self._world.now()))
        same = _same(node.get("status") or {}, wanted)
        # An agent that has just come speaks up, whatever an earlier one has said.
        due = self._due.get(name, monotonic)
        if same and monotonic < due:
            self._queue.add_after(name, due - monotonic)
            return
        _keep_transitions(wanted["conditions"], (node.get("status") or {}).get("conditions") or [])
        try:
            await self._connection.patch(
                NODE,
                name,
                {"metadata": {"uid": node["metadata"]["uid"]}, "status": wanted},
                how=Patch.STRATEGIC,
                subresource="status",
            )
        except NotFound:
            return
        self._due[name] = monotonic + self._world.jitter(self._every)
        self._queue.add_after(name, self._due[name] - monotonic)


def _same(current: Manifest, wanted: Manifest) -> bool:
    """Times aside, the API server shows what this agent would say."""
    statuses = {c.get("type"): c.get("status") for c in current.get("conditions") or []}
    return all(statuses.get(c["type"]) == c["status"] for c in wanted["conditions"]) and all(
        current.get(k) == v for k, v in wanted.items() if k != "conditions"
    )


def _keep_transitions(wanted: list[Manifest], current: list[Manifest]) -> None:
    had = {c.get("type"): c for c in current}
    for condition in wanted:
        known = had.get(condition["type"], {})
        if known.get("status") == condition["status"] and known.get("lastTransitionTime"):
            condition["lastTransitionTime"] = known["lastTransitionTime"]
