"""An API server in this event loop, with core and node agents beside it, on virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from posse.kube.connection import Connection
from posse.kube.errors import NotFound
from posse.kube.inprocess import AsgiTransport
from posse.kube.transport import Transport
from posse.local.apiserver.app import ApiServer
from posse.local.apiserver.journal import MemoryJournal
from posse.local.apiserver.store import Store
from posse.local.core.program import CoreConfig
from posse.local.core.program import run as run_core
from posse.local.node.kubelet import KubeletApi
from posse.local.node.manifests import simulated_nodes
from posse.local.node.program import NodeConfig
from posse.local.node.program import run as run_nodes
from posse.objects.kinds import POD, Kind
from posse.virtual.world import virtual_world

Manifest = dict[str, Any]


class Embedded:
    def __init__(self, nodes: list[Manifest]) -> None:
        self.world = virtual_world(7)
        self.nodes = nodes
        self.journal = MemoryJournal()
        self.kubelet: KubeletApi | None = None
        self._server = ApiServer(
            Store(self.journal), self.world, {"t": "system:admin"}, self._node_transport
        )
        self.connection = self.connect()
        self.cut = False  # the programs, not their user, find no API server
        self._running: dict[str, asyncio.Task[None]] = {}

    def connect(self) -> Connection:
        headers = {"authorization": "Bearer t", "host": "localhost"}
        return Connection(AsgiTransport(self._server, headers), self.world)

    def _node_transport(self, node: Manifest) -> Transport:
        assert self.kubelet is not None
        return AsgiTransport(self.kubelet, {"authorization": "Bearer k"})

    def connect_program(self) -> Connection:
        headers = {"authorization": "Bearer t", "host": "localhost"}
        return Connection(AsgiTransport(self._cuttable, headers), self.world)

    async def _cuttable(self, scope: Any, receive: Any, send: Any) -> None:
        """As a server that is gone: new requests fail, open watches end."""
        if self.cut:
            raise ConnectionResetError("the API server is gone")
        serving = asyncio.create_task(self._server(scope, receive, send))
        try:
            while not serving.done() and not self.cut:
                await asyncio.wait((serving,), timeout=1.0)
            if not serving.done():
                raise ConnectionResetError("the API server is gone")
            serving.result()
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)

    def start(self, name: str) -> None:
        programs: dict[str, Callable[[], Coroutine[Any, Any, None]]] = {
            "core": lambda: run_core(CoreConfig(), self.connect_program(), self.world),
            "node": lambda: run_nodes(
                NodeConfig(nodes=tuple(self.nodes), token="k"),
                self.connect_program(),
                self.world,
                on_api=self._serve,
            ),
        }
        self._running[name] = asyncio.create_task(programs[name](), name=name)

    async def stop(self, name: str) -> None:
        task = self._running.pop(name)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def stop_all(self) -> None:
        for name in reversed(list(self._running)):
            await self.stop(name)

    def _serve(self, api: KubeletApi) -> None:
        self.kubelet = api

    async def until(self, holds: Callable[[], Awaitable[Any]], within: float = 60.0) -> Any:
        """What `holds` gives as soon as that is something."""
        deadline = self.world.monotonic() + within
        while True:
            if found := await holds():
                return found
            for task in self._running.values():
                if task.done():
                    task.result()
            if self.world.monotonic() > deadline:
                raise AssertionError(f"not within {within:g}s: {holds}")
            await asyncio.sleep(0.1)

    async def find(self, kind: Kind, name: str, namespace: str = "default") -> Manifest | None:
        try:
            found: Manifest = await self.connection.get(kind, name, namespace)
        except NotFound:
            return None
        return found

    async def gone(self, kind: Kind, name: str, namespace: str = "default") -> bool:
        return await self.find(kind, name, namespace) is None

    async def all(self, kind: Kind, namespace: str = "default") -> list[Manifest]:
        found: list[Manifest] = (await self.connection.list(kind, namespace)).items
        return found

    async def pod(self, name: str, phase: str, within: float = 60.0) -> Manifest:
        """The pod, once it is in that phase."""

        async def there() -> Manifest | None:
            found = await self.find(POD, name)
            return found if found and found["status"]["phase"] == phase else None

        reached: Manifest = await self.until(there, within)
        return reached

    async def run_pod(self, name: str, node: str = "node-0", **fields: Any) -> Manifest:
        """Create a pod that is bound from the start."""
        created: Manifest = await self.connection.create(POD, pod(name, node, **fields))
        return created


def pod(
    name: str,
    node: str = "",
    *,
    annotations: dict[str, str] | None = None,
    requests: dict[str, str] | None = None,
    owners: list[Manifest] | None = None,
    **spec: Any,
) -> Manifest:
    container = {"name": "main", "image": "image", "resources": {"requests": requests or {}}}
    if requests:
        container["resources"]["limits"] = requests  # type: ignore[index]
    fields: Manifest = {"containers": [container], "restartPolicy": "Never", **spec}
    if node:
        fields["nodeName"] = node
    metadata: Manifest = {"name": name, "namespace": "default", "annotations": annotations or {}}
    if owners:
        metadata["ownerReferences"] = owners
    return {"metadata": metadata, "spec": fields}


@asynccontextmanager
async def embedded(
    *programs: str, count: int = 2, gpus: int = 2, nodes: list[Manifest] | None = None
) -> AsyncIterator[Embedded]:
    cluster = Embedded(simulated_nodes(count, gpus) if nodes is None else nodes)
    for program in programs:
        cluster.start(program)
    try:
        yield cluster
    finally:
        await cluster.stop_all()
        await cluster.connection.close()


def conditions(obj: Manifest) -> dict[str, str]:
    return {c["type"]: c["status"] for c in (obj.get("status") or {}).get("conditions") or []}
