"""A gang's members are counted as they come and go: the same as if they were counted afresh."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import msgspec
import pytest

from posse.objects import keys
from posse.objects.pods import Pod
from posse.scheduler.reading.briefing import facts_of
from posse.scheduler.reading.members import Member
from posse.scheduler.reading.muster import Muster
from posse.scheduler.reading.pods import Place, place_of

_OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "j", "controller": True}
_ENDING = {"deletionTimestamp": "2026-01-01T00:00:00Z"}

# One pod as it may be: what its metadata, its spec and its phase say beyond a name.
VERSIONS: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "new": ({}, {}, "Pending"),
    "bound": ({}, {"nodeName": "n"}, "Pending"),
    "running": ({}, {"nodeName": "n"}, "Running"),
    "ended": ({}, {"nodeName": "n"}, "Succeeded"),
    "failed": ({}, {"nodeName": "n"}, "Failed"),
    "leaving": (_ENDING, {"nodeName": "n"}, "Running"),
    "gated": ({}, {"schedulingGates": [{"name": "later"}]}, "Pending"),
    "estimated": ({"annotations": {keys.MAX_RUNTIME: "5m"}}, {}, "Pending"),
    "cool": ({"labels": {keys.COOLDOWN_TIME: "30s"}}, {}, "Pending"),
    "owned": ({"ownerReferences": [_OWNER]}, {}, "Pending"),
    "urgent": ({}, {"priority": 7}, "Pending"),
    "meek": ({}, {"preemptionPolicy": "Never"}, "Pending"),
    "bounded": ({}, {"activeDeadlineSeconds": 60}, "Pending"),
    "fellow": ({"ownerReferences": [_OWNER]}, {"activeDeadlineSeconds": 9}, "Pending"),
}


def member(version: str, uid: str) -> Member:
    metadata, spec, phase = VERSIONS[version]
    document = {
        "metadata": {"name": uid, "namespace": "ns", "uid": uid} | metadata,
        "spec": {"containers": []} | spec,
        "status": {"phase": phase},
    }
    pod = msgspec.convert(document, Pod)
    return Member(pod, place_of(pod))


def muster(*versions: str) -> Muster:
    """A gang of two: one stays as it is, the other has come so far, step by step."""
    made = Muster("ns/g")
    made.promised = 2
    made.put(member("fellow", "other"))
    for version in versions:
        made.put(member(version, "one"))
    made.review()
    return made


def counted(made: Muster) -> object:
    places = {place: made.count(place) for place in Place}
    return places, made.staying, made.recreated, facts_of(made, {})


@pytest.mark.parametrize(("before", "after"), list(permutations(VERSIONS, 2)))
def test_a_member_that_changes_counts_as_what_it_is_now(before: str, after: str) -> None:
    assert counted(muster(before, after)) == counted(muster(after))


@pytest.mark.parametrize("version", VERSIONS)
def test_nothing_is_counted_of_a_member_that_is_gone(version: str) -> None:
    made = muster("new", version)
    made.drop("one")
    made.review()
    assert counted(made) == counted(muster())


def test_the_first_member_stays_the_first_when_it_changes() -> None:
    made = muster("new")
    made.put(member("bound", "other"))
    assert made.first is not None
    assert made.first.pod.metadata.uid == "other"
