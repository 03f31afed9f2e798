"""An API server, the scheduler, the controllers and simulated nodes in one event loop.

They are the programs that run in a real cluster, started as coroutines over an in-process
transport; each can be stopped and started again, as a crash would.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from types import TracebackType
from typing import Any

from posse.controllers.program import ControllersConfig
from posse.controllers.program import run as run_controllers
from posse.kube.connection import Connection
from posse.kube.inprocess import AsgiTransport
from posse.kube.transport import Transport
from posse.local.apiserver.app import ApiServer
from posse.local.apiserver.journal import MemoryJournal
from posse.local.apiserver.store import Store
from posse.local.core.program import CoreConfig
from posse.local.core.program import run as run_core
from posse.local.node.kubelet import KubeletApi
from posse.local.node.program import NodeConfig
from posse.local.node.program import run as run_nodes
from posse.objects import kinds
from posse.objects.crds import definitions
from posse.scheduler.config import SchedulerConfig
from posse.scheduler.program import run as run_scheduler
from posse.world import World

_TOKEN = "virtual"  # noqa: S105 - nobody outside this process can reach the server
_NODE_TOKEN = "virtual-node"  # noqa: S105

Service = Callable[[], Coroutine[Any, Any, None]]


class VirtualCluster:
    """Use it in an `async with` block; `connection` is a user's."""

    def __init__(self, world: World, nodes: list[dict[str, Any]]) -> None:
        self.world = world
        self.journal = MemoryJournal()
        self._kubelet: KubeletApi | None = None
        self._server = ApiServer(
            Store(self.journal),
            world,
            tokens={_TOKEN: "system:admin"},
            node_transport=self._node_transport,
        )
        self.connection = self.connect()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._services: dict[str, Service] = {
            "core": lambda: run_core(CoreConfig(), self.connect(), world),
            "node": lambda: run_nodes(
                NodeConfig(nodes=tuple(nodes), token=_NODE_TOKEN),
                self.connect(),
                world,
                on_api=self._serve_kubelet,
            ),
            "controllers": lambda: run_controllers(
                ControllersConfig(identity="controllers"), self.connect(), world
            ),
            "scheduler": lambda: run_scheduler(
                SchedulerConfig(identity="scheduler", claim_all=True), self.connect(), world
            ),
        }

    def connect(self) -> Connection:
        headers = {"authorization": f"Bearer {_TOKEN}", "host": "localhost"}
        return Connection(AsgiTransport(self._server, headers), self.world)

    def start(self, service: str) -> None:
        self._tasks[service] = asyncio.create_task(self._services[service](), name=service)

    async def stop(self, service: str) -> None:
        """As sudden as a crash: nothing is released, nothing is said."""
        task = self._tasks.pop(service)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def until(
        self, holds: Callable[[], Awaitable[bool]], what: str, within: float = 120.0
    ) -> None:
        """Wait, on the cluster's own time, until something holds."""
        deadline = self.world.monotonic() + within
        while not await holds():
            for name, task in self._tasks.items():
                if task.done():
                    raise RuntimeError(f"{name} has ended") from task.exception()
            if self.world.monotonic() > deadline:
                raise TimeoutError(f"after {within:g}s still not: {what}")
            await asyncio.sleep(0.05)

    async def __aenter__(self) -> VirtualCluster:
        await self._server.start()
        for definition in definitions():
            await self.connection.create(kinds.CUSTOM_RESOURCE_DEFINITION, definition)
        for service in self._services:
            self.start(service)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for service in reversed(list(self._tasks)):
            await self.stop(service)
        await self.connection.close()

    def _serve_kubelet(self, api: KubeletApi) -> None:
        self._kubelet = api

    def _node_transport(self, node: dict[str, Any]) -> Transport:
        if self._kubelet is None:
            raise RuntimeError(f"the agent of {node['metadata']['name']} has not started")
        return AsgiTransport(self._kubelet, {"authorization": f"Bearer {_NODE_TOKEN}"})
