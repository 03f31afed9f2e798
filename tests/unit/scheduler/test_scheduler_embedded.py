"""The scheduler against the embedded API server: real answers, real conflicts, real watches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from posse.kube.connection import Connection
from posse.kube.errors import Unreachable
from posse.kube.inprocess import AsgiTransport
from posse.kube.transport import Headers, Query, Response, Stream, Transport
from posse.local.apiserver.app import ApiServer
from posse.local.apiserver.journal import MemoryJournal
from posse.local.apiserver.store import Store
from posse.objects.crds import definitions
from posse.objects.kinds import CUSTOM_RESOURCE_DEFINITION, EVENT, NODE, POD, POD_GROUP
from posse.scheduler.program import SchedulerConfig, run
from posse.virtual.world import virtual_world
from tests.unit.scheduler.rig import crash, group, node, pod

pytestmark = pytest.mark.looptime

NAMESPACE = "default"
MEMBERS = 4


class Mortal:
    """A transport that dies, and takes its process with it, right after so many binds."""

    def __init__(self, inner: Transport, binds: int) -> None:
        self._inner = inner
        self._left = binds
        self.died = asyncio.Event()

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        headers: Headers | None = None,
        body: bytes | None = None,
        timeout: float | None = None,
    ) -> Response:
        if self.died.is_set():
            raise Unreachable("dead")
        if path.endswith("/binding"):
            self._left -= 1
            if self._left <= 0:
                self.died.set()
        return await self._inner.request(
            method, path, query=query, headers=headers, body=body, timeout=timeout
        )

    def stream(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        headers: Headers | None = None,
        body: bytes | None = None,
    ) -> AbstractAsyncContextManager[Stream]:
        return self._inner.stream(method, path, query=query, headers=headers, body=body)

    async def close(self) -> None:
        pass


class Cluster:
    def __init__(self) -> None:
        self.world = virtual_world()
        self._server = ApiServer(
            Store(MemoryJournal()),
            self.world,
            tokens={"t": "system:admin"},
            node_transport=lambda node: self.transport(),
        )

    def transport(self) -> Transport:
        headers = {"authorization": "Bearer t", "host": "localhost"}
        return AsgiTransport(self._server, headers)

    async def begin(self, nodes: int) -> None:
        await self._server.start()
        self.user = Connection(self.transport(), self.world)
        for definition in definitions():
            await self.user.create(CUSTOM_RESOURCE_DEFINITION, definition)
        for index in range(nodes):
            await self.user.create(NODE, node(f"n{index}"))

    def start(self, transport: Transport | None = None) -> asyncio.Task[None]:
        connection = Connection(transport or self.transport(), self.world)
        return asyncio.create_task(
            run(SchedulerConfig(identity="one", claim_all=True), connection, self.world)
        )

    async def gang(self, name: str, members: int) -> None:
        await self.user.create(POD_GROUP, group(name, members), NAMESPACE)
        for index in range(members):
            await self.user.create(POD, pod(f"{name}-{index}", name, owned=False), NAMESPACE)

    async def pods(self) -> list[dict[str, Any]]:
        return (await self.user.list(POD, NAMESPACE)).items

    async def bound(self) -> int:
        return sum(1 for found in await self.pods() if found["spec"].get("nodeName"))

    async def runs(self, name: str, within: float = 60.0) -> None:
        """Returns once the gang's phase is Running."""
        deadline = self.world.monotonic() + within
        while await self.phase(name) != "Running":
            assert self.world.monotonic() < deadline, f"{name} does not run"
            await asyncio.sleep(0.01)

    async def phase(self, name: str) -> str:
        found = await self.user.get(POD_GROUP, name, NAMESPACE)
        return str(found.get("status", {}).get("phase", ""))


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    made = Cluster()
    await made.begin(MEMBERS)
    yield made
    await made.user.close()


async def test_a_gang_that_fits_runs_and_one_that_does_not_says_why(cluster: Cluster) -> None:
    scheduler = cluster.start()
    await cluster.gang("wide", MEMBERS + 1)
    await cluster.gang("train", MEMBERS)

    await cluster.runs("train")
    await asyncio.sleep(2)
    said: dict[str, list[Any]] = {"train": [], "wide": []}
    for found in await cluster.pods():
        (condition,) = found["status"]["conditions"]
        said[found["metadata"]["name"].rpartition("-")[0]].append(
            (bool(found["spec"].get("nodeName")), condition["status"], condition.get("reason"))
        )
    assert said["train"] == [(True, "True", None)] * MEMBERS
    assert said["wide"] == [(False, "False", "Unschedulable")] * (MEMBERS + 1)
    events = [
        (e["involvedObject"]["name"], e["reason"]) for e in (await cluster.user.list(EVENT)).items
    ]
    assert sorted(events) == [("train", "Scheduled"), ("wide", "Unschedulable")]
    await crash(scheduler)


@pytest.mark.parametrize("binds", range(1, MEMBERS + 1))
async def test_a_gang_cut_short_after_any_bind_is_made_whole(cluster: Cluster, binds: int) -> None:
    mortal = Mortal(cluster.transport(), binds)
    scheduler = cluster.start(mortal)
    await cluster.gang("train", MEMBERS)
    await asyncio.wait_for(mortal.died.wait(), 60)
    await crash(scheduler)
    await asyncio.sleep(1)
    assert await cluster.bound() == binds
    assert await cluster.phase("train") != "Running"
    scheduler = cluster.start()

    await cluster.runs("train")
    assert await cluster.bound() == MEMBERS
    await crash(scheduler)
