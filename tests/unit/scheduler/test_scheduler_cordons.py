"""Nodes that take nothing new: what can be tolerated, and what cannot."""

from __future__ import annotations

from typing import Any

import pytest

from posse.engine.facts import Constraints
from posse.scheduler.reading.ground import Ground
from tests.unit.scheduler.rig import Object, Rig, node, pod

pytestmark = pytest.mark.looptime

CORDON = "node.kubernetes.io/unschedulable"
ANYTHING = [{"operator": "Exists"}]
THE_CORDON = [{"key": CORDON, "operator": "Exists", "effect": "NoSchedule"}]


@pytest.fixture
async def rig() -> Rig:
    return Rig()


def cordoned(name: str) -> Object:
    taint = {"key": CORDON, "effect": "NoSchedule"}
    return node(name, spec={"unschedulable": True, "taints": [taint]})


def leaving(name: str) -> Object:
    taint = {"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"}
    return node(name, spec={"taints": [taint]})


def deleted(name: str) -> Object:
    return node(name, metadata={"name": name, "deletionTimestamp": "2020-01-01T00:00:00Z"})


def malformed(name: str) -> Object:
    broken = node(name)
    broken["status"]["allocatable"]["vendor/x"] = "many"
    return broken


def why(rig: Rig, gang: str) -> str:
    return str(rig.api.condition("podgroups", gang, "Unschedulable")["message"])


@pytest.mark.parametrize("tolerations", [ANYTHING, THE_CORDON])
async def test_who_tolerates_the_cordon_uses_the_node_last(
    rig: Rig, tolerations: list[Object]
) -> None:
    for each in (cordoned("n0"), node("n1"), node("n2")):
        rig.api.put("nodes", each)
    async with rig.running():
        rig.gang("first", 2, tolerations=tolerations)
        await rig.until(lambda: rig.bound_of("first") == {"first-0": "n1", "first-1": "n2"})
        rig.gang("last", 1, tolerations=tolerations)
        await rig.until(lambda: rig.bound_of("last") == {"last-0": "n0"})


@pytest.mark.parametrize(
    ("closed", "told"),
    [
        (leaving, "1 node is being removed"),
        (deleted, "1 node is being removed"),
        (malformed, "1 node is quarantined"),
    ],
)
async def test_a_node_that_is_closed_is_tolerated_by_nobody(
    rig: Rig, closed: Any, told: str
) -> None:
    rig.api.put("nodes", closed("n0"))
    async with rig.running():
        rig.gang("g", 1, tolerations=ANYTHING)
        await rig.until(lambda: rig.api.condition("podgroups", "g", "Unschedulable"))
        assert told in why(rig, "g")
        rig.api.put("nodes", node("n1"))
        await rig.until(lambda: rig.bound_of("g") == {"g-0": "n1"})


@pytest.mark.parametrize(("spare", "healed"), [(["n2"], "n2"), ([], "n1")])
async def test_a_gang_that_tolerates_the_drain_of_its_node_heals(
    rig: Rig, spare: list[str], healed: str
) -> None:
    for name in ("n0", "n1", *spare):
        rig.api.put("nodes", node(name))
    async with rig.running():
        rig.gang("g", 2, tolerations=ANYTHING)
        await rig.until(lambda: rig.bound_of("g") == {"g-0": "n0", "g-1": "n1"})
        for name in ("g-0", "g-1"):
            rig.api.change("pods", name, status={"phase": "Running"})
        rig.api.put("nodes", cordoned("n1"))
        await rig.settle(1)
        rig.api.delete("pods", "g-1")
        await rig.settle(1)
        rig.api.put("pods", pod("g-1", "g", tolerations=ANYTHING))
        await rig.until(lambda: rig.bound_of("g") == {"g-0": "n0", "g-1": healed})


async def test_a_start_that_is_given_up_again_and_again_is_tried_ever_less_and_says_why(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = [0]

    def never(self: Ground, name: str, constraints: Constraints) -> bool:
        tries[0] += 1
        return False

    monkeypatch.setattr(Ground, "takes", never)
    rig.nodes(1)
    async with rig.running():
        rig.gang("g", 1)
        await rig.settle(600)
        assert "n0 does not take ns/g-0 any more" in why(rig, "g")
        assert 5 < tries[0] < 30
        monkeypatch.undo()
        await rig.until(lambda: rig.bound_of("g") == {"g-0": "n0"}, within=90)
