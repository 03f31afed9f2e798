"""Requirements, selectors and terms: kube-scheduler's answers, operator by operator."""

from __future__ import annotations

import pytest

from posse.engine.fit.terms import Choice, HostPort, NodeTerm, PodTerm, Requirement, Selector

LABELS = {"zone": "a", "gpus": "8", "empty": "", "odd": "08x"}

REQUIREMENTS = [
    (Requirement("zone", "In", ("a", "b")), True),
    (Requirement("zone", "In", ("b",)), False),
    (Requirement("zone", "In"), False),
    (Requirement("rack", "In", ("a",)), False),
    (Requirement("rack", "In", ("",)), False),
    (Requirement("empty", "In", ("",)), True),
    (Requirement("zone", "NotIn", ("a",)), False),
    (Requirement("zone", "NotIn", ("b",)), True),
    (Requirement("rack", "NotIn", ("b",)), True),
    (Requirement("empty", "Exists"), True),
    (Requirement("rack", "Exists"), False),
    (Requirement("rack", "DoesNotExist"), True),
    (Requirement("empty", "DoesNotExist"), False),
    (Requirement("gpus", "Gt", ("7",)), True),
    (Requirement("gpus", "Gt", ("8",)), False),
    (Requirement("gpus", "Gt", ("-1",)), False),
    (Requirement("gpus", "Gt", ("0",)), True),
    (Requirement("gpus", "Lt", ("9",)), True),
    (Requirement("gpus", "Lt", ("8",)), False),
    (Requirement("gpus", "Lt", ("nine",)), False),
    (Requirement("gpus", "Lt", ("9", "10")), False),
    (Requirement("gpus", "Lt", ("9223372036854775808",)), False),
    (Requirement("odd", "Gt", ("1",)), False),
    (Requirement("rack", "Gt", ("1",)), False),
    (Requirement("zone", "Near", ("a",)), False),
]


@pytest.mark.parametrize(("requirement", "met"), REQUIREMENTS, ids=str)
def test_requirement(requirement: Requirement, met: bool) -> None:
    assert requirement.met(LABELS) is met


ZONE_A = NodeTerm((Requirement("zone", "In", ("a",)),))
ZONE_B = NodeTerm((Requirement("zone", "In", ("b",)),))
THIS_NODE = NodeTerm(fields=(Requirement("metadata.name", "In", ("n1",)),))
OTHER_NODE = NodeTerm(fields=(Requirement("metadata.name", "NotIn", ("n1",)),))

CHOICES = [
    (Choice((ZONE_A,)), True),
    (Choice((ZONE_B,)), False),
    (Choice((ZONE_B, ZONE_A)), True),
    (Choice(()), False),
    (Choice((NodeTerm(),)), False),
    (Choice((NodeTerm(), ZONE_A)), True),
    (Choice((THIS_NODE,)), True),
    (Choice((OTHER_NODE,)), False),
    (Choice((NodeTerm(ZONE_B.labels, THIS_NODE.fields),)), False),
    (Choice((NodeTerm(ZONE_A.labels, THIS_NODE.fields),)), True),
]


@pytest.mark.parametrize(("choice", "matches"), CHOICES, ids=str)
def test_terms_are_alternatives_and_an_empty_one_matches_nothing(
    choice: Choice, matches: bool
) -> None:
    assert choice.matches("n1", LABELS) is matches


APP = Selector((Requirement("app", "In", ("ps",)),))
PROD = Selector((Requirement("tier", "In", ("prod",)),))
POD_TERMS = [
    ("its own namespace", PodTerm("zone", APP, ("team",)), True),
    ("another namespace", PodTerm("zone", APP, ("other",)), False),
    ("namespaces by label", PodTerm("zone", APP, (), PROD), True),
    ("no namespace by label", PodTerm("zone", APP, (), APP), False),
    ("any namespace", PodTerm("zone", APP, (), Selector()), True),
    ("by name or by label", PodTerm("zone", APP, ("team",), APP), True),
    ("no selector", PodTerm("zone", None, ("team",)), False),
    ("an empty selector", PodTerm("zone", Selector(), ("team",)), True),
    ("other labels", PodTerm("zone", PROD, ("team",)), False),
]


@pytest.mark.parametrize(("why", "term", "matches"), POD_TERMS, ids=lambda value: str(value)[:30])
def test_a_pod_term_asks_for_namespace_and_labels(why: str, term: PodTerm, matches: bool) -> None:
    assert term.matches("team", {"app": "ps"}, {"tier": "prod"}) is matches, why


PORTS = [
    (HostPort(80), HostPort(80), True),
    (HostPort(80), HostPort(81), False),
    (HostPort(80), HostPort(80, "UDP"), False),
    (HostPort(80, address="10.0.0.1"), HostPort(80), True),
    (HostPort(80, address="10.0.0.1"), HostPort(80, address="10.0.0.2"), False),
    (HostPort(80, address="10.0.0.1"), HostPort(80, address="10.0.0.1"), True),
    (HostPort(80, "UDP", "10.0.0.1"), HostPort(80, address="10.0.0.1"), False),
]


@pytest.mark.parametrize(("one", "other", "clash"), PORTS, ids=str)
def test_ports_clash_on_one_address_or_on_all(one: HostPort, other: HostPort, clash: bool) -> None:
    assert one.clashes(other) is clash
    assert other.clashes(one) is clash
