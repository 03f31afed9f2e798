"""Silent nodes, their taints, and when pods must leave."""

from __future__ import annotations

import pytest

from posse.local.core.node_health import (
    NOT_READY,
    UNREACHABLE,
    Pulse,
    Taints,
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
    assert evicted_at(pod(*tolerations), [(TAINT, ADDED)]) == due


def test_a_pod_that_comes_to_a_tainted_node_has_its_whole_time_there() -> None:
    late = pod(Toleration(UNREACHABLE, "Exists", "", "NoExecute", 300))
    late.status.start_time = "2020-09-13T12:36:40Z"
    assert evicted_at(late, [(TAINT, ADDED)]) == ADDED + 600 + 300


def test_a_taint_without_a_time_counts_from_when_it_was_first_seen() -> None:
    taints = Taints()
    undated = node("True", Taint("k", "", "NoExecute"), Taint("k", "", "NoSchedule"))
    assert [since for _, since in taints.since(undated, 100.0)] == [100.0]
    assert [since for _, since in taints.since(undated, 200.0)] == [100.0]
    assert taints.since(node("True"), 300.0) == []
    assert [since for _, since in taints.since(undated, 400.0)] == [400.0]


def test_silence_starts_again_after_nobody_could_be_heard() -> None:
    pulse = Pulse()
    pulse.silent_for("n", "sign", 0.0)
    pulse.restart(100.0)
    assert pulse.silent_for("n", "sign", 110.0) == 10
