"""Gangs that start whole or wait whole, and what is written about them."""

from __future__ import annotations

import logging

import pytest

from tests.unit.scheduler.rig import Rig, group, node, pod

pytestmark = pytest.mark.looptime


@pytest.fixture
async def rig() -> Rig:
    return Rig()


async def test_a_gang_that_fits_is_bound_whole(rig: Rig) -> None:
    rig.nodes(4)
    async with rig.running():
        rig.gang("train", 4)
        await rig.until(lambda: len(rig.bound_of("train")) == 4)
        await rig.until(lambda: rig.phase("train") == "Running")
        await rig.settle()
    rig.check()
    assert rig.events("train") == [("Scheduled", "bound 4 pods to 4 nodes")]
    assert rig.api.condition("podgroups", "train", "Scheduled")["status"] == "True"


async def test_a_gang_one_seat_short_waits_whole_and_every_pod_says_why(rig: Rig) -> None:
    rig.nodes(4)
    async with rig.running():
        rig.gang("train", 5)
        await rig.settle()
        assert rig.api.placed() == {}
        condition = rig.api.condition("podgroups", "train", "Unschedulable")
        assert (condition["status"], condition["reason"]) == ("True", "NotEnoughResources")
        assert "10 GPUs" in condition["message"]
        for index in range(5):
            said = rig.api.condition("pods", f"train-{index}", "PodScheduled")
            assert (said["status"], said["reason"]) == ("False", "Unschedulable")
            assert said["message"] == condition["message"]
        assert rig.phase("train") == "Inqueue"
        assert rig.events("train") == [("Unschedulable", condition["message"])]


async def test_a_gang_that_is_still_arriving_says_nothing_but_that_it_is_inqueue(rig: Rig) -> None:
    rig.nodes(4)
    async with rig.running():
        await rig.settle(1)
        rig.api.put("podgroups", group("train", 4))
        rig.api.put("pods", pod("train-0", "train"))
        await rig.until(lambda: rig.phase("train") == "Inqueue", within=0.1)
        for index in range(1, 4):
            rig.api.put("pods", pod(f"train-{index}", "train"))
        await rig.until(lambda: rig.phase("train") == "Running")
        await rig.settle()
    assert rig.events("train") == [("Scheduled", "bound 4 pods to 4 nodes")]
    assert rig.api.sent("PATCH", "/pods/") == []


async def test_a_gang_that_arrives_slowly_says_nothing_while_it_does(rig: Rig) -> None:
    rig.nodes(20)
    async with rig.running():
        rig.api.put("podgroups", group("train", 20))
        for index in range(20):
            rig.api.put("pods", pod(f"train-{index}", "train"))
            await rig.settle(0.15)
        await rig.until(lambda: rig.phase("train") == "Running")
        await rig.settle()
    assert [reason for reason, _ in rig.events("train")] == ["Scheduled"]
    assert rig.api.sent("PATCH", "/pods/") == []


async def test_a_gang_that_stops_arriving_says_what_it_lacks(rig: Rig) -> None:
    rig.nodes(4)
    async with rig.running():
        rig.api.put("podgroups", group("train", 4))
        for index in range(3):
            rig.api.put("pods", pod(f"train-{index}", "train"))
            await rig.settle(0.15)
        await rig.until(lambda: rig.events("train"), within=0.5)
    assert [reason for reason, _ in rig.events("train")] == ["GangIncomplete"]


async def test_a_waiting_gang_starts_when_a_node_comes(rig: Rig) -> None:
    rig.nodes(4)
    async with rig.running():
        rig.gang("train", 5)
        await rig.settle()
        rig.api.put("nodes", node("n4"))
        await rig.until(lambda: len(rig.bound_of("train")) == 5)
        await rig.settle()
    assert rig.api.condition("podgroups", "train", "Unschedulable")["status"] == "False"
    assert rig.api.condition("podgroups", "train", "Scheduled")["status"] == "True"
    assert rig.phase("train") == "Running"


async def test_a_group_without_pods_is_inqueue_at_once(rig: Rig) -> None:
    async with rig.running():
        rig.api.put("podgroups", group("empty", 3))
        await rig.until(lambda: rig.phase("empty") == "Inqueue", within=0.5)
        await rig.settle()
        condition = rig.api.condition("podgroups", "empty", "Unschedulable")
        assert condition["reason"] == "NotEnoughTasks"


