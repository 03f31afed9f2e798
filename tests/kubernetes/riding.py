"""Stories on a real control plane: our services and simulated nodes, in real time.

What kube-controller-manager does is done by kube-controller-manager. A story has a namespace of
its own; nodes belong to the whole cluster, so one story rides at a time and leaves none behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from posse.controllers.program import ControllersConfig
from posse.controllers.program import run as run_controllers
from posse.kube.connection import Connection
from posse.kube.errors import NotFound
from posse.kube.http import HttpTransport
from posse.kube.transport import Transport
from posse.local.node.kubelet import KubeletApi
from posse.local.node.program import NodeConfig
from posse.local.node.program import run as run_nodes
from posse.local.node.serving import listen, serve
from posse.objects import kinds
from posse.scheduler.config import SchedulerConfig
from posse.scheduler.program import run as run_scheduler
from posse.virtual.faults import Line
from posse.world import World
from tests.kubernetes.plane import ADMIN, SYSTEM, Plane
from tests.kubernetes.remembering import Memory

CLAIMS = ("posse", "volcano", "kube-batch")
# As long as nothing is watched to happen where each second is one.
PATIENCE = 3.0
_TOKEN = "between-the-agent-and-its-own-door"

Service = Callable[[], Coroutine[Any, Any, None]]


class RealRide:
    """Our services as coroutines, each with the identity that an installation gives it."""

    def __init__(self, plane: Plane, nodes: list[dict[str, Any]], namespace: str) -> None:
        self.namespace = namespace
        self.world = World.real()
        self._plane = plane
        self._nodes = nodes
        self._connections: list[Connection] = []
        self.lines: dict[str, Line] = {}
        self.memories: dict[str, Memory] = {}
        """The way of each service to the API server, and what it remembers: a story spoils them."""
        self.connection = self.connect()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._services: dict[str, Service] = {
            "node": self._run_nodes,
            "controllers": lambda: run_controllers(
                ControllersConfig(identity="controllers", namespace=SYSTEM),
                self.connect("posse-controllers", "controllers"),
                self.world,
            ),
            "scheduler": lambda: run_scheduler(
                SchedulerConfig(identity="scheduler", namespace=SYSTEM, claims=CLAIMS),
                self.connect("posse-scheduler", "scheduler"),
                self.world,
            ),
        }

    def connect(self, user: str = ADMIN, service: str = "") -> Connection:
        """As a user; a connection of a service goes over a line of its own."""
        transport: Transport = HttpTransport(self._plane.settings(user), self.world)
        if service:
            transport = self.memories[service] = Memory(transport)
            transport = self.lines[service] = Line(transport, service, lambda *_: None)
        self._connections.append(Connection(transport, self.world))
        return self._connections[-1]

    def start(self, service: str) -> None:
        self._tasks[service] = asyncio.create_task(self._services[service](), name=service)

    async def stop(self, service: str) -> None:
        task = self._tasks.pop(service)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def until(
        self, holds: Callable[[], Awaitable[bool]], what: str, within: float = 60.0
    ) -> None:
        deadline = self.world.monotonic() + within
        while not await holds():
            for name, task in self._tasks.items():
                if task.done():
                    raise RuntimeError(f"{name} has ended") from task.exception()
            if self.world.monotonic() > deadline:
                raise TimeoutError(f"after {within:g}s still not: {what}")
            await asyncio.sleep(0.1)

    async def linger(self, seconds: float) -> None:
        await asyncio.sleep(min(seconds, PATIENCE))

    async def begin(self, services: tuple[str, ...]) -> None:
        await self.connection.create(kinds.NAMESPACE, {"metadata": {"name": self.namespace}})

        async def accounted() -> bool:
            try:
                await self.connection.get(kinds.SERVICE_ACCOUNT, "default", self.namespace)
            except NotFound:
                return False
            return True

        await self.until(accounted, "the namespace has its service account")
        # Whoever led in another story is gone, and may not have said so.
        await self.connection.delete_collection(kinds.LEASE, SYSTEM)
        for service in services:
            self.start(service)

    async def end(self) -> None:
        """Nothing of the story is left that the next one could see."""
        for service in reversed(list(self._tasks)):
            await self.stop(service)
        await self.connection.delete(kinds.NAMESPACE, self.namespace)
        # Pods of a Job carry a finalizer, which is taken off at once only where the Job is gone.
        await self.connection.delete_collection(kinds.JOB, self.namespace, propagation="Background")
        for node in self._nodes:
            try:
                await self.connection.delete(kinds.NODE, node["metadata"]["name"])
            except NotFound:
                continue
        await self.until(self._podless, "no pod is left")
        for connection in self._connections:
            await connection.close()

    async def _podless(self) -> bool:
        """Nobody confirms the end of pods any more, so they are struck off without asking."""
        await self.connection.delete_collection(kinds.POD, self.namespace, grace=0)
        return not (await self.connection.list(kinds.POD, self.namespace)).items

    async def _run_nodes(self) -> None:
        """The agent; the API server's kubelet client signs with a certificate, not with a token."""
        bound = listen(0)
        certificate, key = self._plane.kubelet_certificate()
        doors: list[asyncio.Task[None]] = []

        def open_door(api: KubeletApi) -> None:
            served = serve(_signed(api), bound, certificate=certificate, key=key)
            doors.append(asyncio.create_task(served))

        config = NodeConfig(
            nodes=tuple(self._nodes), token=_TOKEN, kubelet_port=bound.getsockname()[1]
        )
        try:
            await run_nodes(config, self.connect(ADMIN, "node"), self.world, on_api=open_door)
        finally:
            for door in doors:
                door.cancel()
            await asyncio.gather(*doors, return_exceptions=True)
            bound.close()


class RealBackend:
    def __init__(
        self, plane: Plane, services: tuple[str, ...] = ("node", "controllers", "scheduler")
    ) -> None:
        self._plane = plane
        self._services = services

    @asynccontextmanager
    async def riding(self, nodes: list[dict[str, Any]]) -> AsyncIterator[RealRide]:
        ride = RealRide(self._plane, nodes, f"story-{World.real().suffix(8)}")
        try:
            await ride.begin(self._services)
            yield ride
        finally:
            await ride.end()


def _signed(api: KubeletApi) -> Any:
    async def door(scope: Any, receive: Any, send: Any) -> None:
        headers = [*scope.get("headers", ()), (b"authorization", f"Bearer {_TOKEN}".encode())]
        await api({**scope, "headers": headers}, receive, send)

    return door
