"""The last check before a write leaves."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from posse.kube.connection import Connection
from posse.kube.errors import Conflict
from posse.kube.transport import Response
from posse.objects.kinds import NODE, POD
from posse.scheduler.fencing import Fence, LeadershipLost
from posse.virtual.world import virtual_world
from tests.unit.scheduler.double import Api
from tests.unit.scheduler.rig import node, pod

pytestmark = pytest.mark.looptime


async def test_without_the_lease_one_may_read_but_not_write() -> None:
    world = virtual_world()
    api = Api(world)
    made = api.put("nodes", node("n0"))
    connection = Connection(Fence(api, lambda: 0.0), world)
    assert (await connection.get(NODE, "n0"))["metadata"]["uid"] == made["metadata"]["uid"]
    with pytest.raises(LeadershipLost):
        await connection.patch(NODE, "n0", {"spec": {"unschedulable": True}})
    with pytest.raises(LeadershipLost):
        await connection.delete(NODE, "n0")
    with pytest.raises(LeadershipLost):
        await connection.bind("a", "ns", "n0", uid="u")
    assert api.writes == []


async def test_writes_in_flight_are_counted_until_they_are_answered() -> None:
    world = virtual_world()
    api = Api(world)
    api.put("pods", pod("a"))
    fence = Fence(api, lambda: 60.0)
    seen: list[int] = []
    api.on_write = lambda write: seen.append(fence.in_flight)
    connection = Connection(fence, world)
    uid = api.get("pods", "a")["metadata"]["uid"]
    await connection.bind("a", "ns", "n0", uid=uid)
    with pytest.raises(Conflict):
        await connection.bind("a", "ns", "n0", uid=uid)
    assert seen[0] == 1
    assert fence.in_flight == 0


class Slow:
    """A transport whose connection takes its time; what it then sends is on record."""

    def __init__(self, api: Api, seconds: float) -> None:
        self._api = api
        self._seconds = seconds
        self.sent: list[str] = []
        self.stream = api.stream
        self.close = api.close

    async def request(self, method: str, path: str, **more: Any) -> Response:
        await asyncio.sleep(self._seconds)
        self.sent.append(f"{method} {path}")
        return await self._api.request(method, path, **more)


async def test_a_write_that_waits_is_cut_off_with_the_lease() -> None:
    world = virtual_world()
    slow = Slow(Api(world), 20)
    fence = Fence(slow, lambda: 10 - world.monotonic())
    with pytest.raises(LeadershipLost):
        await fence.request("POST", "/api/v1/namespaces/ns/pods/a/binding")
    assert world.monotonic() == pytest.approx(10)
    await asyncio.sleep(60)
    assert slow.sent == []
    assert fence.in_flight == 0


async def test_a_write_goes_on_under_a_lease_that_is_renewed_meanwhile() -> None:
    world = virtual_world()
    slow = Slow(Api(world), 20)
    fence = Fence(slow, lambda: (10 if world.monotonic() < 5 else 30) - world.monotonic())
    await Connection(fence, world).create(POD, pod("a"))
    assert slow.sent == ["POST /api/v1/namespaces/default/pods"]


async def test_a_write_that_is_called_off_is_not_taken_for_a_lost_lease() -> None:
    world = virtual_world()
    fence = Fence(Slow(Api(world), 20), lambda: 10 - world.monotonic())
    writing = asyncio.create_task(fence.request("POST", "/api/v1/namespaces/ns/pods"))
    await asyncio.sleep(1)
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
