"""The last check before a write leaves."""

from __future__ import annotations

import pytest

from posse.kube.connection import Connection
from posse.kube.errors import Conflict
from posse.objects.kinds import NODE
from posse.scheduler.fencing import Fence, LeadershipLost
from posse.virtual.world import virtual_world
from tests.unit.scheduler.double import Api
from tests.unit.scheduler.rig import node, pod

pytestmark = pytest.mark.looptime


async def test_without_the_lease_one_may_read_but_not_write() -> None:
    world = virtual_world()
    api = Api(world)
    made = api.put("nodes", node("n0"))
    connection = Connection(Fence(api, lambda: False), world)
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
    fence = Fence(api, lambda: True)
    seen: list[int] = []
    api.on_write = lambda write: seen.append(fence.in_flight)
    connection = Connection(fence, world)
    uid = api.get("pods", "a")["metadata"]["uid"]
    await connection.bind("a", "ns", "n0", uid=uid)
    with pytest.raises(Conflict):
        await connection.bind("a", "ns", "n0", uid=uid)
    assert seen[0] == 1
    assert fence.in_flight == 0
