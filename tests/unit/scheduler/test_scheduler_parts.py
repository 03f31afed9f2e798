"""`subGroupPolicy`: which part each pod is, how near it sits, and how many start together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from posse.engine.cycle import cycle
from posse.engine.decisions import Start
from posse.engine.facts import Topology
from posse.engine.policy import Policy
from posse.engine.view import View
from posse.kube.cache import Change
from posse.objects.groups import PodGroup
from posse.objects.kinds import Kind
from posse.objects.nodes import Node
from posse.objects.pods import Pod
from posse.scheduler.reading.briefing import facts_of
from posse.scheduler.reading.claims import Claims
from posse.scheduler.reading.groups import GroupTerms, read_group
from posse.scheduler.reading.parts import nearer, part_of, squads
from posse.scheduler.reading.quarantine import Quarantine, Unreadable
from posse.scheduler.reading.reader import Reader
from tests.unit.scheduler.rig import Object, group, pod

HARD = {"mode": "hard", "highestTierAllowed": 1}


def a_group(*policies: Object, least: int = 4) -> PodGroup:
    document = group("g", least)
    document["metadata"] |= {"namespace": "ns", "uid": "g"}
    document["spec"]["subGroupPolicy"] = list(policies)
    return msgspec.convert(document, PodGroup)


def terms(*policies: Object, least: int = 4) -> GroupTerms:
    return read_group(a_group(*policies, least=least))


@pytest.mark.parametrize(
    ("labels", "part"),
    [
        ({"stage": "0"}, "0/0"),
        ({"stage": "1", "other": "x"}, "0/1"),
        ({"stage": ""}, ""),
        ({}, ""),
        ({"kind": "ps"}, "1"),
        ({"kind": "ps", "stage": "0"}, "0/0"),
    ],
)
def test_the_part_of_a_pod(labels: dict[str, str], part: str) -> None:
    by_stage = {"name": "stages", "matchLabelKeys": ["stage"], "networkTopology": HARD}
    servers = {"name": "servers", "labelSelector": {"matchLabels": {"kind": "ps"}}}
    read = terms(by_stage, servers)
    assert part_of(labels, read.partitions) == part
    assert nearer(read.partitions) == (("0", Topology(tier=1)),)


@pytest.mark.parametrize(
    ("policies", "least", "minimum"),
    [
        ([], 4, 4),
        ([{"matchLabelKeys": ["a"]}], 4, 4),
        ([{"subGroupSize": 3}], 4, 4),
        ([{"subGroupSize": 3, "minSubGroups": 2}], 4, 6),
        ([{"minSubGroups": 2}, {"subGroupSize": 2, "minSubGroups": 3}], 1, 8),
    ],
)
def test_parts_that_must_be_there_raise_the_minimum(
    policies: list[Object], least: int, minimum: int
) -> None:
    assert terms(*policies, least=least).min_member == minimum


@pytest.mark.parametrize(
    ("policies", "together"),
    [
        ([], ()),
        ([{"matchLabelKeys": ["a"]}], ()),
        ([{"subGroupSize": 1, "minSubGroups": 0}], ()),
        ([{"subGroupSize": 3}], (("0", 3, 0),)),
        ([{}, {"subGroupSize": 3, "minSubGroups": 2}], (("1", 3, 2),)),
        ([{"minSubGroups": 2}], (("0", 1, 2),)),
    ],
)
def test_how_many_of_a_part_start_together(
    policies: list[Object], together: tuple[tuple[str, int, int], ...]
) -> None:
    assert squads(terms(*policies).partitions) == together


@pytest.mark.parametrize(
    ("policy", "field"),
    [
        ({"subGroupSize": -1}, "spec.subGroupPolicy[0].subGroupSize"),
        ({"minSubGroups": 1 << 40}, "spec.subGroupPolicy[0].minSubGroups"),
        ({"matchLabelKeys": "stage"}, "spec.subGroupPolicy[0]"),
        ({"networkTopology": {"mode": "odd"}}, "spec.subGroupPolicy[0].networkTopology.mode"),
    ],
)
def test_nonsense_is_named(policy: Object, field: str) -> None:
    with pytest.raises(Unreadable) as caught:
        terms(policy)
    assert str(caught.value).startswith(field)


class Silent:
    def record(
        self, regarding: Any, reason: str, message: str, *, warning: bool = False, kind: Kind
    ) -> None:
        pass


def begun(names: Sequence[str], said: Change[PodGroup], *, group_first: bool) -> list[Start]:
    """What is started of the group's four pods, which are of two stages in turn."""
    view = View()
    reader = Reader(view, Claims(), Quarantine(Silent()))
    for name in names:
        amounts = {"cpu": "64", "memory": "64Gi", "pods": "110", "nvidia.com/gpu": "8"}
        status = {"allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
        meta = {"name": name, "uid": name, "labels": {"posse.dev/rack": name[0]}}
        node = {"metadata": meta, "spec": {}, "status": status}
        reader.node(Change(None, msgspec.convert(node, Node)))
    if group_first:
        reader.group(said)
    # Neighbours by name are of different stages.
    for index in range(4):
        document = pod(f"g-{index}", "g", 8)
        stage = {"stage": str(index % 2)}
        document["metadata"] |= {"namespace": "ns", "uid": f"g-{index}", "labels": stage}
        reader.pod(Change(None, msgspec.convert(document, Pod)))
    if not group_first:
        reader.refresh()
        reader.group(said)
    reader.refresh()
    return [each for each in cycle(view, Policy(), 0.0) if isinstance(each, Start)]


@pytest.mark.parametrize(
    ("stages", "whole"),
    [
        ({"0": "RR", "1": "RR"}, True),
        ({"0": "RR", "1": "RO"}, True),
        ({"0": "RR", "1": "R", "2": "R"}, False),
        ({"0": "RR", "1": "RF", "2": "R"}, False),
    ],
)
def test_pods_enough_are_not_whole_parts_enough(stages: dict[str, str], whole: bool) -> None:
    reader = Reader(View(), Claims(), Quarantine(Silent()))
    two_of_two = {"matchLabelKeys": ["stage"], "subGroupSize": 2, "minSubGroups": 2}
    reader.group(Change(None, a_group(two_of_two)))
    phases = {"R": "Running", "O": "Succeeded", "F": "Failed"}
    for stage, pods in stages.items():
        for index, phase in enumerate(pods):
            document = pod(f"g-{stage}-{index}", "g", 8, nodeName="n")
            document["metadata"] |= {"namespace": "ns", "uid": f"{stage}-{index}"}
            document["metadata"]["labels"] = {"stage": stage}
            document["status"]["phase"] = phases[phase]
            reader.pod(Change(None, msgspec.convert(document, Pod)))
    reader.refresh()
    muster = reader.musters["ns/g"]
    assert (muster.whole, muster.ran) == (whole, whole)
    facts = facts_of(muster, {})
    assert facts is not None
    assert facts.ended == tuple((f"0/{s}", 1) for s, pods in stages.items() if "O" in pods)


@pytest.mark.parametrize("group_first", [True, False])
def test_pods_of_one_stage_share_a_rack(group_first: bool) -> None:
    said = Change(None, a_group({"matchLabelKeys": ["stage"], "networkTopology": HARD}))
    starts = begun(["a-0", "a-1", "b-0", "b-1"], said, group_first=group_first)
    racks = {seat.uid: seat.node[0] for seat in starts[0].seats}
    assert len(racks) == 4
    assert racks["g-0"] == racks["g-2"] != racks["g-1"] == racks["g-3"]


@pytest.mark.parametrize("group_first", [True, False])
def test_pods_of_one_stage_start_together_or_not_at_all(group_first: bool) -> None:
    said = Change(None, a_group({"matchLabelKeys": ["stage"], "subGroupSize": 2}, least=1))
    starts = begun(["a-0", "a-1", "b-0"], said, group_first=group_first)
    assert [sorted(seat.uid for seat in each.seats) for each in starts] == [["g-0", "g-2"]]
