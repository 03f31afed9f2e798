"""Silent nodes, their taints, and when pods must leave."""

from __future__ import annotations

import pytest

from posse.local.core.node_health import (
    NOT_READY,
    UNREACHABLE,
    Pulse,
    evicted_at,
    unknown_conditions,
    wanted_taints,
)
from posse.objects.meta import Condition, ObjectMeta
from posse.objects.nodes import Node, NodeSpec, NodeStatus, Taint
from posse.objects.pods import Pod, PodSpec, Toleration

STAMP = "2020-09-13T12:26:40Z"
ADDED = 1_600_000_000.0


def node(ready: str, *taints: Taint) -> Node:
    conditions = [Condition(type="Ready", status=ready)]
    return Node(
        ObjectMeta(name="n"), NodeSpec(taints=list(taints)), NodeStatus(conditions=conditions)
    )


def pod(*tolerations: Toleration) -> Pod:
    return Pod(spec=PodSpec(tolerations=list(tolerations)))


def test_a_node_is_silent_only_from_the_last_change_that_we_saw() -> None:
    pulse = Pulse()
    assert pulse.silent_for("n", "an hour ago", 1000.0) == 0
    assert pulse.silent_for("n", "an hour ago", 1030.0) == 30
    assert pulse.silent_for("n", "now", 1031.0) == 0
    assert pulse.silent_for("n", "now", 1041.0) == 10


def test_a_silent_node_is_told_unknown_once() -> None:
    assert "Ready" in [c["type"] for c in unknown_conditions(node("True"), STAMP)]
    told = node("Unknown")
    told.status.conditions = [
        Condition(type=kind, status="Unknown")
        for kind in ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
    ]
    assert unknown_conditions(told, STAMP) == []


@pytest.mark.parametrize(
    ("ready", "key"), [("Unknown", UNREACHABLE), ("False", NOT_READY), ("True", None)]
)
def test_taints_follow_readiness_and_leave_those_of_others(ready: str, key: str | None) -> None:
    mine = Taint("mine", "", "NoSchedule")
    wanted = wanted_taints(node(ready, mine), STAMP)
    if key is None:
        assert wanted is None
        return
    assert wanted == [mine, Taint(key, "", "NoSchedule", STAMP), Taint(key, "", "NoExecute", STAMP)]


def test_taints_go_when_the_node_is_back() -> None:
    gone = Taint(UNREACHABLE, "", "NoExecute", STAMP)
    assert wanted_taints(node("True", gone), STAMP) == []


def test_standing_taints_keep_their_time() -> None:
    taints = [Taint(UNREACHABLE, "", effect, STAMP) for effect in ("NoSchedule", "NoExecute")]
    assert wanted_taints(node("Unknown", *taints), "2021-01-01T00:00:00Z") is None


TAINT = Taint(UNREACHABLE, "", "NoExecute", STAMP)


@pytest.mark.parametrize(
    ("tolerations", "due"),
    [
        ((), 0.0),
        ((Toleration(UNREACHABLE, "Exists", "", "NoExecute", 300),), ADDED + 300),
        ((Toleration(UNREACHABLE, "Exists", "", "NoExecute"),), None),
        ((Toleration(NOT_READY, "Exists", "", "NoExecute", 300),), 0.0),
        (
            (
                Toleration(UNREACHABLE, "Exists", "", "NoExecute", 300),
                Toleration("", "Exists", "", "", 20),
            ),
            ADDED + 20,
        ),
        ((Toleration(UNREACHABLE, "Exists", "", "NoExecute", -5),), ADDED),
    ],
)
def test_a_pod_leaves_when_its_toleration_runs_out(
    tolerations: tuple[Toleration, ...], due: float | None
) -> None:
    assert evicted_at(pod(*tolerations), [TAINT], ADDED + 1) == due


def test_a_no_schedule_taint_evicts_nobody() -> None:
    assert evicted_at(pod(), [Taint("k", "", "NoSchedule")], ADDED) is None
