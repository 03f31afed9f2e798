"""One object that makes no sense is set aside and named; everyone else goes on."""

from __future__ import annotations

import json

import pytest

from tests.unit.scheduler.rig import GPU, Rig, group, node, pod

pytestmark = pytest.mark.looptime


@pytest.fixture
async def rig() -> Rig:
    return Rig()


@pytest.mark.parametrize("key", ["posse.dev/expects", "posse.dev/held"])
async def test_a_malformed_annotation_keeps_its_own_gang_waiting(rig: Rig, key: str) -> None:
    rig.nodes(2)
    rig.api.put("podgroups", group("bad", 1, annotations={key: "nonsense"}))
    rig.api.put("pods", pod("bad-0", "bad"))
    async with rig.running():
        rig.gang("good", 1)
        await rig.until(lambda: rig.bound_of("good"))
        await rig.settle()
        assert rig.bound_of("bad") == {}
        (said,) = rig.events("bad")
        assert said[0] == "Quarantined"
        assert key in said[1]
        assert key in rig.api.condition("podgroups", "bad", "Unschedulable")["message"]
        assert rig.api.condition("pods", "bad-0", "PodScheduled")["reason"] == "GangIncomplete"
        rig.api.change("podgroups", "bad", metadata={"annotations": {key: None}})
        await rig.until(lambda: rig.bound_of("bad"))


async def test_it_is_named_once_however_often_it_is_seen(rig: Rig) -> None:
    rig.api.put("podgroups", group("bad", 1, annotations={"posse.dev/held": "nonsense"}))
    async with rig.running():
        for index in range(5):
            rig.api.change("podgroups", "bad", metadata={"labels": {"n": str(index)}})
            await rig.settle()
        (event,) = [e for e in rig.api.all("events") if e["reason"] == "Quarantined"]
        assert event["count"] == 1


async def test_a_node_with_nonsense_in_it_is_left_out(rig: Rig) -> None:
    bad = node("n0")
    bad["status"]["allocatable"][GPU] = "many"
    rig.api.put("nodes", bad)
    rig.api.put("nodes", node("n1"))
    async with rig.running():
        for index in range(2):
            rig.api.put("pods", pod(f"p{index}"))
        await rig.settle()
        assert list(rig.api.placed().values()) == ["n1"]
        ((reason, message),) = rig.events("n0")
        assert reason == "Quarantined"
        assert GPU in message


@pytest.mark.parametrize("ours", [True, False])
async def test_a_node_with_a_pod_of_unknown_size_takes_nothing_new(rig: Rig, ours: bool) -> None:
    rig.nodes(1)
    there = pod("there", scheduler="posse" if ours else "other", nodeName="n0")
    there["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "a lot"
    rig.api.put("pods", there)
    async with rig.running():
        rig.api.put("pods", pod("new", gpus=0))
        await rig.settle()
        assert "new" not in rig.api.placed()
        rig.api.delete("pods", "there")
        await rig.until(lambda: rig.api.placed().get("new") == "n0")


async def test_a_pod_that_is_no_pod_keeps_its_node_to_itself(rig: Rig) -> None:
    rig.nodes(1)
    there = pod("there", nodeName="n0")
    there["spec"]["containers"] = "none"
    rig.api.put("pods", there)
    async with rig.running():
        rig.api.put("pods", pod("new", gpus=0))
        await rig.settle()
        assert "new" not in rig.api.placed()
        assert [reason for reason, _ in rig.events("there")] == ["Quarantined"]
        rig.api.delete("pods", "there")
        rig.api.put("pods", pod("another", gpus=0))
        await rig.until(lambda: rig.api.placed().get("new") == "n0")


async def test_a_waiting_pod_with_nonsense_in_it_says_so(rig: Rig) -> None:
    rig.nodes(2)
    bad = pod("bad", gpus=0)
    bad["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "a lot"
    rig.api.put("pods", bad)
    rig.api.put("pods", pod("good"))
    async with rig.running():
        await rig.until(lambda: "good" in rig.api.placed())
        await rig.settle()
        assert "bad" not in rig.api.placed()
        said = rig.api.condition("pods", "bad", "PodScheduled")
        assert said["reason"] == "Malformed"
        assert "a lot" in said["message"]


async def test_a_running_gang_whose_annotation_is_spoilt_keeps_running(rig: Rig) -> None:
    rig.nodes(2)
    rig.gang("train", 2)
    async with rig.running():
        await rig.until(lambda: rig.phase("train") == "Running")
        bad = json.dumps([{"role": 1}])
        rig.api.change("podgroups", "train", metadata={"annotations": {"posse.dev/expects": bad}})
        await rig.settle()
        assert rig.phase("train") == "Running"
        rig.api.change("podgroups", "train", metadata={"annotations": {"posse.dev/expects": None}})
        rig.api.delete("pods", "train-1")
        rig.api.put("pods", pod("train-1", "train"))
        await rig.until(lambda: len(rig.bound_of("train")) == 2)


async def test_a_class_that_does_not_exist_keeps_nobody_and_is_said_once(rig: Rig) -> None:
    rig.nodes(1)
    rig.api.put("priorityclasses", {"metadata": {"name": "high"}, "value": 100})
    rig.api.put("podgroups", group("slip", 1, priorityClassName="hihg"))
    rig.api.put("podgroups", group("meant", 1, priorityClassName="high"))
    async with rig.running():
        rig.api.put("pods", pod("slip-0", "slip"))
        await rig.until(lambda: rig.bound_of("slip"))
        await rig.settle()
        doubts = [said for said in rig.events("slip") if said[0] == "Doubtful"]
        why = "priority class hihg does not exist: the priority of its pods counts"
        assert doubts == [("Doubtful", why)]
        assert [said for said in rig.events("meant") if said[0] == "Doubtful"] == []
