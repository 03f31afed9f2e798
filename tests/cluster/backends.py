"""What a story rides on: any cluster with simulated nodes and our services.

The same stories run on the embedded API server on virtual time, and (tests/kubernetes) on a real
control plane in real time. They may ask for nothing but what stands here.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol

from posse.kube.connection import Connection
from posse.virtual.cluster import VirtualCluster
from posse.virtual.world import virtual_world


class Riding(Protocol):
    """A running cluster. `connection` is a user's, and the story has `namespace` for itself."""

    @property
    def connection(self) -> Connection: ...

    @property
    def namespace(self) -> str: ...

    def start(self, service: str) -> None: ...

    async def stop(self, service: str) -> None:
        """As sudden as a crash; `service` is scheduler, controllers or node."""
        ...

    async def until(
        self, holds: Callable[[], Awaitable[bool]], what: str, within: float = 120.0
    ) -> None: ...

    async def linger(self, seconds: float) -> None:
        """Watch nothing happen: for so long where time costs nothing, else as long as it pays."""
        ...


class Backend(Protocol):
    def riding(self, nodes: list[dict[str, Any]]) -> AbstractAsyncContextManager[Riding]: ...


class VirtualRide(VirtualCluster):
    namespace = "default"

    async def linger(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class VirtualBackend:
    def __init__(self, seed: int = 0) -> None:
        self._seed = seed

    @asynccontextmanager
    async def riding(self, nodes: list[dict[str, Any]]) -> AsyncIterator[VirtualRide]:
        ride = VirtualRide(virtual_world(self._seed), nodes)
        async with ride:
            yield ride


chosen: Backend = VirtualBackend()
"""Where stories run that do not say where; tests/kubernetes puts a real control plane here."""
