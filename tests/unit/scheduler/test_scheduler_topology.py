"""From PodGroups, nodes and HyperNodes to gangs that sit together."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from posse.engine.facts import Topology
from posse.engine.fit.hypernodes import HyperNodeFacts, Membership
from posse.engine.fit.terms import Requirement, Selector
from posse.objects.groups import PodGroup
from posse.objects.hypernodes import HyperNode
from posse.objects.kinds import NATIVE_POD_GROUPS, POD_GROUP
from posse.scheduler.reading.groups import read_group
from posse.scheduler.reading.quarantine import Unreadable
from posse.scheduler.reading.topologies import read_hypernode
from tests.unit.scheduler.rig import Object, Rig, group, node, pod


def hypernode(name: str, tier: int, *members: Object, **more: Any) -> Object:
    return {"metadata": {"name": name}, "spec": {"tier": tier, "members": list(members)} | more}


def exactly(name: str, kind: str = "Node") -> Object:
    return {"type": kind, "selector": {"exactMatch": {"name": name}}}


@pytest.mark.parametrize(
    ("asked", "topology"),
    [
        ({"mode": "hard", "highestTierAllowed": 2}, Topology(tier=2)),
        ({"highestTierAllowed": 0}, Topology(tier=0)),
        ({"mode": "hard", "highestTierName": "rack"}, Topology(tier_name="rack")),
        ({"mode": "soft"}, Topology(required=False)),
        ({"mode": "soft", "highestTierAllowed": 1}, Topology(required=False, tier=1)),
        # A gang that names no bound may use the whole cluster.
        ({"mode": "hard"}, Topology(required=False)),
        ({}, Topology(required=False)),
        (None, None),
    ],
)
def test_volcanos_words(asked: Object | None, topology: Topology | None) -> None:
    document = group("g", 2, networkTopology=asked)
    assert read_group(msgspec.convert(document, PodGroup), POD_GROUP).topology == topology


@pytest.mark.parametrize(
    ("asked", "wrong"),
    [
        ({"mode": "firm"}, "spec.networkTopology.mode"),
        ({"highestTierAllowed": "two"}, "spec.networkTopology"),
        ({"highestTierAllowed": 1, "highestTierName": "rack"}, "spec.networkTopology"),
    ],
)
def test_nonsense_is_named(asked: Object, wrong: str) -> None:
    document = group("g", 2, networkTopology=asked)
    with pytest.raises(Unreadable) as caught:
        read_group(msgspec.convert(document, PodGroup), POD_GROUP)
    assert str(caught.value).startswith(f"{wrong}:")


def native(topology: Any) -> PodGroup:
    document = {
        "metadata": {"name": "g"},
        "spec": {
            "schedulingPolicy": {"gang": {"minCount": 2}},
            "schedulingConstraints": {"topology": topology},
        },
    }
    return msgspec.convert(document, PodGroup)


def test_kubernetes_words() -> None:
    read = read_group(native([{"key": "rack"}]), NATIVE_POD_GROUPS[0])
    assert read.topology == Topology(key="rack")
    assert read_group(native([]), NATIVE_POD_GROUPS[0]).topology is None


@pytest.mark.parametrize("topology", ["rack", [{"key": ""}], [{"key": "a"}, {"key": "b"}], [3]])
def test_kubernetes_words_that_make_no_sense(topology: Any) -> None:
    with pytest.raises(Unreadable, match="schedulingConstraints"):
        read_group(native(topology), NATIVE_POD_GROUPS[0])


def test_a_hypernode_names_its_members_in_three_ways() -> None:
    labelled = {
        "matchLabels": {"row": "9"},
        "matchExpressions": [{"key": "x", "operator": "Exists"}],
    }
    document = hypernode(
        "s",
        2,
        exactly("n0"),
        {"type": "HyperNode", "selector": {"regexMatch": {"pattern": "^leaf-"}}},
        {"type": "Node", "selector": {"labelMatch": labelled}},
        tierName="spine",
    )
    labels = Selector((Requirement("row", "In", ("9",)), Requirement("x", "Exists")))
    assert read_hypernode(msgspec.convert(document, HyperNode)) == HyperNodeFacts(
        "s",
        2,
        "spine",
        (
            Membership(name="n0"),
            Membership(domains=True, pattern="^leaf-"),
            Membership(labels=labels),
        ),
    )


@pytest.mark.parametrize(
    "member",
    [
        {"type": "Rack", "selector": {"exactMatch": {"name": "n"}}},
        {"type": "Node", "selector": {}},
        {"type": "Node"},
        {"type": "Node", "selector": {"exactMatch": {"name": ""}}},
        {"type": "Node", "selector": {"regexMatch": {"pattern": "("}}},
        {"type": "Node", "selector": {"regexMatch": {"pattern": "a" * 2000}}},
        {"type": "HyperNode", "selector": {"labelMatch": {"matchLabels": {"a": "b"}}}},
    ],
)
def test_a_hypernode_that_makes_no_sense(member: Object) -> None:
    with pytest.raises(Unreadable, match=r"^spec\.members\[0\]"):
        read_hypernode(msgspec.convert(hypernode("s", 1, member), HyperNode))


def racked(name: str, rack: str, gpus: int = 2) -> Object:
    return node(name, gpus) | {"metadata": {"name": name, "labels": {"posse.dev/rack": rack}}}


def near(rig: Rig, name: str, members: int, **topology: Any) -> None:
    rig.api.put("podgroups", group(name, members, networkTopology=topology))
    for index in range(members):
        rig.api.put("pods", pod(f"{name}-{index}", name, 2))


@pytest.mark.looptime
async def test_a_gang_sits_in_one_rack_or_says_that_none_has_room() -> None:
    rig = Rig()
    for name, rack in (("a0", "a"), ("b0", "b"), ("b1", "b")):
        rig.api.put("nodes", racked(name, rack))
    near(rig, "pair", 2, highestTierAllowed=1)
    near(rig, "three", 3, highestTierAllowed=1)
    async with rig.running():
        await rig.until(lambda: len(rig.bound_of("pair")) == 2)
        await rig.settle()
        assert set(rig.bound_of("pair").values()) == {"b0", "b1"}
        assert not rig.bound_of("three")
        told = rig.api.get("podgroups", "three")["status"]["conditions"][0]["message"]
        assert "no rack of today's nodes can hold 3 pods x 2 GPUs: the largest has 4" in told


@pytest.mark.looptime
async def test_hypernodes_are_heeded_where_they_are_served() -> None:
    rig = Rig()
    rig.api.served |= {"hypernodes"}
    for name in ("n0", "n1", "n2", "n3"):
        rig.api.put("nodes", racked(name, "same"))
    rig.api.put("hypernodes", hypernode("left", 1, exactly("n0"), exactly("n1"), exactly("n3")))
    rig.api.put("hypernodes", hypernode("odd", 1, {"type": "Node"}))
    near(rig, "g", 3, highestTierAllowed=1)
    async with rig.running():
        await rig.until(lambda: len(rig.bound_of("g")) == 3)
        assert set(rig.bound_of("g").values()) == {"n0", "n1", "n3"}
        await rig.settle()
        assert any("spec.members[0].selector" in why for _, why in rig.events("odd"))


@pytest.mark.looptime
async def test_hypernodes_that_come_to_be_served_and_change_are_heeded() -> None:
    rig = Rig()
    for name in ("n0", "n1", "n2"):
        rig.api.put("nodes", node(name))
    near(rig, "g", 2, highestTierAllowed=1)
    async with rig.running():
        await rig.settle()
        assert not rig.bound_of("g")
        rig.api.served = {"podgroups", "queues", "hypernodes"}
        rig.api.put("hypernodes", hypernode("one", 1, exactly("n2")))
        await rig.settle(90)
        assert not rig.bound_of("g")
        rig.api.put("hypernodes", hypernode("one", 1, exactly("n0"), exactly("n2")))
        await rig.until(lambda: len(rig.bound_of("g")) == 2)
        assert set(rig.bound_of("g").values()) == {"n0", "n2"}
