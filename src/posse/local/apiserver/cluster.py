"""What the handlers share: the store, the registry, the world, and the way to the nodes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from posse.kube.transport import Transport
from posse.local.apiserver import statuses
from posse.local.apiserver.journal import JournalError
from posse.local.apiserver.registry import Registry
from posse.local.apiserver.store import Object, Store, Write
from posse.local.apiserver.strategies.strategy import Context
from posse.world import World

NodeTransport = Callable[[Object], Transport]


class Cluster:
    def __init__(self, store: Store, world: World, node_transport: NodeTransport) -> None:
        self.store = store
        self.world = world
        self.registry = Registry(store)
        self.node_transport = node_transport

    def context(self, warnings: list[str] | None = None) -> Context:
        return Context(self.store, self.world, warnings)

    async def durable(self, write: Write | None) -> None:
        """Returns when the write is in the journal and published; nobody is answered before."""
        if write is not None:
            await self._settled(write.durable)

    async def unchanged(self, resource: str, key: tuple[str, str]) -> None:
        """The same for a request that changes nothing: what it confirms must be durable too."""
        if (on_its_way := self.store.durable(resource, key)) is not None:
            await self._settled(on_its_way)

    async def refusal_stands(self) -> None:
        """A refusal may rest on a write still on its way; if that one fails, so does this."""
        if (on_its_way := self.store.last_write()) is not None:
            await self._settled(on_its_way)

    async def _settled(self, durable: asyncio.Future[None]) -> None:
        try:
            if durable.done():
                durable.result()
            else:
                await asyncio.shield(durable)
        except JournalError as error:
            raise statuses.internal_error(str(error)) from error
