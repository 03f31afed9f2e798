"""A running gang that loses all its members at once: who is waited for, and for how long."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from posse.engine.facts import Keeps, Purpose, Toleration
from posse.engine.policy import Policy
from posse.objects import keys
from posse.objects.groups import PodGroup
from posse.objects.kinds import COSCHEDULING_POD_GROUP, NATIVE_POD_GROUPS, POD_GROUP, Kind
from posse.objects.meta import ObjectMeta, OwnerReference
from posse.scheduler.reading.groups import goes_with_its_job
from posse.scheduler.reading.keeps import read_keeps, write_keeps
from posse.scheduler.reading.quarantine import Unreadable
from tests.scenarios.language import shape
from tests.unit.scheduler.rig import Rig, crash, group, pod

STEADY = Policy(preemption=False, reclaim=False, backfill=False)
MEMBERS = ("train-0", "train-1")
JOB = {"apiVersion": "v1", "kind": "J", "name": "j", "uid": "j", "controller": True}
DRAINED = {
    "conditions": [
        {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
    ]
}
SPARED = {"conditions": [{"type": "DisruptionTarget", "status": "False"}]}


@pytest.fixture
async def rig() -> Rig:
    return Rig()


async def training(rig: Rig, *, made_by_job: bool = True, **options: Any) -> None:
    """A gang that runs whole on one node."""
    made = group("train", 2)
    if made_by_job:
        made["metadata"]["ownerReferences"] = [JOB]
    rig.api.put("podgroups", made)
    arrive(rig, **options)
    await rig.until(lambda: len(rig.bound_of("train")) == 2)
    for name in MEMBERS:
        rig.api.change("pods", name, status={"phase": "Running"})
    await rig.settle()
    assert rig.phase("train") == "Running"


def arrive(rig: Rig, **options: Any) -> None:
    for name in MEMBERS:
        rig.api.put("pods", pod(name, "train", 1, **options))


def lose(rig: Rig, *names: str, **status: Any) -> None:
    for name in names or MEMBERS:
        if status:
            rig.api.change("pods", name, status=status)
        rig.api.delete("pods", name)


def thief(rig: Rig) -> None:
    rig.api.put("podgroups", group("thief", 1))
    rig.api.put("pods", pod("thief-0", "thief", 1, priority=1000))


def kept(rig: Rig) -> dict[str, list[str]] | None:
    text = rig.api.get("podgroups", "train")["metadata"].get("annotations", {}).get(keys.KEEPS)
    if text is None:
        return None
    seats: dict[str, list[str]] = json.loads(text)["seats"]
    return seats


# -- who is waited for ---------------------------------------------------------------------------


@pytest.mark.looptime
async def test_what_a_job_made_group_lost_comes_back_to_its_seats(rig: Rig) -> None:
    rig.nodes(1)
    async with rig.running(policy=STEADY):
        await training(rig)
        lose(rig)
        thief(rig)
        await rig.until(lambda: kept(rig) == {"": ["n0", "n0"]})
        await rig.settle(300)
        assert rig.bound_of("thief") == {}
        assert rig.phase("train") == "Unknown"
        says = rig.api.condition("podgroups", "train", "Unschedulable")["message"]
        assert says == "0 of 2 pods exist; 2 seats on n0 kept for their successors"
        arrive(rig)
        await rig.until(lambda: len(rig.bound_of("train")) == 2)
        await rig.until(lambda: kept(rig) is None)
        assert rig.bound_of("thief") == {}
    rig.check()


@pytest.mark.looptime
async def test_a_job_that_starts_its_failed_pods_anew_keeps_its_seats(rig: Rig) -> None:
    """As a controller does it: one fails, it deletes them all, and takes its time."""
    rig.nodes(1)
    async with rig.running(policy=STEADY):
        await training(rig)
        thief(rig)
        rig.api.change("pods", "train-0", status={"phase": "Failed"})
        await rig.settle()
        lose(rig, "train-0")
        await rig.settle()
        lose(rig, "train-1")
        await rig.settle(120)
        assert rig.bound_of("thief") == {}
        arrive(rig)
        await rig.until(lambda: len(rig.bound_of("train")) == 2)
    rig.check()


def _mixed(rig: Rig) -> None:
    lose(rig, "train-0", **DRAINED)
    lose(rig, "train-1")


def _fail(rig: Rig) -> None:
    for name in MEMBERS:
        rig.api.change("pods", name, status={"phase": "Failed"})


def _end(rig: Rig) -> None:
    _fail(rig)
    rig.api.change("pods", "train-0", status={"phase": "Succeeded"})


def _succeed(rig: Rig, *names: str) -> None:
    for name in MEMBERS:
        if name in names:
            rig.api.change("pods", name, status={"phase": "Succeeded"})
        else:
            rig.api.delete("pods", name)


SENT_AWAY: list[tuple[str, Callable[[Rig], None], bool, bool]] = [
    # What happens to the members; whether a job made the group; whether seats are kept.
    ("deleted with the job", lose, False, False),
    ("drained", lambda rig: lose(rig, **DRAINED), False, True),
    ("not drained after all", lambda rig: lose(rig, **SPARED), False, False),
    ("one drained, one deleted", _mixed, False, False),
    ("turned away", lambda rig: lose(rig, phase="Failed", reason="OutOfcpu"), False, True),
    ("failed, not deleted", _fail, False, False),
    ("failed, not deleted", _fail, True, True),
    ("ended well", lambda rig: _succeed(rig, *MEMBERS), True, False),
    ("one ended well", lambda rig: _succeed(rig, "train-0"), True, False),
    ("one ended well, one failed", _end, True, False),
]


@pytest.mark.looptime
@pytest.mark.parametrize(
    ("happen", "made_by_job", "waited_for"),
    [case[1:] for case in SENT_AWAY],
    ids=[f"{case[0]}, {'job' if case[2] else 'user'}" for case in SENT_AWAY],
)
async def test_who_is_waited_for(
    rig: Rig, happen: Callable[[Rig], None], made_by_job: bool, waited_for: bool
) -> None:
    rig.nodes(1)
    async with rig.running(policy=STEADY):
        await training(rig, made_by_job=made_by_job)
        happen(rig)
        thief(rig)
        await rig.settle(60)
        assert bool(rig.bound_of("thief")) is not waited_for
        assert (kept(rig) is not None) is waited_for


@pytest.mark.looptime
async def test_pods_that_nobody_recreates_are_not_waited_for(rig: Rig) -> None:
    rig.nodes(1)
    async with rig.running(policy=STEADY):
        await training(rig, owned=False)
        lose(rig)
        thief(rig)
        await rig.until(lambda: rig.bound_of("thief"))
        assert kept(rig) is None


@pytest.mark.looptime
async def test_a_job_that_is_deleted_or_rests_frees_its_room_with_its_group(rig: Rig) -> None:
    rig.nodes(1)
    async with rig.running(policy=STEADY):
        await training(rig)
        lose(rig)
        thief(rig)
        await rig.until(lambda: kept(rig) is not None)
        rig.api.delete("podgroups", "train")
        await rig.until(lambda: rig.bound_of("thief"), within=1)


@pytest.mark.looptime
async def test_a_group_that_is_on_its_way_out_keeps_nothing(rig: Rig) -> None:
    rig.nodes(1)
    async with rig.running(policy=STEADY):
        await training(rig)
        lose(rig)
        thief(rig)
        await rig.until(lambda: kept(rig) is not None)
        deleting = {
            "deletionTimestamp": "2020-09-13T12:26:41Z",
            "finalizers": ["foregroundDeletion"],
        }
        rig.api.change("podgroups", "train", metadata=deleting)
        await rig.until(lambda: rig.bound_of("thief"), within=1)


@pytest.mark.looptime
async def test_successors_that_a_users_job_takes_back_are_not_waited_for(rig: Rig) -> None:
    rig.nodes(1)
    async with rig.running(policy=STEADY):
        await training(rig, made_by_job=False)
        thief(rig)
        rig.api.change("nodes", "n0", spec={"unschedulable": True})
        lose(rig, **DRAINED)
        arrive(rig)
        await rig.settle()
        for name in MEMBERS:
            rig.api.delete("pods", name)
        rig.api.change("nodes", "n0", spec={"unschedulable": False})
        await rig.until(lambda: rig.bound_of("thief"))


@pytest.mark.looptime
async def test_whom_we_let_go_begin_anew(rig: Rig) -> None:
    """Ended for another: the group is as one that never ran, and takes no room back."""
    rig.nodes(1)
    async with rig.running(policy=Policy(min_runtime=0.0, backfill=False)):
        await training(rig)
        rig.api.put("podgroups", group("urgent", 2))
        for at in range(2):
            rig.api.put("pods", pod(f"urgent-{at}", "urgent", 1, priority=1000))
        await rig.until(lambda: len(rig.bound_of("urgent")) == 2)
        await rig.settle()
        assert rig.phase("train") == "Inqueue"
        assert kept(rig) is None
        arrive(rig)
        await rig.settle(60)
        assert rig.bound_of("train") == {}
        for at in range(2):
            rig.api.delete("pods", f"urgent-{at}")
        rig.api.delete("podgroups", "urgent")
        await rig.until(lambda: len(rig.bound_of("train")) == 2)
        for name in MEMBERS:
            rig.api.change("pods", name, status={"phase": "Running"})
        await rig.settle()
        lose(rig)
        await rig.until(lambda: kept(rig) == {"": ["n0", "n0"]})


# -- for how long --------------------------------------------------------------------------------


@pytest.mark.looptime
async def test_nobody_is_waited_for_longer_than_for_one_of_them(rig: Rig) -> None:
    rig.nodes(1)
    async with rig.running(policy=STEADY):
        await training(rig)
        lose(rig)
        thief(rig)
        await rig.settle(590)
        assert rig.bound_of("thief") == {}
        await rig.until(lambda: rig.bound_of("thief"), within=20)
        await rig.settle()
        assert kept(rig) is None
        assert rig.phase("train") == "Inqueue"
        assert (
            "it lost all its pods and was not whole again in 10m"
            in dict(rig.events("train"))["GangReleased"]
        )


@pytest.mark.looptime
async def test_seats_are_kept_across_a_restart_of_the_scheduler(rig: Rig) -> None:
    rig.nodes(2)
    first = rig.start(policy=STEADY)
    await training(rig)
    (on,) = set(rig.bound_of("train").values())
    lose(rig)
    await rig.until(lambda: kept(rig) == {"": [on, on]})
    await rig.until(lambda: rig.phase("train") == "Unknown")
    lost = rig.world.monotonic()
    await crash(first)
    rig.gang("big", 2)
    await asyncio.sleep(100)
    second = rig.start(policy=STEADY)
    await rig.settle(60)
    assert rig.bound_of("big") == {}
    assert kept(rig) == {"": [on, on]}
    await crash(second)
    async with rig.running(policy=STEADY):
        arrive(rig)
        await rig.until(lambda: rig.bound_of("train") == dict.fromkeys(MEMBERS, on))
        await rig.until(lambda: kept(rig) is None)
        assert rig.bound_of("big") == {}
        assert rig.world.monotonic() - lost < 600
    rig.check()


@pytest.mark.looptime
async def test_a_restart_does_not_begin_the_time_anew(rig: Rig) -> None:
    rig.nodes(1)
    first = rig.start(policy=STEADY)
    await training(rig)
    lose(rig)
    await rig.until(lambda: kept(rig) is not None and rig.phase("train") == "Unknown")
    await asyncio.sleep(400)
    await crash(first)
    thief(rig)
    async with rig.running(policy=STEADY):
        await rig.settle(190)
        assert rig.bound_of("thief") == {}
        await rig.until(lambda: rig.bound_of("thief"), within=20)
        await rig.until(lambda: kept(rig) is None)


@pytest.mark.looptime
async def test_who_went_while_nobody_looked_is_not_waited_for(rig: Rig) -> None:
    """Nothing tells of them any more: neither what they asked for, nor how they went."""
    rig.nodes(1)
    first = rig.start(policy=STEADY)
    await training(rig)
    await crash(first)
    lose(rig)
    thief(rig)
    async with rig.running(policy=STEADY):
        await rig.until(lambda: rig.bound_of("thief"))
        await rig.until(lambda: rig.phase("train") == "Inqueue")


@pytest.mark.looptime
async def test_one_that_came_back_has_as_much_time_to_run_as_any_other(rig: Rig) -> None:
    rig.nodes(1)
    async with rig.running(policy=STEADY):
        await training(rig)
        rig.api.change("podgroups", "train", metadata={"annotations": {keys.START_TIMEOUT: "5m"}})
        lose(rig)
        await rig.settle()
        arrive(rig)
        await rig.until(lambda: len(rig.bound_of("train")) == 2)
        await rig.settle(290)
        assert len(rig.bound_of("train")) == 2
        await rig.until(lambda: not rig.bound_of("train"), within=30)
        await rig.settle()
        assert "are not running 5m after" in dict(rig.events("train"))["GangReleased"]


# -- what is written -----------------------------------------------------------------------------


def test_what_the_lost_asked_for_reads_as_it_was_written() -> None:
    picky = shape(
        gpus=2,
        cores=0.5,
        selector={"gpu": "h100"},
        tolerations=[Toleration("gpu", "Exists"), Toleration("a", "Equal", "b", "NoSchedule")],
    )
    asks = (("ps", shape(cores=1)), ("worker", picky))
    keeps = Keeps(Purpose.REPAIR, (("ps", "n9"), ("worker", "n1")), 1700000000.0, asks)
    text = write_keeps(keeps)
    assert json.loads(text)["asks"]["worker"] == {
        "requests": {"cpu": "500m", "nvidia.com/gpu": "2"},
        "nodeSelector": {"gpu": "h100"},
        "tolerations": [
            {"key": "gpu", "operator": "Exists"},
            {"key": "a", "operator": "Equal", "value": "b", "effect": "NoSchedule"},
        ],
    }
    assert read_keeps(text) == keeps


@pytest.mark.parametrize(
    "asked",
    ["[]", "{}", '{"requests": {"cpu": "many"}}', '{"requests": {"cpu": "-1"}}',
     '{"requests": {}, "more": 1}'],
)  # fmt: skip
def test_what_nobody_could_have_asked_for(asked: str) -> None:
    text = f'{{"purpose": "repair", "seats": {{"w": ["n1"]}}, "asks": {{"w": {asked}}}}}'
    with pytest.raises(Unreadable, match=r"posse\.dev/keeps"):
        read_keeps(text)


@pytest.mark.parametrize(
    ("kind", "controlled", "goes"),
    [
        (POD_GROUP, True, True),
        (POD_GROUP, False, False),
        (COSCHEDULING_POD_GROUP, True, True),
        (NATIVE_POD_GROUPS[0], True, False),
    ],
)
def test_which_groups_go_with_their_jobs(kind: Kind, controlled: bool, goes: bool) -> None:
    owner = OwnerReference(api_version="v1", kind="J", name="j", uid="j", controller=controlled)
    found = PodGroup(metadata=ObjectMeta(name="g", owner_references=[owner]))
    assert goes_with_its_job(found, kind) is goes
