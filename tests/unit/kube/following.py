"""A cache under test and a reader that knows only the changes it was told."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from posse.kube.cache import Cache, Change
from posse.kube.connection import Connection
from posse.kube.identity import Malformed, identify
from posse.kube.inprocess import AsgiTransport
from posse.objects.kinds import CONFIG_MAP
from posse.objects.meta import Key
from posse.virtual.world import virtual_world
from tests.unit.kube.faults import FaultyTransport
from tests.unit.kube.modelserver import ModelServer


class Meta(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class Thing(msgspec.Struct):
    metadata: Meta
    size: int = 0


class Reader:
    """Rebuilds the state from the changes; any change that does not follow is an error."""

    def __init__(self) -> None:
        self.state: dict[Key, Thing] = {}
        self.changes: list[Change[Thing]] = []
        self.malformed: list[Malformed] = []
        self.faults: list[str] = []

    def on_change(self, change: Change[Thing]) -> None:
        self.changes.append(change)
        some = change.new or change.old
        if some is None:
            self.faults.append("a change of nothing")
            return
        key = identify(some).key
        if self.state.get(key) is not change.old:
            self.faults.append(f"{key}: `old` is not what was told before")
        if change.old is not None and change.new is not None:
            if change.old.metadata.uid != change.new.metadata.uid:
                self.faults.append(f"{key}: another object as an update")
            if change.old == change.new:
                self.faults.append(f"{key}: a change that changes nothing")
        if change.new is None:
            del self.state[key]
        else:
            self.state[key] = change.new

    def told(self) -> list[tuple[str, str]]:
        """The changes as (verb, name)."""
        words = []
        for change in self.changes:
            verb = "made" if change.old is None else "gone" if change.new is None else "changed"
            some = change.new or change.old
            words.append((verb, some.metadata.name if some else ""))
        return words

    def forget(self) -> None:
        self.changes.clear()


class Following:
    """`async with` runs the cache against a model server, in virtual time."""

    def __init__(self, server: ModelServer | None = None, **options: Any) -> None:
        self.server = server or ModelServer()
        self.transport = FaultyTransport(AsgiTransport(self.server))
        self.reader = Reader()
        self.cache: Cache[Thing] = Cache(
            Connection(self.transport, virtual_world()),
            CONFIG_MAP,
            Thing,
            **{
                "on_change": self.reader.on_change,
                "on_malformed": self.reader.malformed.append,
            }
            | options,
        )

    async def __aenter__(self) -> Following:
        self._task = asyncio.create_task(self.cache.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        failed = self._task.done()
        self._task.cancel()
        await asyncio.wait({self._task})
        await self.transport.close()
        if failed:
            self._task.result()

    async def settle(self, seconds: float = 20.0) -> None:
        await asyncio.sleep(seconds)

    def lists(self) -> int:
        return sum(not request.watching for request in self.server.requests)

    def watches(self) -> list[str]:
        """The versions watched from, in order."""
        return [r.query["resourceVersion"] for r in self.server.requests if r.watching]