@pytest.mark.parametrize(
    ("queue", "phase", "reason"),
    [
        ({"metadata": {"name": "q"}, "spec": {}}, "Inqueue", ""),
        ({"metadata": {"name": "q"}, "spec": {}, "status": {"state": "Open"}}, "Inqueue", ""),
        (
            {"metadata": {"name": "q"}, "spec": {}, "status": {"state": "Closed"}},
            "Pending",
            "QueueClosed",
        ),
        (
            {"metadata": {"name": "q"}, "spec": {}, "status": {"state": "Closing"}},
            "Pending",
            "QueueClosed",
        ),
        (None, "Pending", "QueueMissing"),
    ],
)
async def test_only_an_open_queue_lets_a_gang_in(
    rig: Rig, queue: dict[str, object] | None, phase: str, reason: str
) -> None:
    rig.nodes(1)
    if queue is not None:
        rig.api.put("queues", queue)
    rig.api.put("podgroups", group("g", 1, queue="q"))
    rig.api.put("pods", pod("g-0", "g"))
    async with rig.running():
        await rig.settle()
        if reason:
            assert rig.phase("g") == phase
            assert rig.api.placed() == {}
            assert rig.api.condition("pods", "g-0", "PodScheduled")["reason"] == reason
            assert rig.api.condition("podgroups", "g", "Unschedulable")["reason"] == reason
        else:
            assert rig.api.placed() == {"g-0": "n0"}


async def test_pods_of_a_gang_with_missing_members_say_so(rig: Rig) -> None:
    rig.nodes(4)
    rig.api.put("podgroups", group("g", 3))
    rig.api.put("pods", pod("g-0", "g"))
    async with rig.running():
        await rig.settle()
        assert rig.api.condition("pods", "g-0", "PodScheduled")["reason"] == "GangIncomplete"
        condition = rig.api.condition("podgroups", "g", "Unschedulable")
        assert condition["reason"] == "NotEnoughTasks"
        assert rig.api.placed() == {}


async def test_a_pod_whose_group_does_not_exist_waits_for_it(rig: Rig) -> None:
    rig.nodes(1)
    async with rig.running():
        rig.api.put("pods", pod("g-0", "g"))
        await rig.settle()
        said = rig.api.condition("pods", "g-0", "PodScheduled")
        assert said["reason"] == "GangIncomplete"
        assert said["message"] == "waits for PodGroup g, which does not exist"
        rig.api.put("podgroups", group("g", 1))
        await rig.until(lambda: rig.api.placed() == {"g-0": "n0"})


async def test_a_deleted_group_binds_nobody_any_more(rig: Rig) -> None:
    rig.nodes(1)
    rig.gang("g", 2)
    async with rig.running():
        await rig.settle()
        rig.api.delete("podgroups", "g")
        await rig.settle()
        rig.api.put("nodes", node("n1"))
        await rig.settle()
        assert rig.api.placed() == {}
        said = rig.api.condition("pods", "g-0", "PodScheduled")
        assert said["message"] == "waits for PodGroup g, which does not exist"


async def test_plain_pods_are_groups_of_one(rig: Rig) -> None:
    rig.nodes(1)
    rig.api.put("pods", pod("a", owned=False))
    rig.api.put("podgroups", group("g", 5))
    for index in range(2):
        rig.api.put("pods", pod(f"b{index}", "g", annotations={"posse.dev/gang": "false"}))
    async with rig.running():
        await rig.settle()
        assert rig.api.placed() == {"a": "n0"}
        assert rig.api.condition("pods", "b0", "PodScheduled")["reason"] == "Unschedulable"
        assert rig.events("a") == [("Scheduled", "Successfully assigned ns/a to n0")]
        assert [reason for reason, _ in rig.events("b0")] == ["FailedScheduling"]


async def test_pods_of_other_schedulers_only_take_room(rig: Rig) -> None:
    rig.nodes(1)
    rig.api.put("pods", pod("theirs", scheduler="other", nodeName="n0"))
    rig.api.put("pods", pod("waiting", scheduler="other"))
    rig.api.put("pods", pod("ours"))
    async with rig.running():
        await rig.settle()
        assert rig.api.placed() == {"theirs": "n0"}
        assert rig.api.condition("pods", "waiting", "PodScheduled") == {}


async def test_where_there_is_no_other_scheduler_every_pod_is_ours(rig: Rig) -> None:
    rig.nodes(1)
    rig.api.put("pods", pod("any", scheduler="default-scheduler"))
    async with rig.running(claim_all=True):
        await rig.until(lambda: rig.api.placed() == {"any": "n0"})


async def test_finished_pods_take_no_room(rig: Rig) -> None:
    rig.nodes(1)
    rig.api.put("pods", pod("done", nodeName="n0") | {"status": {"phase": "Succeeded"}})
    rig.api.put("pods", pod("next"))
    async with rig.running():
        await rig.until(lambda: rig.api.placed().get("next") == "n0")


async def test_a_gated_pod_is_no_member_until_its_gates_are_open(rig: Rig) -> None:
    rig.nodes(2)
    rig.api.put("podgroups", group("g", 2))
    rig.api.put("pods", pod("g-0", "g"))
    rig.api.put("pods", pod("g-1", "g", schedulingGates=[{"name": "wait"}]))
    async with rig.running():
        await rig.settle()
        assert rig.api.placed() == {}
        assert rig.api.condition("pods", "g-1", "PodScheduled") == {}
        rig.api.change("pods", "g-1", spec={"schedulingGates": []})
        await rig.until(lambda: len(rig.api.placed()) == 2)


