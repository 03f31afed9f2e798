"""Reports about other schedulers, each played to a whole one: what is told, kept and given back."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.scheduler.rig import GPU, Object, Rig, group, node, pod

pytestmark = pytest.mark.looptime(noop_cycles=0)

GOING = {"deletionTimestamp": "2020-09-13T12:26:40Z"}


@pytest.fixture
async def rig() -> Rig:
    return Rig()


async def begin(rig: Rig, name: str, members: int, gpus: int = 2) -> None:
    """A gang comes to run whole."""
    rig.gang(name, members, gpus)
    await rig.until(lambda: len(rig.bound_of(name)) == members)
    for member in rig.bound_of(name):
        rig.api.change("pods", member, status={"phase": "Running"})
    await rig.until(lambda: rig.phase(name) == "Running")


def later(rig: Rig, name: str, members: int, gpus: int = 2, **spec: Any) -> None:
    """One that comes into a cluster that is full."""
    rig.api.put("podgroups", group(name, members, **spec))
    for index in range(members):
        rig.api.put("pods", pod(f"{name}-{index}", name, gpus))


def classes(rig: Rig, **values: int) -> None:
    for name, value in values.items():
        rig.api.put("priorityclasses", {"metadata": {"name": name}, "value": value})


def idle(name: str, **allocatable: str) -> Object:
    """A node that offers this, and no GPUs."""
    offers = {"cpu": "16", "memory": "64Gi", "pods": "110"} | allocatable
    ready = [{"type": "Ready", "status": "True"}]
    return node(name, status={"allocatable": offers, "conditions": ready})


async def test_a_pod_that_is_to_give_back_what_it_has(rig: Rig) -> None:
    """kubernetes#117765, kubernetes#129532: until it has, that is nobody else's."""
    rig.api.put("nodes", idle("n0"))
    large = pod("large", gpus=0, scheduler="other", nodeName="n0")
    held = {"name": "c", "resources": {"requests": {"cpu": "15"}}}
    large["status"] = {"phase": "Running", "containerStatuses": [held]}
    rig.api.put("pods", large)
    async with rig.running():
        asks = pod("next", gpus=0)
        asks["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "8"
        rig.api.put("pods", asks)
        await rig.settle(10)
        assert "next" not in rig.api.placed()
        held["resources"] = {"requests": {"cpu": "1"}}
        rig.api.change("pods", "large", status={"containerStatuses": [held]})
        await rig.until(lambda: "next" in rig.api.placed())


@pytest.mark.parametrize("restarts", [False, True], ids=["", "and nobody has seen it"])
async def test_who_is_done_is_cleared_away_and_another_one_is_lost(
    rig: Rig, restarts: bool
) -> None:
    """kubernetes#142330, scheduler-plugins#560: who ended well is not missing, wherever its pod is
    now; its fellows run on, and what is lost of them is made good."""
    rig.nodes(3)
    async with rig.running():
        await begin(rig, "train", 3)
        rig.api.change("pods", "train-0", status={"phase": "Succeeded"})
        await rig.settle(5)
        rig.api.delete("pods", "train-0")
        await rig.settle(5)
        assert rig.phase("train") == "Running"
        assert rig.api.get("podgroups", "train")["status"]["succeeded"] == 1
        if not restarts:
            await lose_and_replace(rig)
    if restarts:
        async with rig.running():
            await rig.settle(5)
            await lose_and_replace(rig)


async def lose_and_replace(rig: Rig) -> None:
    rig.api.delete("pods", "train-2")
    await rig.settle(1)
    rig.api.put("pods", pod("train-3", "train"))
    await rig.settle(2000)
    assert sorted(rig.bound_of("train")) == ["train-1", "train-3"]


async def test_a_gang_that_is_all_there_again_needs_everybody(rig: Rig) -> None:
    """Who ended well and was cleared away was made anew: from then on nobody is done."""
    rig.nodes(3)
    async with rig.running():
        await begin(rig, "train", 3)
        rig.api.change("pods", "train-0", status={"phase": "Succeeded"})
        await rig.settle(5)
        rig.api.delete("pods", "train-0")
        rig.api.put("pods", pod("train-3", "train"))
        await rig.until(lambda: "train-3" in rig.bound_of("train"))
        await rig.settle(5)
        assert rig.api.get("podgroups", "train")["status"]["succeeded"] == 0
        rig.api.delete("pods", "train-3")
        await rig.until(lambda: rig.phase("train") == "Unknown")


async def test_a_pod_that_ended_and_is_not_gone_yet_takes_nothing(rig: Rig) -> None:
    """kubernetes#96515"""
    rig.api.put("nodes", idle("n0", pods="1", **{GPU: "2"}))
    old = pod("old", scheduler="other", nodeName="n0")
    old["metadata"] |= GOING
    old["status"]["phase"] = "Failed"
    rig.api.put("pods", old)
    async with rig.running():
        rig.api.put("pods", pod("next"))
        await rig.until(lambda: "next" in rig.api.placed())


async def test_a_pod_that_does_not_come_to_its_end(rig: Rig) -> None:
    """volcano#2107: nobody waits for its room while there is other room."""
    rig.nodes(2)
    old = pod("old", scheduler="other", nodeName="n1")
    old["metadata"] |= GOING
    rig.api.put("pods", old)
    async with rig.running():
        rig.api.put("pods", pod("next"))
        await rig.until(lambda: rig.api.placed().get("next") == "n0")


async def test_a_node_that_turns_everybody_away(rig: Rig) -> None:
    """volcano#1782, k8s-device-plugin#231: who comes next goes elsewhere while there is room, and
    not to the same node thousands of times."""
    rig.nodes(3)
    async with rig.running():
        rig.gang("train", 1)
        seats = []
        for index in range(4):
            name = f"train-{index}"
            await rig.until(lambda name=name: name in rig.api.placed())  # type: ignore[misc]
            seats.append(rig.api.placed()[name])
            reason = {"phase": "Failed", "reason": "UnexpectedAdmissionError"}
            rig.api.change("pods", name, status=reason)
            rig.api.put("pods", pod(f"train-{index + 1}", "train"))
        assert sorted(seats[:3]) == ["n0", "n1", "n2"]


async def test_a_node_that_turns_everybody_away_and_is_the_only_one(rig: Rig) -> None:
    """k8s-device-plugin#231: its pods are made anew each time: they are given to it less and less
    often, and as before once they have run."""
    rig.nodes(1)
    async with rig.running():
        rig.gang("train", 1)
        dates = []
        for index in range(7):
            name = f"train-{index}"
            await rig.until(lambda name=name: name in rig.api.placed())  # type: ignore[misc]
            dates.append(rig.world.monotonic())
            reason = {"phase": "Failed", "reason": "UnexpectedAdmissionError"}
            rig.api.change("pods", name, status=reason)
            await rig.settle(0.1)
            rig.api.put("pods", pod(f"train-{index + 1}", "train"))
        assert dates[2] - dates[0] < 1
        assert dates[6] - dates[2] > 8
        said = rig.api.condition("podgroups", "train", "Unschedulable")["message"]
        assert said.startswith("nodes have turned 6 pods of it away")
        await rig.until(lambda: "train-7" in rig.api.placed())
        rig.api.change("pods", "train-7", status={"phase": "Running"})
        await rig.until(lambda: rig.phase("train") == "Running")


async def test_pods_that_ask_for_nothing_take_a_place_each(rig: Rig) -> None:
    """volcano#3227: nor are they a gang less than others."""
    rig.api.put("nodes", idle("n0", pods="2"))
    rig.api.put("nodes", idle("n1", pods="2"))
    async with rig.running():
        rig.api.put("podgroups", group("free", 5))
        for index in range(5):
            each = pod(f"free-{index}", "free")
            each["spec"]["containers"][0].pop("resources")
            rig.api.put("pods", each)
        await rig.settle(10)
        assert rig.bound_of("free") == {}
        assert "5 pod slots" in rig.api.condition("podgroups", "free", "Unschedulable")["message"]
        rig.api.change("podgroups", "free", spec={"minMember": 4})
        await rig.until(lambda: len(rig.bound_of("free")) == 4)


async def test_a_queue_deleted_and_made_again_while_it_is_used(rig: Rig) -> None:
    """volcano#5960, volcano#4427: what runs there runs on, and counts from the beginning."""
    rig.nodes(4)
    made = {"metadata": {"name": "q"}, "spec": {"capability": {GPU: "4"}}}
    rig.api.put("queues", made)
    async with rig.running():
        later(rig, "first", 1, queue="q")
        await rig.until(lambda: len(rig.bound_of("first")) == 1)
        rig.api.delete("queues", "q")
        later(rig, "second", 2, queue="q")
        await rig.settle(10)
        assert len(rig.bound_of("first")) == 1
        assert rig.bound_of("second") == {}
        rig.api.put("queues", made)
        await rig.settle(10)
        said = rig.api.condition("podgroups", "second", "Unschedulable")
        assert "may use 4 (capability) and 2 are in use" in said["message"]
        assert rig.api.get("queues", "q")["status"]["allocated"][GPU] == "2"


async def test_a_group_deleted_and_made_again_over_its_running_pods(rig: Rig) -> None:
    """volcano#3374, volcano#2044"""
    rig.nodes(2)
    async with rig.running():
        await begin(rig, "train", 2)
        rig.api.delete("podgroups", "train")
        await rig.settle(10)
        rig.api.put("podgroups", group("train", 2))
        await rig.until(lambda: rig.phase("train") == "Running")
        assert len(rig.bound_of("train")) == 2


async def test_room_that_was_made_for_one_and_went_to_another(rig: Rig) -> None:
    """kubernetes#106780: no pod names a node any longer that it will not get."""
    rig.nodes(1, gpus=4)
    rig.api.lingering = True
    classes(rig, mid=10, top=20)
    async with rig.running():
        await begin(rig, "low", 1)
        later(rig, "mid", 1, gpus=3, priorityClassName="mid")
        await rig.until(lambda: nominated(rig, "mid-0") == "n0")
        later(rig, "top", 1, priorityClassName="top")
        await rig.until(lambda: "top-0" in rig.api.placed())
        await rig.until(lambda: nominated(rig, "mid-0") == "")


def nominated(rig: Rig, name: str) -> str:
    return str(rig.api.get("pods", name)["status"].get("nominatedNodeName") or "")


@pytest.mark.parametrize("guarded", [["low-1"], ["low-0", "low-1"]])
async def test_a_budget_that_nobody_knew_of(rig: Rig, guarded: list[str]) -> None:
    """kubernetes#91492: where one member may not be evicted, no other is; and it is not tried
    without a pause."""
    rig.nodes(2)
    classes(rig, top=10)
    async with rig.running():
        await begin(rig, "low", 2)
        for name in guarded:
            rig.api.change("pods", name, metadata={"labels": {"app": "guarded"}})
        rig.api.budgets["guarded"] = [0]
        later(rig, "new", 2, priorityClassName="top")
        await rig.settle(600)
        assert len(rig.bound_of("low")) == 2
        tries = [path for _, _, path in rig.api.attempts if path.endswith("/eviction")]
        assert len(tries) < 120
        said = rig.api.condition("podgroups", "new", "Unschedulable")["message"]
        assert "nobody was ended for it" in said


async def test_a_gang_that_grew_and_finds_no_room(rig: Rig) -> None:
    """volcano#950, volcano#153: what is told of it is told once, and its phase stays."""
    rig.nodes(2)
    async with rig.running():
        await begin(rig, "train", 2)
        rig.api.change("podgroups", "train", spec={"minMember": 4})
        for index in (2, 3):
            rig.api.put("pods", pod(f"train-{index}", "train"))
        await rig.settle(60)
        before = len(rig.api.sent("PATCH", "/podgroups/"))
        await rig.settle(300)
        assert len(rig.api.sent("PATCH", "/podgroups/")) == before
        assert sorted(rig.bound_of("train")) == ["train-0", "train-1"]


async def test_counts_follow_the_pods_down_as_well_as_up(rig: Rig) -> None:
    """scheduler-plugins#361, kube-batch#846"""
    rig.nodes(4)
    async with rig.running():
        await begin(rig, "train", 4)
        for index in range(2):
            rig.api.delete("pods", f"train-{index}")
        await rig.until(lambda: rig.api.get("podgroups", "train")["status"]["running"] == 2)
        for index in (4, 5):
            rig.api.put("pods", pod(f"train-{index}", "train"))
        await rig.until(lambda: len(rig.bound_of("train")) == 4)
        for index in (4, 5):
            rig.api.change("pods", f"train-{index}", status={"phase": "Running"})
        await rig.until(lambda: rig.api.get("podgroups", "train")["status"]["running"] == 4)
        assert rig.phase("train") == "Running"


async def test_who_was_ended_comes_back_when_there_is_room(rig: Rig) -> None:
    """kai#84"""
    rig.nodes(1)
    classes(rig, top=5)
    async with rig.running():
        await begin(rig, "low", 1)
        later(rig, "new", 1, priorityClassName="top")
        await rig.until(lambda: "new-0" in rig.api.placed())
        rig.api.put("pods", pod("low-0", "low"))
        await rig.settle(10)
        assert "low-0" not in rig.api.placed()
        rig.api.delete("pods", "new-0")
        rig.api.delete("podgroups", "new")
        await rig.until(lambda: "low-0" in rig.api.placed())


async def test_one_of_high_priority_that_must_not_preempt(rig: Rig) -> None:
    """volcano#3512, kai#1032: it ends nobody, and is served before those of lower priority."""
    rig.nodes(1)
    calm = {"metadata": {"name": "calm"}, "value": 100, "preemptionPolicy": "Never"}
    rig.api.put("priorityclasses", calm)
    async with rig.running():
        await begin(rig, "low", 1)
        later(rig, "mid", 1)
        later(rig, "calm", 1, priorityClassName="calm")
        await rig.settle(10)
        assert list(rig.api.placed()) == ["low-0"]
        rig.api.delete("pods", "low-0")
        rig.api.delete("podgroups", "low")
        await rig.until(lambda: "calm-0" in rig.api.placed())
        assert "mid-0" not in rig.api.placed()


async def test_devices_that_come_and_go_under_a_running_gang(rig: Rig) -> None:
    """k8s-device-plugin#58, volcano#1776: it runs on."""
    rig.nodes(1, gpus=8)
    async with rig.running():
        await begin(rig, "train", 4)
        for gpus in ("0", "8", "0", "8"):
            rig.api.change("nodes", "n0", status={"allocatable": {GPU: gpus}})
            await rig.settle(5)
        assert len(rig.bound_of("train")) == 4
        assert rig.phase("train") == "Running"


async def test_pods_without_a_group_end_others_by_their_own_priority(rig: Rig) -> None:
    """volcano#2629"""
    rig.nodes(1)
    async with rig.running():
        rig.api.put("pods", pod("low", priority=1))
        await rig.until(lambda: "low" in rig.api.placed())
        rig.api.change("pods", "low", status={"phase": "Running"})
        rig.api.put("pods", pod("high", priority=100))
        await rig.until(lambda: "high" in rig.api.placed())


async def test_a_pod_that_is_given_to_another_group(rig: Rig) -> None:
    """It is counted where it belongs now, and nowhere else."""
    rig.nodes(2)
    async with rig.running():
        rig.api.put("podgroups", group("a", 2))
        rig.api.put("podgroups", group("b", 1))
        rig.api.put("pods", pod("a-0", "a"))
        await rig.settle(5)
        other = {"annotations": {"scheduling.k8s.io/group-name": "b"}}
        rig.api.change("pods", "a-0", metadata=other)
        await rig.until(lambda: rig.phase("b") == "Running")
        await rig.settle(2)
        said = rig.api.condition("podgroups", "a", "Unschedulable")["message"]
        assert said == "0 of 2 pods exist; it starts when all of them do"
