"""Which nodes a pod may use: tolerations and bars, as Kubernetes answers."""

from __future__ import annotations

import pytest

from posse.engine.facts import Constraints, NodeFacts, Taint, Toleration
from posse.engine.fit.eligibility import Bar, bar
from posse.engine.view import View
from tests.scenarios.language import node, shape

GPU_ONLY = Taint("dedicated", "gpu", "NoSchedule")

TOLERATIONS = [
    (Toleration("dedicated", "Equal", "gpu", "NoSchedule"), True),
    (Toleration("dedicated", "", "gpu"), True),
    (Toleration("dedicated", "Equal", "cpu"), False),
    (Toleration("dedicated", "Equal", "gpu", "NoExecute"), False),
    (Toleration("dedicated", "Exists"), True),
    (Toleration("dedicated", "Exists", effect="NoSchedule"), True),
    (Toleration("other", "Exists"), False),
    (Toleration(operator="Exists"), True),
    (Toleration(operator="Exists", effect="NoExecute"), False),
    (Toleration(), False),
    (Toleration("dedicated", "Sometimes", "gpu"), False),
]


@pytest.mark.parametrize(("toleration", "tolerated"), TOLERATIONS, ids=str)
def test_toleration(toleration: Toleration, tolerated: bool) -> None:
    assert toleration.tolerates(GPU_ONLY) is tolerated


@pytest.mark.parametrize(
    ("operator", "bound", "value", "tolerated"),
    [
        ("Gt", "950", "999", True),
        ("Gt", "950", "950", False),
        ("Gt", "-2", "-1", True),
        ("Lt", "950", "949", True),
        ("Lt", "950", "950", False),
        ("Lt", "950", "0949", False),
        ("Lt", "950", "", False),
        ("Lt", "nine", "8", False),
        ("Gt", "-0", "8", False),
        ("Gt", "0", "9223372036854775808", False),
    ],
)
def test_a_toleration_up_to_a_number(
    operator: str, bound: str, value: str, tolerated: bool
) -> None:
    taint = Taint("sla", value)
    assert Toleration("sla", operator, bound).tolerates(taint) is tolerated
    assert not Toleration("other", operator, bound).tolerates(taint)


EVERYTHING = Constraints(tolerations=(Toleration(operator="Exists"),))
ZONE_A = Constraints(node_selector=(("zone", "a"),))
BARS = [
    ("an ordinary node", node("n"), Constraints(), Bar.NONE),
    ("a label that differs", node("n", labels={"zone": "b"}), ZONE_A, Bar.SELECTOR),
    ("a label that is missing", node("n"), ZONE_A, Bar.SELECTOR),
    ("a label that matches", node("n", labels={"zone": "a"}), ZONE_A, Bar.NONE),
    ("not ready", node("n", ready=False), EVERYTHING, Bar.NOT_READY),
    ("cordoned", node("n", cordoned=True), Constraints(), Bar.CORDON),
    ("cordoned, but tolerated", node("n", cordoned=True), EVERYTHING, Bar.NONE),
    ("NoSchedule", node("n", taints=[GPU_ONLY]), Constraints(), Bar.TAINT),
    ("NoSchedule, tolerated", node("n", taints=[GPU_ONLY]), EVERYTHING, Bar.NONE),
    ("NoExecute", node("n", taints=[Taint("x", effect="NoExecute")]), Constraints(), Bar.TAINT),
    (
        "PreferNoSchedule",
        node("n", taints=[Taint("x", effect="PreferNoSchedule")]),
        Constraints(),
        Bar.NONE,
    ),
    (
        "one of two taints tolerated",
        node("n", taints=[GPU_ONLY, Taint("x")]),
        Constraints(tolerations=(Toleration("x", "Exists"),)),
        Bar.TAINT,
    ),
    (
        "closed to all",
        node("n", closed="being removed"),
        EVERYTHING,
        Bar.CLOSED,
    ),
    (
        "closed to all, and cordoned",
        node("n", closed="quarantined", cordoned=True),
        EVERYTHING,
        Bar.CLOSED,
    ),
    ("no node at all", None, Constraints(), Bar.UNKNOWN),
]


@pytest.mark.parametrize(
    ("facts", "constraints", "expected"),
    [case[1:] for case in BARS],
    ids=[case[0] for case in BARS],
)
def test_bar(facts: NodeFacts | None, constraints: Constraints, expected: Bar) -> None:
    assert bar(facts, constraints) is expected


def test_bars_follow_a_node_that_changes() -> None:
    view = View()
    view.set_node(node("n", cordoned=True))
    seating = view.seating(shape(cores=1))
    assert seating.total() == 0
    view.set_node(node("n"))
    assert seating.total() == 16
    view.set_node(node("n", labels={"a": "b"}, ready=False))
    assert seating.total() == 0
