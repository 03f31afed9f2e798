"""A process runtime over an API server in this event loop, with a test in the agent's place."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil

from posse.kube.connection import Connection
from posse.kube.inprocess import AsgiTransport
from posse.kube.transport import Transport
from posse.local.apiserver.app import ApiServer
from posse.local.apiserver.journal import MemoryJournal
from posse.local.apiserver.store import Store
from posse.local.node.processes.ending import end_all
from posse.local.node.processes.isolation.modes import Isolation
from posse.local.node.processes.isolation.namespaces import Namespaces
from posse.local.node.processes.isolation.shared import Shared
from posse.local.node.processes.layout import AttemptPlace, PodPlace
from posse.local.node.processes.leftovers import marked
from posse.local.node.processes.preparing import RuntimeConfig
from posse.local.node.processes.runtime import ProcessRuntime
from posse.local.node.runtime import Exit, LogRequest
from posse.objects.kinds import CONFIG_MAP, POD, SECRET, SERVICE
from posse.world import World

Manifest = dict[str, Any]
CEILING = 20.0


class Rig:
    """The runtime's Host, and everything a test asks of it."""

    def __init__(
        self, home: Path, mode: str, *, gpus: tuple[int, ...], allow: Iterable[Path]
    ) -> None:
        self.home = home
        self.mode = mode
        self.world = World.real()
        home.mkdir(exist_ok=True)
        self.watch = home / "watch"
        if not self.watch.exists():
            os.mkfifo(self.watch)
        self._watching: int | None = os.open(self.watch, os.O_RDWR | os.O_NONBLOCK)
        server = ApiServer(Store(MemoryJournal()), self.world, {"t": "system:admin"}, self._no_node)
        headers = {"authorization": "Bearer t", "host": "localhost"}
        self.connection = Connection(AsgiTransport(server, headers), self.world)
        self._gpus = gpus
        self._allow = tuple(allow)
        self.pods: dict[str, Manifest] = {}
        self.exits: dict[tuple[str, str, int], Exit] = {}
        self.readiness: list[tuple[str, bool]] = []
        self.warnings: list[tuple[str, str]] = []
        self.runtime = self._make()
        self._running = asyncio.create_task(self.runtime.run())

    def _no_node(self, node: Manifest) -> Transport:
        raise AssertionError("nobody asks for logs through the API server here")

    def isolation(self) -> Isolation:
        return Shared(self.world) if self.mode == "none" else Namespaces(self.world, self.home)

    def _make(self) -> ProcessRuntime:
        config = RuntimeConfig(
            home=self.home,
            lifeline=self.watch,
            allocatable={"cpu": "4", "memory": "8Gi"},
            gpus=self._gpus,
            allowed_host_paths=self._allow,
            api_server=("127.0.0.1", 6443),
        )
        runtime = ProcessRuntime(config, self.connection, self.world, self.isolation())
        runtime.attach(self)
        return runtime

    # The agent's part.

    def exited(self, uid: str, container: str, attempt: int, how: Exit) -> None:
        self.exits[uid, container, attempt] = how

    def ready(self, uid: str, container: str, attempt: int, ready: bool) -> None:
        self.readiness.append((container, ready))

    def bound(self) -> Iterable[Manifest]:
        return self.pods.values()

    def warn(self, pod: Manifest, reason: str, message: str) -> None:
        self.warnings.append((reason, message))

    # What a test does.

    def admit(self, pod: Manifest) -> Manifest:
        uid = pod["metadata"].setdefault("uid", self.world.uid())
        self.pods[uid] = pod
        address = self.runtime.address(pod, "this")
        pod["status"] = {"podIP": address}
        return pod

    async def start(self, pod: Manifest, container: str = "main", attempt: int = 0) -> bool:
        if pod["metadata"].get("uid") not in self.pods:
            self.admit(pod)
        return await self.runtime.start(pod, container, attempt)

    async def over(self, pod: Manifest, container: str = "main", attempt: int = 0) -> Exit:
        key = (pod["metadata"]["uid"], container, attempt)
        await self.until(lambda: key in self.exits, f"{container} has ended")
        return self.exits[key]

    async def run(self, pod: Manifest) -> tuple[Exit, str]:
        """Start its container and wait: how it ended, and what it printed."""
        await self.start(pod)
        how = await self.over(pod)
        return how, await self.output(pod)

    async def output(self, pod: Manifest, container: str = "main", **wanted: Any) -> str:
        chunks = [c async for c in self.runtime.logs(pod, container, LogRequest(**wanted))]
        return b"".join(chunks).decode("utf-8", "replace")

    async def printed(self, pod: Manifest, text: str, container: str = "main") -> str:
        async def there() -> bool:
            return text in await self.output(pod, container)

        await self.until(there, f"{text!r} is printed")
        return await self.output(pod, container)

    async def until(self, holds: Callable[[], bool | Awaitable[bool]], what: str) -> None:
        try:
            async with asyncio.timeout(CEILING):
                while True:
                    found = holds()
                    if found if isinstance(found, bool) else await found:
                        return
                    if self._running.done():
                        self._running.result()
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise AssertionError(f"after {CEILING:g}s still not: {what}") from None

    def place(self, pod: Manifest) -> PodPlace:
        return PodPlace(self.home / "pods" / pod["metadata"]["uid"])

    def attempt(self, pod: Manifest, container: str = "main", number: int = 0) -> AttemptPlace:
        return self.place(pod).attempt(container, number)

    def processes(self, pod: Manifest) -> list[psutil.Process]:
        """Everything that bears the mark of the pod's first container."""
        return marked(f"{pod['metadata']['uid']}/main/0")

    async def config_map(self, name: str, data: Mapping[str, str]) -> None:
        metadata = {"name": name, "namespace": "default"}
        await self.connection.create(CONFIG_MAP, {"metadata": metadata, "data": dict(data)})

    async def secret(self, name: str, data: Mapping[str, str]) -> None:
        metadata = {"name": name, "namespace": "default"}
        await self.connection.create(SECRET, {"metadata": metadata, "stringData": dict(data)})

    async def service(self, name: str, selector: Mapping[str, str], *ports: Manifest) -> None:
        spec = {"clusterIP": "None", "selector": dict(selector), "ports": list(ports)}
        metadata = {"name": name, "namespace": "default"}
        await self.connection.create(SERVICE, {"metadata": metadata, "spec": spec})

    # What happens to it.

    async def crash(self) -> None:
        """The agent is gone without a word; nothing of it is left but the disk."""
        self._running.cancel()
        await asyncio.gather(self._running, return_exceptions=True)
        self.runtime.close()

    async def restart(self) -> None:
        """Another agent comes, and finds what the objects and the disk say."""
        await self.crash()
        self.runtime = self._make()
        self._running = asyncio.create_task(self.runtime.run())
        for pod in self.pods.values():
            self.runtime.address(pod, "this")
        await self.runtime.recover(sorted(self.pods))

    def stop_watching(self) -> None:
        """Neither an agent nor a supervisor is left."""
        if self._watching is not None:
            os.close(self._watching)
            self._watching = None

    async def close(self) -> None:
        await self.crash()
        await end_all(self.home / "pods", 0.0)
        self.stop_watching()
        await self.connection.close()


@asynccontextmanager
async def rig(
    home: Path, mode: str, *, gpus: tuple[int, ...] = (), allow: Iterable[Path] = ()
) -> AsyncIterator[Rig]:
    made = Rig(home, mode, gpus=gpus, allow=allow)
    try:
        yield made
    finally:
        await made.close()


def container(*command: str, name: str = "main", **fields: Any) -> Manifest:
    return {"name": name, "image": "image", "command": list(command), **fields}


def shell(script: str, name: str = "main", **fields: Any) -> Manifest:
    return container("sh", "-c", script, name=name, **fields)


def pod(
    *containers: Manifest, name: str = "pod", labels: Mapping[str, str] | None = None, **spec: Any
) -> Manifest:
    metadata = {"name": name, "namespace": "default", "labels": dict(labels or {})}
    return {
        "apiVersion": POD.api_version,
        "kind": POD.kind,
        "metadata": metadata,
        "spec": {"containers": list(containers), "nodeName": "this", **spec},
    }


def mounted(volume: str, path: str, **fields: Any) -> Manifest:
    return {"name": volume, "mountPath": path, **fields}
