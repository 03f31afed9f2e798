"""Phases and conditions as a table: how the members are, what the PodGroup then says."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

from posse.engine.decisions import Reason, Verdict
from posse.objects.groups import PodGroup, Queue
from posse.objects.pods import Pod
from posse.scheduler.reading.briefing import facts_of
from posse.scheduler.reading.groups import read_group
from posse.scheduler.reading.members import Member
from posse.scheduler.reading.muster import Muster
from posse.scheduler.reading.pods import Place
from posse.scheduler.standing import group_status, phase, pod_condition, waiting
from posse.world import World
from tests.unit.scheduler.rig import group, pod

G, B, W, S, R, OK, KO = (
    Place.GATED,
    Place.BARRED,
    Place.WAITING,
    Place.BOUND,
    Place.RUNNING,
    Place.SUCCEEDED,
    Place.FAILED,
)


class Still:
    def now(self) -> float:
        return 1_600_000_000.0

    def monotonic(self) -> float:
        return 0.0


WORLD = World(Still(), random.Random(0))


def muster(members: list[Place], *, least: int = 3, was: str = "Inqueue", **status: Any) -> Muster:
    document = group("g", least)
    document["metadata"] |= {"namespace": "ns", "uid": "g"}
    document["status"] = {"phase": was} | status
    found = Muster("ns/g")
    podgroup = msgspec.convert(document, PodGroup)
    found.take_group(podgroup, read_group(podgroup), "")
    for index, place in enumerate(members):
        made = pod(f"g-{index}", "g")
        made["metadata"] |= {"namespace": "ns", "uid": f"u{index}"}
        problem = "is barred" if place is B else ""
        found.put(Member(msgspec.convert(made, Pod), place, problem))
    found.review()
    return found


@pytest.mark.parametrize(
    ("was", "members", "then"),
    [
        ("", [], "Inqueue"),
        ("Pending", [], "Inqueue"),
        ("Inqueue", [W, W, W], "Inqueue"),
        ("Inqueue", [S, S, W], "Inqueue"),
        ("Inqueue", [S, S, S], "Running"),
        ("Inqueue", [R, S, S, W], "Running"),
        ("Running", [R, R, W], "Unknown"),
        ("Running", [R, R, KO], "Unknown"),
        ("Running", [R, R], "Unknown"),
        ("Unknown", [R, R, R], "Running"),
        ("Running", [R, R, OK], "Running"),
        ("Running", [R, OK, OK], "Running"),
        ("Running", [OK, OK, OK], "Completed"),
        ("Running", [OK], "Completed"),
        ("Completed", [OK], "Completed"),
        ("Completed", [], "Completed"),
        ("Completed", [W, W, W], "Inqueue"),
        ("Running", [], "Inqueue"),
        ("Running", [W, W, W], "Inqueue"),
        ("Running", [KO, KO, KO], "Unknown"),
        ("Running", [KO, W, W], "Inqueue"),
        ("Inqueue", [G, G, G], "Inqueue"),
    ],
)
def test_the_phase(was: str, members: list[Place], then: str) -> None:
    assert phase(muster(members, was=was), {}) == then


def test_a_gang_whose_members_all_ended_starts_anew() -> None:
    assert muster([R, R], was="Running").ran
    assert not muster([W, W, KO], was="Running").ran
    assert not muster([], was="Running").ran


def test_members_that_ended_well_are_not_missed() -> None:
    facts = facts_of(muster([R, OK, OK], was="Running"), {})
    assert facts is not None
    assert (facts.min_member, facts.started) == (1, True)


def test_a_member_that_ended_well_before_the_gang_ran_is_not_missed_either() -> None:
    """Nobody makes it anew: the gang would wait for it for ever."""
    found = muster([OK, R, W], was="Inqueue")
    facts = facts_of(found, {})
    assert facts is not None
    assert (facts.min_member, facts.started) == (2, False)


def test_pods_of_a_group_that_is_being_deleted_are_told_so_and_not_decided_on() -> None:
    """A finalizer may keep it for long."""
    found = muster([R, W], was="Running")
    assert found.group is not None
    found.group.metadata.deletion_timestamp = "2020-09-13T12:26:40Z"
    assert facts_of(found, {}) is None
    why = waiting(found, None)
    assert why is not None and why.reason == "GangIncomplete"
    assert why.sentence.endswith("which is being deleted")


def test_nothing_is_said_of_a_group_that_is_being_deleted_while_nobody_waits() -> None:
    found = muster([R, R], was="Running")
    assert found.group is not None
    found.group.metadata.deletion_timestamp = "2020-09-13T12:26:40Z"
    assert waiting(found, Verdict(Reason.UNSCHEDULABLE, "of before")) is None


def test_a_finished_gang_is_not_decided_on() -> None:
    assert facts_of(muster([OK, OK, OK], was="Running"), {}) is None


@pytest.mark.parametrize(
    ("reason", "on_group", "on_pods"),
    [
        (Reason.UNSCHEDULABLE, "NotEnoughResources", "Unschedulable"),
        (Reason.INCOMPLETE, "NotEnoughTasks", "GangIncomplete"),
        (Reason.QUEUE_CLOSED, "QueueClosed", "QueueClosed"),
        (Reason.QUEUE_MISSING, "QueueMissing", "QueueMissing"),
        (Reason.QUOTA, "QueueQuotaExceeded", "QueueQuotaExceeded"),
        (Reason.RESERVED, "Reserved", "Reserved"),
    ],
)
def test_the_reasons(reason: Reason, on_group: str, on_pods: str) -> None:
    found = muster([W, W, W])
    why = waiting(found, Verdict(reason, "it is so"))
    (condition,) = group_status(found, {}, why, WORLD)["conditions"]
    assert condition["type"] == "Unschedulable"
    assert (condition["status"], condition["reason"]) == ("True", on_group)
    assert condition["message"] == "it is so"
    assert condition["transitionID"]
    member = next(iter(found.members.values()))
    assert pod_condition(member, why) == (on_pods, "it is so")


def test_what_is_already_said_is_not_said_again() -> None:
    found = muster([W, W, W])
    why = waiting(found, Verdict(Reason.UNSCHEDULABLE, "it is so"))
    written = group_status(found, {}, why, WORLD)
    again = muster([W, W, W], was="Inqueue", conditions=written["conditions"])
    assert group_status(again, {}, why, WORLD) == {}


def test_new_numbers_keep_the_time_of_the_transition() -> None:
    before = {
        "type": "Unschedulable",
        "status": "True",
        "reason": "NotEnoughResources",
        "message": "old",
        "lastTransitionTime": "2020-01-01T00:00:00Z",
        "transitionID": "one",
    }
    found = muster([W, W, W], conditions=[before])
    why = waiting(found, Verdict(Reason.UNSCHEDULABLE, "new"))
    (after,) = group_status(found, {}, why, WORLD)["conditions"]
    assert after["message"] == "new"
    assert after["lastTransitionTime"] == "2020-01-01T00:00:00Z"


def test_conditions_of_others_stay() -> None:
    theirs = {"type": "Theirs", "status": "True", "message": "hands off"}
    found = muster([S, S, S], conditions=[theirs])
    conditions = group_status(found, {}, None, WORLD)["conditions"]
    assert [c["type"] for c in conditions] == ["Theirs", "Scheduled"]


def test_a_closed_queue_keeps_new_groups_pending_and_old_ones_in() -> None:
    closed = msgspec.convert(
        {"metadata": {"name": "default"}, "status": {"state": "Closed"}}, Queue
    )
    assert phase(muster([], was="Pending"), {"default": closed}) == "Pending"
    assert phase(muster([], was="Inqueue"), {"default": closed}) == "Inqueue"


def test_gated_and_seated_members_have_nothing_to_say() -> None:
    found = muster([G, S, W])
    why = waiting(found, Verdict(Reason.INCOMPLETE, "one short"))
    says = [pod_condition(member, why) for member in found.members.values()]
    assert says == [None, None, ("GangIncomplete", "1 of its pods has scheduling gates")]


@pytest.mark.parametrize(
    ("members", "sentence"),
    [
        ([W, W], "one short"),
        ([B, W, B], "2 of its pods cannot be placed: g-0 is barred"),
        ([B, W], "1 of its pods cannot be placed: g-0 is barred; 1 more does not exist yet"),
        ([W, KO, B], "1 of its pods cannot be placed: g-2 is barred; 1 more does not exist yet"),
        ([G], "1 of its pods has scheduling gates; 2 more do not exist yet"),
        (
            [G, B, G],
            "1 of its pods cannot be placed: g-1 is barred; 2 of its pods have scheduling gates",
        ),
    ],
)
def test_of_pods_that_are_there_nobody_says_that_they_do_not_exist(
    members: list[Place], sentence: str
) -> None:
    why = waiting(muster(members), Verdict(Reason.INCOMPLETE, "one short"))
    assert why is not None
    assert why.sentence == sentence


@pytest.mark.parametrize(
    ("least", "message"),
    [(1, "at least 1 member has its node"), (2, "at least 2 members have their nodes")],
)
def test_how_many_have_their_nodes(least: int, message: str) -> None:
    (condition,) = group_status(muster([R, R], least=least), {}, None, WORLD)["conditions"]
    assert condition["message"] == message


def test_counts_of_members_follow_them_through_their_lives() -> None:
    found = muster([W, W, W])
    member = found.members["u0"]
    for place in (S, R, OK):
        found.put(Member(member.pod, place))
        assert found.count(place) == 1
        assert found.count(W) == 2
    found.drop("u0")
    assert found.count(OK) == 0
