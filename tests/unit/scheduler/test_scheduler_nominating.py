"""Where a pod is to sit is written on it while those that were ended for it go."""

from __future__ import annotations

import pytest

from posse.engine.policy import Policy
from tests.unit.scheduler.rig import Object, Rig, group, pod

POLICY = Policy(backfill=False, preemption_hold=60.0)


@pytest.fixture
async def rig() -> Rig:
    rig = Rig()
    rig.api.lingering = True
    return rig


def old(rig: Rig, name: str, on: str, gpus: int = 2) -> None:
    made = pod(name, nodeName=on, priority=0, gpus=gpus)
    rig.api.put("pods", made | {"status": {"phase": "Running"}})


def nominated(rig: Rig, *names: str) -> list[str]:
    found: list[Object] = [rig.api.get("pods", name)["status"] for name in names]
    return [str(status.get("nominatedNodeName", "")) for status in found]


@pytest.mark.looptime
async def test_each_member_of_a_gang_has_a_node_of_its_own(rig: Rig) -> None:
    rig.nodes(3)
    for at in range(3):
        old(rig, f"old-{at}", f"n{at}")
    rig.api.put("podgroups", group("new", 2))
    for at in range(3):
        rig.api.put("pods", pod(f"new-{at}", "new", priority=5))
    async with rig.running(policy=POLICY):
        await rig.until(lambda: any(nominated(rig, "new-0", "new-1", "new-2")))
        await rig.settle()
        first, second, third = nominated(rig, "new-0", "new-1", "new-2")
        assert first and second and first != second
        assert not third
        going = [
            p["metadata"]["name"]
            for p in rig.api.all("pods")
            if p["metadata"].get("deletionTimestamp")
        ]
        assert sorted(going) == sorted(f"old-{node[1:]}" for node in (first, second))
        for name in going:
            rig.api.delete("pods", name)
        await rig.until(lambda: len(rig.bound_of("new")) == 2)
        assert set(rig.bound_of("new").values()) == {first, second}


@pytest.mark.looptime
async def test_a_pod_without_a_group_has_one_too_and_loses_it_when_the_room_does_not_come(
    rig: Rig,
) -> None:
    rig.nodes(1)
    old(rig, "old", "n0")
    rig.api.put("pods", pod("new", priority=5))
    async with rig.running(policy=POLICY):
        await rig.until(lambda: nominated(rig, "new") == ["n0"])
        said = rig.api.condition("pods", "new", "PodScheduled")
        assert said["reason"] == "Reserved"
        await rig.until(lambda: nominated(rig, "new") == [""], within=120)
        assert rig.api.condition("pods", "new", "PodScheduled")["reason"] != "Reserved"


@pytest.mark.looptime
async def test_what_somebody_else_nominated_is_left_alone(rig: Rig) -> None:
    rig.nodes(1)
    old(rig, "old", "n0")
    theirs = pod("theirs", priority=0)
    theirs["status"]["nominatedNodeName"] = "n7"
    rig.api.put("pods", theirs)
    async with rig.running(policy=POLICY):
        await rig.until(lambda: rig.api.condition("pods", "theirs", "PodScheduled"))
        await rig.settle()
        assert nominated(rig, "theirs") == ["n7"]


@pytest.mark.looptime
async def test_nobody_is_nominated_where_nobody_was_ended(rig: Rig) -> None:
    rig.nodes(1)
    old(rig, "old", "n0")
    rig.api.put("pods", pod("new", priority=0))
    async with rig.running(policy=POLICY):
        await rig.until(lambda: rig.api.condition("pods", "new", "PodScheduled"))
        await rig.settle()
        assert nominated(rig, "new") == [""]