async def test_a_pod_with_resource_claims_is_never_bound_and_says_why(rig: Rig) -> None:
    rig.nodes(4)
    rig.api.put("podgroups", group("g", 2))
    rig.api.put("pods", pod("g-0", "g"))
    rig.api.put("pods", pod("g-1", "g", resourceClaims=[{"name": "gpu"}]))
    async with rig.running():
        await rig.settle()
        assert rig.api.placed() == {}
        said = rig.api.condition("pods", "g-1", "PodScheduled")
        assert said["reason"] == "NotSupported"
        assert "does not allocate" in said["message"]
        told = rig.api.condition("podgroups", "g", "Unschedulable")["message"]
        assert "g-1 has resourceClaims" in told


@pytest.mark.parametrize("by", ["pod", "class"])
async def test_the_higher_priority_goes_first(rig: Rig, by: str) -> None:
    rig.nodes(1)
    rig.api.put("priorityclasses", {"metadata": {"name": "high"}, "value": 100})
    rig.api.put("podgroups", group("a", 1))
    rig.api.put("pods", pod("a-0", "a", priority=5))
    rig.api.put("podgroups", group("b", 1, priorityClassName="high" if by == "class" else ""))
    rig.api.put("pods", pod("b-0", "b", priority=0 if by == "class" else 10))
    async with rig.running():
        await rig.settle()
        assert rig.api.placed() == {"b-0": "n0"}


async def test_a_verdict_that_does_not_stand_is_not_written(rig: Rig) -> None:
    rig.nodes(4)
    async with rig.running():
        await rig.settle()
        rig.gang("train", 4)
        await rig.until(lambda: len(rig.bound_of("train")) == 4)
        await rig.settle()
    assert rig.api.sent("PATCH", "/pods/") == []
    assert [reason for reason, _ in rig.events("train")] == ["Scheduled"]


async def test_an_unchanged_cluster_is_written_to_once(rig: Rig) -> None:
    rig.nodes(1)
    rig.gang("train", 2)
    async with rig.running():
        await rig.settle(5)
        before = len(rig.api.writes)
        await rig.settle(60)
        after = [w for w in rig.api.writes[before:] if "leases" not in w.path]
        assert after == []


async def test_counts_and_phase_follow_the_pods_to_the_end(rig: Rig) -> None:
    rig.nodes(2)
    rig.gang("train", 2)
    async with rig.running():
        await rig.until(lambda: len(rig.api.placed()) == 2)
        for index in range(2):
            rig.api.change("pods", f"train-{index}", status={"phase": "Running"})
        await rig.settle()
        assert rig.api.get("podgroups", "train")["status"]["running"] == 2
        rig.api.change("pods", "train-0", status={"phase": "Failed"})
        await rig.settle()
        status = rig.api.get("podgroups", "train")["status"]
        assert (status["phase"], status["running"], status["failed"]) == ("Unknown", 1, 1)
        rig.api.delete("pods", "train-0")
        rig.api.put("pods", pod("train-0", "train"))
        await rig.until(lambda: len(rig.api.placed()) == 2)
        await rig.settle()
        assert rig.phase("train") == "Running"
        for index in range(2):
            rig.api.change("pods", f"train-{index}", status={"phase": "Succeeded"})
        await rig.settle()
        status = rig.api.get("podgroups", "train")["status"]
        assert (status["phase"], status["running"], status["succeeded"]) == ("Completed", 0, 2)


async def test_a_gang_that_ended_and_is_made_anew_starts_whole_again(rig: Rig) -> None:
    rig.nodes(2)
    rig.gang("train", 2)
    async with rig.running():
        await rig.until(lambda: rig.phase("train") == "Running")
        for index in range(2):
            rig.api.delete("pods", f"train-{index}")
        await rig.until(lambda: rig.phase("train") == "Inqueue")
        rig.api.change("nodes", "n1", spec={"unschedulable": True})
        await rig.settle()
        for index in range(2):
            rig.api.put("pods", pod(f"train-{index}", "train"))
        await rig.settle()
        assert rig.api.placed() == {}


async def test_crds_that_are_not_there_yet_stop_nobody(rig: Rig) -> None:
    rig.api.served = set()
    rig.nodes(2)
    rig.api.put("pods", pod("alone"))
    rig.api.put("pods", pod("g-0", "g"))
    async with rig.running():
        await rig.until(lambda: rig.api.placed().get("alone"))
        rig.api.served = {"podgroups", "podgroups/status", "queues"}
        rig.api.put("podgroups", group("g", 1))
        await rig.until(lambda: rig.api.placed().get("g-0"))


async def test_what_is_not_served_is_said_in_one_line_and_is_no_warning(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "posse.scheduler")
    rig.nodes(1)
    async with rig.running():
        await rig.settle()
    (said,) = [record for record in caplog.records if "not served" in record.getMessage()]
    assert said.levelno == logging.INFO
    assert "hypernodes.topology.volcano.sh" in said.getMessage()
