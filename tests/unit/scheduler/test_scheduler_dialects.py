"""PodGroups of several APIs under one name: which of them speaks for the gang."""

from __future__ import annotations

from typing import Any

import pytest

from posse.engine.view import View
from posse.kube.cache import Change
from posse.objects.groups import PodGroup, PodGroupSpec
from posse.objects.kinds import INCUBATOR_POD_GROUP, POD_GROUP, SIGS_POD_GROUP, Kind
from posse.objects.meta import ObjectMeta, OwnerReference
from posse.scheduler.reading.claims import Claims
from posse.scheduler.reading.groups import speaking
from posse.scheduler.reading.quarantine import Quarantine
from posse.scheduler.reading.reader import Reader

KEY = "ns/train"


class Silent:
    def record(self, regarding: Any, reason: str, message: str, **rest: Any) -> None:
        return None


def group(minimum: int = 1, *, owned: bool = False, version: int = 1, uid: str = "") -> PodGroup:
    owner = OwnerReference(kind="TFJob", name="train", uid="job", controller=True)
    return PodGroup(
        metadata=ObjectMeta(
            name="train",
            namespace="ns",
            uid=uid or f"group-{minimum}",
            generation=version,
            resource_version=str(version),
            owner_references=[owner] if owned else [],
        ),
        spec=PodGroupSpec(min_member=minimum),
    )


def reader() -> Reader:
    return Reader(View(), Claims(everything=True), Quarantine(Silent()))


def spoken(read: Reader) -> tuple[Kind, int] | None:
    read.refresh()
    muster = read.musters.get(KEY)
    if muster is None or muster.terms is None:
        return None
    assert muster.terms.kind == muster.kind
    return muster.kind, muster.terms.min_member


@pytest.mark.parametrize(
    ("groups", "speaker"),
    [
        ({}, None),
        ({SIGS_POD_GROUP: group()}, SIGS_POD_GROUP),
        ({SIGS_POD_GROUP: group(), INCUBATOR_POD_GROUP: group()}, INCUBATOR_POD_GROUP),
        ({INCUBATOR_POD_GROUP: group(), POD_GROUP: group()}, POD_GROUP),
        ({INCUBATOR_POD_GROUP: group(), POD_GROUP: group(owned=True)}, INCUBATOR_POD_GROUP),
        ({INCUBATOR_POD_GROUP: group(owned=True), POD_GROUP: group(owned=True)}, POD_GROUP),
    ],
)
def test_what_a_user_made_speaks_first(groups: dict[Kind, PodGroup], speaker: Kind | None) -> None:
    assert speaking(groups) == speaker


@pytest.mark.parametrize("first", [POD_GROUP, INCUBATOR_POD_GROUP])
def test_the_order_of_arrival_does_not_matter(first: Kind) -> None:
    read = reader()
    theirs = {POD_GROUP: group(2, owned=True), INCUBATOR_POD_GROUP: group(6)}
    for kind in sorted(theirs, key=lambda kind: kind != first):
        read.group(Change(None, theirs[kind]), kind)
    assert spoken(read) == (INCUBATOR_POD_GROUP, 6)


def test_when_one_goes_the_other_speaks() -> None:
    read = reader()
    users, ours = group(6), group(2, owned=True)
    read.group(Change(None, users), INCUBATOR_POD_GROUP)
    read.group(Change(None, ours), POD_GROUP)
    read.group(Change(users, None), INCUBATOR_POD_GROUP)
    assert spoken(read) == (POD_GROUP, 2)
    read.group(Change(ours, None), POD_GROUP)
    assert spoken(read) is None


def test_a_silent_group_that_changes_or_goes_changes_nothing() -> None:
    read = reader()
    ours = group(2, owned=True)
    read.group(Change(None, group(6)), INCUBATOR_POD_GROUP)
    read.group(Change(None, ours), POD_GROUP)
    read.group(Change(ours, group(3, owned=True, version=2, uid="group-2")), POD_GROUP)
    assert spoken(read) == (INCUBATOR_POD_GROUP, 6)
    read.group(Change(ours, None), POD_GROUP)
    assert spoken(read) == (INCUBATOR_POD_GROUP, 6)


def test_our_own_write_counts_before_its_echo_in_any_dialect() -> None:
    read = reader()
    before, echo = group(6), group(6, version=3)
    read.group(Change(None, before), SIGS_POD_GROUP)
    read.wrote(echo)
    read.group(Change(before, group(6, version=2)), SIGS_POD_GROUP)
    assert spoken(read) == (SIGS_POD_GROUP, 6)
    current = read.musters[KEY].group
    assert current is not None and current.metadata.resource_version == "3"
