"""An API server, the scheduler, the controllers and simulated nodes in one event loop.

They are the programs that run in a real cluster, started as coroutines over an in-process
transport. Each can be killed and started again, stopped in mid-step and woken later, and cut off;
the API server can be killed too, and comes back with what its journal has.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from types import TracebackType
from typing import Any

from posse.controllers.program import ControllersConfig
from posse.controllers.program import run as run_controllers
from posse.kube.connection import Connection
from posse.kube.inprocess import AsgiTransport, Message, Receive, Send
from posse.kube.transport import Transport
from posse.local.apiserver.app import ApiServer
from posse.local.apiserver.journal import MemoryJournal, Record
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
from posse.virtual.faults import Line
from posse.virtual.pausing import SERVICE, Pause, pausable_tasks
from posse.world import World

_TOKEN = "virtual"  # noqa: S105 - nobody outside this process can reach the server
_NODE_TOKEN = "virtual-node"  # noqa: S105

Service = Callable[[], Coroutine[Any, Any, None]]
Witness = Callable[[Record], None]
Overhearing = Callable[[str, str, str], None]


class WitnessedJournal(MemoryJournal):
    """Every write is shown to the witnesses the moment it is made."""

    def __init__(self) -> None:
        super().__init__()
        self.witnesses: list[Witness] = []

    def append(self, record: Record) -> asyncio.Future[None]:
        durable = super().append(record)
        for witness in self.witnesses:
            witness(record)
        return durable


class _Tenure:
    """The journal as one life of the API server has it: after its death nothing becomes durable."""

    def __init__(self, journal: MemoryJournal) -> None:
        self.revision = journal.revision
        self.over = False
        self._journal = journal

    def load(self) -> Iterable[Record]:
        return self._journal.load()

    def append(self, record: Record) -> asyncio.Future[None]:
        if self.over:
            return asyncio.get_running_loop().create_future()
        self.revision = record.revision
        return self._journal.append(record)

    def close(self) -> None:
        self.over = True


class VirtualCluster:
    """Use it in an `async with` block; `connection` is a user's.

    `agents`: how many programs share the nodes, `node` and `node-1` and so on.
    """

    def __init__(self, world: World, nodes: list[dict[str, Any]], *, agents: int = 1) -> None:
        self.world = world
        self.journal = WitnessedJournal()
        self.overhearing: list[Overhearing] = []
        """Told service, method and path of each write as it is sent."""
        self._kubelets: dict[str, KubeletApi] = {}
        self._tenure = _Tenure(self.journal)
        self._server: ApiServer | None = None
        self._serving: dict[asyncio.Task[Any], None] = {}
        self._lines: dict[str, Line] = {}
        self._pauses: dict[str, Pause] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self.connection = Connection(self._transport(), world)
        self._services: dict[str, Service] = {
            "core": lambda: run_core(CoreConfig(), self.connect("core"), world)
        }
        for index in range(agents):
            name = f"node-{index}" if index else "node"
            self._services[name] = self._agent(name, nodes[index::agents])
        self._services["controllers"] = self._controllers("controllers")
        self._services["scheduler"] = self._scheduler("scheduler")

    # What a story does with it.

    def connect(self, service: str) -> Connection:
        return Connection(self.line(service), self.world)

    def line(self, service: str) -> Line:
        """The service's line to the API server: the same one before and after a restart."""
        if service not in self._lines:
            self._lines[service] = Line(
                self._transport(), service, lambda m, p: self._overhear(service, m, p)
            )
        return self._lines[service]

    @property
    def services(self) -> list[str]:
        """Those that are running, or stand still."""
        return list(self._tasks)

    def ended(self) -> list[str]:
        """Services that have ended of their own accord, which none may."""
        return [f"{name} has ended" for name, task in self._tasks.items() if task.done()]

    def start(self, service: str) -> None:
        pause = self._pauses[service] = Pause()
        token = SERVICE.set(pause)
        try:
            self._tasks[service] = asyncio.create_task(self._services[service](), name=service)
        finally:
            SERVICE.reset(token)

    def start_standby(self, service: str) -> None:
        """Another scheduler or another controllers, under that name: `scheduler-2`, ..."""
        second = self._scheduler if service.startswith("scheduler") else self._controllers
        self._services[service] = second(service)
        self.start(service)

    async def stop(self, service: str) -> None:
        """The service is told to end, and ends in order."""
        task = self._tasks.pop(service)
        self._pauses.pop(service).end()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def kill(self, service: str) -> None:
        """As kill -9: what was sent arrives, nothing more is."""
        line = self._lines.pop(service, None)
        if line is not None:
            line.kill()
        await self.stop(service)

    def pause(self, service: str) -> None:
        """As SIGSTOP: not a step more, while time goes on."""
        self._pauses[service].begin()

    def resume(self, service: str) -> None:
        self._pauses[service].end()

    async def kill_server(self) -> None:
        """Every connection breaks. What the journal has is what will be known."""
        self._server = None
        self._tenure.close()
        serving = list(self._serving)
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)

    async def start_server(self) -> None:
        self._tenure = _Tenure(self.journal)
        self._server = ApiServer(
            Store(self._tenure),
            self.world,
            tokens={_TOKEN: "system:admin"},
            node_transport=self._node_transport,
        )
        await self._server.start()

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
        asyncio.get_running_loop().set_task_factory(pausable_tasks)
        await self.start_server()
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
        asyncio.get_running_loop().set_task_factory(None)

    # How it is made.

    def _transport(self) -> Transport:
        headers = {"authorization": f"Bearer {_TOKEN}", "host": "localhost"}
        return AsgiTransport(self._serve, headers)

    async def _serve(self, scope: Message, receive: Receive, send: Send) -> None:
        """One request. A server that is away, or goes away, leaves it without an answer."""
        if self._server is None:
            raise asyncio.CancelledError
        task = asyncio.current_task()
        assert task is not None
        self._serving[task] = None
        try:
            await self._server(scope, receive, send)
        finally:
            del self._serving[task]

    def _scheduler(self, name: str) -> Service:
        config = SchedulerConfig(identity=name, claim_all=True)
        return lambda: run_scheduler(config, self.connect(name), self.world)

    def _controllers(self, name: str) -> Service:
        config = ControllersConfig(identity=name)
        return lambda: run_controllers(config, self.connect(name), self.world)

    def _agent(self, name: str, nodes: list[dict[str, Any]]) -> Service:
        config = NodeConfig(nodes=tuple(nodes), token=_NODE_TOKEN)

        def serve_kubelet(api: KubeletApi) -> None:
            self._kubelets.update((node["metadata"]["name"], api) for node in nodes)

        return lambda: run_nodes(config, self.connect(name), self.world, on_api=serve_kubelet)

    def _node_transport(self, node: dict[str, Any]) -> Transport:
        api = self._kubelets.get(node["metadata"]["name"])
        if api is None:
            raise RuntimeError(f"the agent of {node['metadata']['name']} has not started")
        return AsgiTransport(api, {"authorization": f"Bearer {_NODE_TOKEN}"})

    def _overhear(self, service: str, method: str, path: str) -> None:
        for heard in self.overhearing:
            heard(service, method, path)
