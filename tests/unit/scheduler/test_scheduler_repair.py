"""Seats of lost members and gangs that never come to run: from objects to what is written."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import msgspec
import pytest

from posse.engine.decisions import Keep
from posse.engine.facts import Keeps, Purpose
from posse.engine.policy import Policy
from posse.engine.view import View
from posse.kube.cache import Change
from posse.kube.connection import Connection
from posse.objects import keys
from posse.objects.groups import PodGroup, PodGroupSpec
from posse.objects.meta import ObjectMeta
from posse.objects.pods import Pod
from posse.objects.times import parse_time, rfc3339
from posse.scheduler.abstaining import SilentRecords
from posse.scheduler.keeping import Keeper
from posse.scheduler.reading.claims import Claims
from posse.scheduler.reading.estimates import Times, read_times
from posse.scheduler.reading.groups import read_count, read_group
from posse.scheduler.reading.keeps import read_keeps, write_keeps
from posse.scheduler.reading.minimums import read_min_resources, read_role_minimums
from posse.scheduler.reading.pods import bound_at, trouble_of, turned_away
from posse.scheduler.reading.quarantine import Quarantine, Unreadable
from posse.scheduler.reading.reader import Reader
from tests.unit.scheduler.rig import Rig, crash, group, node, pod

STEADY = Policy(preemption=False, reclaim=False, backfill=False)
GPU = "nvidia.com/gpu"


# -- what groups say -----------------------------------------------------------------------------


def test_kept_seats_read_as_they_were_written() -> None:
    keeps = Keeps(Purpose.REPAIR, (("ps", "n9"), ("worker", "n1"), ("worker", "n1")), 1700000000.0)
    text = write_keeps(keeps)
    assert json.loads(text) == {
        "purpose": "repair",
        "until": "2023-11-14T22:13:20Z",
        "seats": {"ps": ["n9"], "worker": ["n1", "n1"]},
    }
    assert read_keeps(text) == keeps


def test_kept_seats_without_an_end() -> None:
    keeps = Keeps(Purpose.RESERVATION, (("", "n1"),))
    assert read_keeps(write_keeps(keeps)) == keeps


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", "null", "{}", '{"purpose": "repair"}',
        '{"purpose": "sport", "seats": {}}',
        '{"purpose": "repair", "seats": {"w": "n1"}}',
        '{"purpose": "repair", "seats": {"w": [""]}}',
        '{"purpose": "repair", "seats": {"w": [1]}}',
        '{"purpose": "repair", "seats": {}, "until": "soon"}',
        '{"purpose": "repair", "seats": {}, "until": 5}',
        '{"purpose": "repair", "seats": {}, "until": "9999-12-31T23:59:59.9Z"}',
        '{"purpose": "repair", "seats": {}, "until": "0001-01-01T00:00:00+05:00"}',
        '{"purpose": "repair", "seats": {}, "more": 1}',
        "[" * 100_000,
    ],
)  # fmt: skip
def test_kept_seats_that_nobody_could_have_written(text: str) -> None:
    with pytest.raises(Unreadable, match=r"posse\.dev/keeps"):
        read_keeps(text)


@pytest.mark.parametrize(
    ("minimums", "least", "read"),
    [
        ({}, 3, ()),
        ({"worker": 2, "ps": 1}, 3, (("ps", 1), ("worker", 2))),
        ({"worker": 2, "ps": 0}, 3, (("worker", 2),)),
        ({"worker": 2, "ps": 2}, 3, ()),  # Volcano's rule: more than the whole minimum
    ],
)
def test_minimums_of_roles(
    minimums: dict[str, int], least: int, read: tuple[tuple[str, int], ...]
) -> None:
    assert read_role_minimums(PodGroupSpec(min_task_member=minimums), least) == read


def test_who_leads_is_part_of_any_minimum() -> None:
    meta = ObjectMeta(name="g", annotations={keys.LEADS: "chief"})
    group = PodGroup(metadata=meta, spec=PodGroupSpec(min_member=2))
    assert read_group(group).role_minimums == (("chief", 1),)


def test_a_minimum_below_nobody() -> None:
    with pytest.raises(Unreadable, match="minTaskMember"):
        read_role_minimums(PodGroupSpec(min_task_member={"ps": -1}), 3)


def test_a_least_amount_of_resources() -> None:
    spec = PodGroupSpec(
        min_resources={
            "cpu": "1500m",
            "requests.nvidia.com/gpu": "4",
            "limits.cpu": "64",
            "count/pods": "3",
            "memory": "0",
        }
    )
    assert read_min_resources(spec) == (("cpu", 1500), (GPU, 4))


@pytest.mark.parametrize("amount", ["many", "-1", ""])
def test_a_least_amount_that_is_none(amount: str) -> None:
    with pytest.raises(Unreadable, match="minResources"):
        read_min_resources(PodGroupSpec(min_resources={"cpu": amount}))


def test_times() -> None:
    said = {
        keys.START_TIMEOUT: "10m",
        keys.MAX_RUNTIME: "1h30m",
        keys.MIN_RUNTIME: "0s",
        keys.CHECKPOINT_INTERVAL: "90s",
    }
    assert read_times(said) == Times(600.0, 5400.0, 0.0, 90.0)
    assert read_times({}) == Times()


@pytest.mark.parametrize("text", ["", "soon", "10", "-5m"])
def test_times_that_are_none(text: str) -> None:
    assert read_times({keys.START_TIMEOUT: text, keys.MAX_RUNTIME: "1h"}) == Times(runs_for=3600.0)


def a_pod(**status: Any) -> Pod:
    return msgspec.convert(pod("p", nodeName="n0") | {"status": status}, Pod)


def waiting(reason: str, message: str = "") -> dict[str, Any]:
    return {"name": "c", "state": {"waiting": {"reason": reason, "message": message}}}


TROUBLES = [
    ({"phase": "Running"}, ""),
    ({"phase": "Pending"}, ""),
    ({"phase": "Pending", "containerStatuses": [waiting("ContainerCreating")]}, ""),
    ({"phase": "Pending", "containerStatuses": [waiting("ErrImagePull")]}, "ErrImagePull"),
    (
        {
            "phase": "Pending",
            "initContainerStatuses": [waiting("CrashLoopBackOff")],
            "containerStatuses": [waiting("PodInitializing")],
        },
        "CrashLoopBackOff",
    ),
    ({"phase": "Running", "containerStatuses": [waiting("CrashLoopBackOff")]}, ""),
    (
        {"phase": "Pending", "containerStatuses": [waiting("ConfigError", "no\nsecret s")]},
        "ConfigError (no secret s)",
    ),
    (
        {"phase": "Pending", "containerStatuses": [waiting("ErrImagePull", "x" * 9000)]},
        f"ErrImagePull ({'x' * 200}...)",
    ),
    (
        {"phase": "Failed", "reason": "OutOfcpu", "message": "no cores"},
        "OutOfcpu (no cores)",
    ),
    ({"phase": "Pending", "message": "nobody's"}, ""),
]


@pytest.mark.parametrize(("status", "trouble"), TROUBLES)
def test_why_a_pod_does_not_run(status: dict[str, Any], trouble: str) -> None:
    assert trouble_of(a_pod(**status)) == trouble


@pytest.mark.parametrize(
    ("status", "turned"),
    [
        ({"phase": "Failed", "reason": "OutOfcpu"}, True),
        ({"phase": "Failed", "reason": "OutOfnvidia.com/gpu"}, True),
        ({"phase": "Failed", "reason": "UnexpectedAdmissionError"}, True),
        ({"phase": "Failed", "reason": "Evicted"}, False),
        ({"phase": "Failed", "reason": "Evicted", "message": "Pod was rejected: x"}, True),
        ({"phase": "Failed"}, False),
        ({"phase": "Running", "reason": "OutOfcpu"}, False),
    ],
)
def test_whether_a_node_would_not_have_a_pod(status: dict[str, Any], turned: bool) -> None:
    assert turned_away(a_pod(**status)) is turned


@pytest.mark.parametrize(
    ("condition", "since"),
    [
        ({"status": "True", "lastTransitionTime": "1970-01-01T00:01:40Z"}, 100.0),
        ({"status": "False", "lastTransitionTime": "1970-01-01T00:01:40Z"}, None),
        ({"status": "True"}, None),
        ({"status": "True", "lastTransitionTime": "lately"}, None),
    ],
)
def test_since_when_a_pod_has_its_node(condition: dict[str, Any], since: float | None) -> None:
    bound = a_pod(phase="Pending", conditions=[{"type": "PodScheduled", **condition}])
    assert bound_at(bound) == since


@pytest.mark.parametrize("key", [keys.EVICTIONS, keys.OVERTAKEN])
def test_how_often(key: str) -> None:
    assert read_count({}, key) == 0
    assert read_count({key: "12"}, key) == 12
    for text in ("", "-1", "many", "1.5", "9" * 30):
        with pytest.raises(Unreadable, match=re.escape(key)):
            read_count({key: text}, key)


# -- what is written -----------------------------------------------------------------------------


@pytest.fixture
async def rig() -> Rig:
    return Rig()


def run_all(rig: Rig, gang: str) -> None:
    for name in rig.bound_of(gang):
        rig.api.change("pods", name, status={"phase": "Running"})


async def training(rig: Rig, members: int = 3) -> None:
    """A gang that runs whole on as many nodes."""
    rig.gang("train", members)
    await rig.until(lambda: len(rig.bound_of("train")) == members)
    run_all(rig, "train")
    await rig.settle()


def thief(rig: Rig) -> None:
    rig.api.put("podgroups", group("thief", 1))
    rig.api.put("pods", pod("thief-0", "thief", priority=1000))


def kept(rig: Rig) -> dict[str, list[str]] | None:
    text = rig.api.get("podgroups", "train")["metadata"].get("annotations", {}).get(keys.KEEPS)
    if text is None:
        return None
    seats: dict[str, list[str]] = json.loads(text)["seats"]
    return seats


@pytest.mark.looptime
async def test_a_lost_members_seat_is_written_down_and_its_successors(rig: Rig) -> None:
    rig.nodes(3)
    async with rig.running(policy=STEADY):
        await training(rig)
        on = rig.bound_of("train")["train-1"]
        rig.api.delete("pods", "train-1")
        thief(rig)
        await rig.until(lambda: kept(rig) == {"": [on]})
        await rig.settle(60)
        assert rig.bound_of("thief") == {}
        until = json.loads(rig.api.get("podgroups", "train")["metadata"]["annotations"][keys.KEEPS])
        left = parse_time(until["until"]) - rig.world.now()
        assert 500 < left < STEADY.repair_hold
        rig.api.put("pods", pod("train-1", "train"))
        await rig.until(lambda: rig.bound_of("train").get("train-1") == on)
        await rig.until(lambda: kept(rig) is None)
        assert rig.bound_of("thief") == {}
    rig.check()


@pytest.mark.looptime
async def test_a_seat_is_kept_across_a_restart_of_the_scheduler(rig: Rig) -> None:
    rig.nodes(3)
    first = rig.start(policy=STEADY)
    await training(rig)
    on = rig.bound_of("train")["train-1"]
    rig.api.delete("pods", "train-1")
    await rig.until(lambda: kept(rig) == {"": [on]})
    await crash(first)
    thief(rig)
    await asyncio.sleep(100)
    async with rig.running(policy=STEADY):
        await rig.settle(60)
        assert rig.bound_of("thief") == {}
        assert kept(rig) == {"": [on]}
        rig.api.put("pods", pod("train-1", "train"))
        await rig.until(lambda: rig.bound_of("train").get("train-1") == on)
        await rig.until(lambda: kept(rig) is None)
    rig.check()


@pytest.mark.looptime
async def test_in_the_end_the_gang_is_released_whole_restart_or_not(rig: Rig) -> None:
    rig.nodes(3)
    first = rig.start(policy=STEADY)
    await training(rig)
    rig.api.delete("pods", "train-1")
    await rig.until(lambda: kept(rig) is not None)
    lost = rig.world.monotonic()
    await asyncio.sleep(400)
    await crash(first)
    thief(rig)
    async with rig.running(policy=STEADY):
        await rig.until(lambda: rig.bound_of("thief"), within=300)
        assert 590 < rig.world.monotonic() - lost < 610
        await rig.settle()
        assert rig.bound_of("train") == {}
        assert kept(rig) is None
        told = dict(rig.events("train"))
        assert "was not whole again in 10m" in told["GangReleased"]


@pytest.mark.looptime
async def test_a_write_that_fails_is_tried_again(rig: Rig) -> None:
    rig.nodes(3)
    failures = 3

    def fault(method: str, path: str) -> str | None:
        nonlocal failures
        if method == "PATCH" and path.endswith("/podgroups/train") and failures:
            failures -= 1
            return "drop"
        return None

    async with rig.running(policy=STEADY):
        await training(rig)
        rig.api.fault = fault
        rig.api.delete("pods", "train-1")
        await rig.until(lambda: kept(rig) is not None)
    assert failures == 0


@pytest.mark.looptime
async def test_of_several_changes_the_last_is_written_and_counts_are_not_lost(rig: Rig) -> None:
    rig.api.put("podgroups", group("g", 1))
    reader = Reader(View(), Claims((), True), Quarantine(SilentRecords()))
    reader.group(Change(None, msgspec.convert(rig.api.get("podgroups", "g"), PodGroup)))
    keeper = Keeper(Connection(rig.api, rig.world), rig.world, reader)
    running = asyncio.create_task(keeper.run())
    seats = Keeps(Purpose.RESERVATION, (("w", "n1"),))
    keeper.keep(Keep("ns/g", None, 3))
    keeper.keep(Keep("ns/g", seats))
    await rig.settle()
    written = rig.api.get("podgroups", "g")["metadata"]["annotations"]
    assert written == {keys.KEEPS: write_keeps(seats), keys.OVERTAKEN: "3"}
    assert len(rig.api.sent("PATCH", "podgroups")) == 1
    keeper.keep(Keep("ns/g", seats, 3))
    await rig.settle()
    assert len(rig.api.sent("PATCH", "podgroups")) == 1, "what is there is not written again"
    keeper.keep(Keep("ns/g", None, 0))
    keeper.keep(Keep("ns/gone", seats))
    await rig.settle()
    assert not rig.api.get("podgroups", "g")["metadata"]["annotations"]
    await crash(running)


@pytest.mark.looptime
async def test_malformed_keeps_are_set_aside_and_stop_nobody_else(rig: Rig) -> None:
    rig.nodes(3)
    rig.api.put("podgroups", group("bad", 1, annotations={keys.KEEPS: '{"purpose": "sport"}'}))
    rig.api.put("pods", pod("bad-0", "bad"))
    async with rig.running(policy=STEADY):
        thief(rig)
        await rig.until(lambda: rig.bound_of("thief"))
        await rig.settle()
        assert rig.bound_of("bad") == {}
        assert any(keys.KEEPS in message for _, message in rig.events("bad"))


@pytest.mark.looptime
async def test_a_member_that_ended_well_leaves_its_seat_to_others(rig: Rig) -> None:
    rig.nodes(3)
    async with rig.running(policy=STEADY):
        await training(rig)
        thief(rig)
        rig.api.change("pods", "train-1", status={"phase": "Succeeded"})
        await rig.until(lambda: rig.bound_of("thief"))
        assert kept(rig) is None


@pytest.mark.looptime
async def test_a_node_that_turned_a_member_away_is_not_tried_again_first(rig: Rig) -> None:
    rig.nodes(4)
    async with rig.running(policy=STEADY):
        await training(rig)
        on = rig.bound_of("train")["train-1"]
        (spare,) = {f"n{at}" for at in range(4)} - set(rig.bound_of("train").values())
        rejected = {"phase": "Failed", "reason": "OutOfnvidia.com/gpu"}
        rig.api.change("pods", "train-1", status=rejected)
        await rig.until(lambda: kept(rig) == {"": [spare]})
        rig.api.delete("pods", "train-1")
        rig.api.put("pods", pod("train-1", "train"))
        await rig.until(lambda: rig.bound_of("train").get("train-1") == spare)
        assert on != spare


@pytest.mark.looptime
async def test_roles_have_minimums_and_say_which_one_is_missing(rig: Rig) -> None:
    rig.nodes(3)
    rig.api.put("podgroups", group("tf", 2, minTaskMember={"ps": 1, "worker": 1}))
    for at in range(2):
        worker = pod(f"tf-{at}", "tf", annotations={keys.TASK_SPEC: "worker"})
        rig.api.put("pods", worker)
    async with rig.running(policy=STEADY):
        await rig.settle()
        assert rig.bound_of("tf") == {}
        says = rig.api.condition("podgroups", "tf", "Unschedulable")
        assert says["reason"] == "NotEnoughPodsOfTask"
        assert says["message"].startswith("0 of 1 ps pod exists")
        rig.api.put("pods", pod("tf-2", "tf", annotations={keys.TASK_SPEC: "ps"}))
        await rig.until(lambda: len(rig.bound_of("tf")) == 3)


@pytest.mark.looptime
async def test_a_least_amount_beyond_the_cluster_starts_nobody(rig: Rig) -> None:
    rig.nodes(3)
    rig.api.put("podgroups", group("vast", 1, minResources={GPU: "8"}))
    rig.api.put("pods", pod("vast-0", "vast"))
    async with rig.running(policy=STEADY):
        await rig.settle()
        assert rig.bound_of("vast") == {}
        says = rig.api.condition("podgroups", "vast", "Unschedulable")
        assert "asks for at least 8 GPUs in all (minResources)" in says["message"]


# -- from its nodes to running -------------------------------------------------------------------


@pytest.mark.looptime
async def test_a_gang_that_does_not_come_to_run_is_released_whole_and_says_why(rig: Rig) -> None:
    rig.nodes(2)
    rig.api.put("podgroups", group("stuck", 2, annotations={keys.START_TIMEOUT: "5m"}))
    for at in range(2):
        rig.api.put("pods", pod(f"stuck-{at}", "stuck"))
    async with rig.running(policy=STEADY):
        await rig.until(lambda: len(rig.bound_of("stuck")) == 2)
        where = rig.bound_of("stuck")["stuck-1"]
        waiting = {"name": "c", "state": {"waiting": {"reason": "ImagePullBackOff"}}}
        rig.api.change("pods", "stuck-0", status={"phase": "Running"})
        rig.api.change(
            "pods", "stuck-1", status={"phase": "Pending", "containerStatuses": [waiting]}
        )
        await rig.settle(280)
        assert len(rig.bound_of("stuck")) == 2
        await rig.until(lambda: not rig.bound_of("stuck"), within=40)
        await rig.settle()
        why = dict(rig.events("stuck"))["GangReleased"]
        assert why.startswith(
            f"1 of 2 pods is not running 5m after they got their nodes: stuck-1 on {where}"
            " ImagePullBackOff"
        )


@pytest.mark.looptime
async def test_pods_that_nobody_recreates_stay_and_their_group_says_why(rig: Rig) -> None:
    rig.nodes(2)
    rig.api.put("podgroups", group("stuck", 2, annotations={keys.START_TIMEOUT: "5m"}))
    for at in range(2):
        rig.api.put("pods", pod(f"stuck-{at}", "stuck", owned=False))
    async with rig.running(policy=STEADY):
        await rig.settle(400)
        assert len(rig.bound_of("stuck")) == 2
        assert "2 of 2 pods are not running 5m after" in dict(rig.events("stuck"))["StartTimeout"]


@pytest.mark.looptime
async def test_one_that_ran_is_not_released_for_starting_slowly_again(rig: Rig) -> None:
    rig.nodes(3)
    async with rig.running(policy=STEADY):
        await training(rig)
        rig.api.change("pods", "train-1", status={"phase": "Pending"})
        await rig.settle(4000)
        assert len(rig.bound_of("train")) == 3


@pytest.mark.looptime
async def test_a_gang_runs_on_under_a_group_made_anew_that_asks_for_more(rig: Rig) -> None:
    """A restart or not: that its members had their nodes before is on the objects."""
    rig.nodes(2)
    first = rig.start(policy=STEADY)
    await training(rig, 2)
    rig.api.delete("podgroups", "train")
    await rig.settle()
    anew = group("train", 3)
    anew["metadata"]["creationTimestamp"] = rfc3339(rig.world.now())
    rig.api.put("podgroups", anew)
    rig.api.put("pods", pod("train-2", "train"))
    await rig.settle(2 * STEADY.repair_hold)
    assert sorted(rig.bound_of("train")) == ["train-0", "train-1"]
    await crash(first)
    async with rig.running(policy=STEADY):
        await rig.settle(2 * STEADY.repair_hold)
        assert sorted(rig.bound_of("train")) == ["train-0", "train-1"]
        rig.api.put("nodes", node("n2"))
        await rig.until(lambda: len(rig.bound_of("train")) == 3)
