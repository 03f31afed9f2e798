"""Affinities, spread constraints and host ports, from manifests to the engine's terms."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from posse.engine.facts import Shape
from posse.engine.fit.terms import (
    Attraction,
    Choice,
    HostPort,
    NodeTerm,
    PodTerm,
    Preference,
    Relations,
    Requirement,
    Selector,
    Spread,
)
from posse.objects.pods import Pod
from posse.scheduler.reading.groups import read_expects
from posse.scheduler.reading.pods import Shapes, read_pod
from posse.scheduler.reading.quarantine import Unreadable
from tests.unit.scheduler.rig import pod

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def a_pod(*, labels: dict[str, str] | None = None, name: str = "a", **spec: Any) -> Pod:
    document = pod(name, **spec)
    document["metadata"] |= {"namespace": "ns", "uid": "u", "labels": labels or {}}
    return msgspec.convert(document, Pod)


def shape(**like: Any) -> Shape:
    return Shapes().of(a_pod(**like))


def company(**like: Any) -> Relations:
    found = shape(**like).relations
    assert found is not None
    return found


def one_of(key: str, *values: str) -> Requirement:
    return Requirement(key, "In", values)


def test_a_plain_pod_asks_nothing_of_its_company() -> None:
    plain = a_pod(labels={"app": "x"})
    plain.spec.containers[0].ports = []
    assert Shapes().of(plain).relations is None


def test_required_node_affinity_is_one_choice_of_terms() -> None:
    terms = [
        {
            "matchExpressions": [{"key": "zone", "operator": "In", "values": ["b", "a"]}],
            "matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n1"]}],
        },
        {"matchExpressions": [{"key": "gpus", "operator": "Gt", "values": ["4"]}]},
        {},
    ]
    read = shape(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}})
    assert read.constraints.choices == (
        Choice(
            (
                NodeTerm(
                    (one_of("zone", "a", "b"),), (Requirement("metadata.name", "NotIn", ("n1",)),)
                ),
                NodeTerm((Requirement("gpus", "Gt", ("4",)),)),
                NodeTerm(),
            )
        ),
    )


def test_preferred_node_affinity_is_weighed() -> None:
    preferred = [
        {"weight": 7, "preference": {"matchExpressions": [{"key": "ssd", "operator": "Exists"}]}}
    ]
    read = shape(affinity={"nodeAffinity": {PREFERRED: preferred}})
    assert read.constraints.prefers == (Preference(7, NodeTerm((Requirement("ssd", "Exists"),))),)


def test_host_ports_of_containers_that_last() -> None:
    ports = [
        {"containerPort": 80, "hostPort": 8080},
        {"containerPort": 81},
        {"containerPort": 53, "hostPort": 53, "protocol": "UDP", "hostIP": "10.0.0.1"},
    ]
    containers = [{"name": "main", "ports": ports}]
    inits = [
        {"name": "s", "restartPolicy": "Always", "ports": [{"containerPort": 1, "hostPort": 9}]},
        {"name": "i", "ports": [{"containerPort": 1, "hostPort": 7}]},
    ]
    read = company(containers=containers, initContainers=inits)
    assert read.ports == (HostPort(9), HostPort(53, "UDP", "10.0.0.1"), HostPort(8080))


def term(**like: Any) -> dict[str, Any]:
    return {"topologyKey": "kubernetes.io/hostname"} | like


APP = {"labelSelector": {"matchLabels": {"app": "x"}}}
TERMS = [
    (term(**APP), (Selector((one_of("app", "x"),)), ("ns",), None)),
    (term(), (None, ("ns",), None)),
    (term(labelSelector={}), (Selector(), ("ns",), None)),
    (
        term(**APP, namespaces=["b", "a", "b"]),
        (Selector((one_of("app", "x"),)), ("a", "b"), None),
    ),
    (
        term(**APP, namespaceSelector={}),
        (Selector((one_of("app", "x"),)), (), Selector()),
    ),
    (
        term(**APP, namespaces=["b"], namespaceSelector={"matchLabels": {"t": "1"}}),
        (Selector((one_of("app", "x"),)), ("b",), Selector((one_of("t", "1"),))),
    ),
    (
        term(**APP, matchLabelKeys=["hash", "none"], mismatchLabelKeys=["tenant"]),
        (
            Selector(
                (one_of("app", "x"), one_of("hash", "h"), Requirement("tenant", "NotIn", ("t",)))
            ),
            ("ns",),
            None,
        ),
    ),
    (
        term(
            labelSelector={
                "matchLabels": {"app": "x"},
                "matchExpressions": [{"key": "hash", "operator": "In", "values": ["h"]}],
            },
            matchLabelKeys=["hash"],
        ),
        (Selector((one_of("app", "x"), one_of("hash", "h"))), ("ns",), None),
    ),
]


@pytest.mark.parametrize(("written", "read"), TERMS, ids=str)
@pytest.mark.parametrize("side", ["podAffinity", "podAntiAffinity"])
def test_a_pod_affinity_term(side: str, written: Any, read: Any) -> None:
    labels = {"app": "x", "hash": "h", "tenant": "t"}
    found = company(labels=labels, affinity={side: {REQUIRED: [written]}})
    terms = found.joins if side == "podAffinity" else found.avoids
    assert terms == (PodTerm("kubernetes.io/hostname", *read),)


def test_terms_that_copy_labels_differ_between_pods_that_differ_in_them() -> None:
    shapes = Shapes()
    affinity = {"podAntiAffinity": {REQUIRED: [term(**APP, matchLabelKeys=["hash"])]}}
    first = shapes.of(a_pod(labels={"hash": "1"}, affinity=affinity))
    second = shapes.of(a_pod(labels={"hash": "2"}, affinity=affinity))
    assert first != second


def test_terms_that_copy_no_labels_are_shared_by_pods_that_differ_in_them() -> None:
    shapes = Shapes()
    affinity = {"podAntiAffinity": {REQUIRED: [term(**APP)]}}
    first = shapes.of(a_pod(labels={"index": "1"}, affinity=affinity))
    assert shapes.of(a_pod(labels={"index": "2"}, affinity=affinity)) is first


def test_preferred_affinities_are_weighed_against_each_other() -> None:
    weighed = [{"weight": 7, "podAffinityTerm": term(**APP)}]
    found = company(
        affinity={"podAffinity": {PREFERRED: weighed}, "podAntiAffinity": {PREFERRED: weighed}}
    )
    near = PodTerm("kubernetes.io/hostname", X, ("ns",))
    assert found == Relations(prefers=(Attraction(7, near), Attraction(-7, near)))
    assert not found.binding


def spread(**like: Any) -> dict[str, Any]:
    return {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"} | like


X = Selector((one_of("app", "x"),))
SPREADS = [
    (spread(**APP), (Spread("zone", 1, X),)),
    (spread(), (Spread("zone", 1, None),)),
    (spread(**APP, maxSkew=3, minDomains=2), (Spread("zone", 3, X, 2),)),
    (
        spread(**APP, nodeAffinityPolicy="Ignore", nodeTaintsPolicy="Honor"),
        (Spread("zone", 1, X, by_affinity=False, by_taints=True),),
    ),
    (
        spread(**APP, matchLabelKeys=["hash", "none"]),
        (Spread("zone", 1, Selector((one_of("app", "x"), one_of("hash", "h")))),),
    ),
    (spread(matchLabelKeys=["hash"]), (Spread("zone", 1, None),)),
]


@pytest.mark.parametrize(("written", "read"), SPREADS, ids=str)
def test_a_spread_constraint(written: Any, read: Any) -> None:
    found = shape(labels={"app": "x", "hash": "h"}, topologySpreadConstraints=[written]).relations
    assert (() if found is None else found.spreads) == read


def test_a_spread_at_will_is_a_preference() -> None:
    found = company(topologySpreadConstraints=[spread(**APP, whenUnsatisfiable="ScheduleAnyway")])
    (attraction,) = found.prefers
    assert attraction.term == PodTerm("zone", X, ("ns",))
    assert attraction.weight < 0
    assert not found.binding


@pytest.mark.parametrize(
    ("field", "spec"),
    [
        ("spec.affinity", {"affinity": {"nodeAffinity": {REQUIRED: ["x"]}}}),
        ("spec.affinity", {"affinity": {"podAffinity": {REQUIRED: [{"topologyKey": 3}]}}}),
        (
            r"spec.topologySpreadConstraints\[0\]",
            {"topologySpreadConstraints": [spread(maxSkew="lots")]},
        ),
    ],
)
def test_nonsense_names_its_field(field: str, spec: Any) -> None:
    with pytest.raises(Unreadable, match=field):
        shape(**spec)


def test_others_see_the_labels_of_a_pod() -> None:
    one = a_pod(labels={"app": "x"})
    facts = read_pod(one, None, Shapes().of(one))
    assert (facts.namespace, facts.labels) == ("ns", {"app": "x"})


def test_members_to_come_are_where_their_affinity_says() -> None:
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    said = {
        "role": "launcher",
        "count": 1,
        "nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}},
    }
    (launcher,) = read_expects(json.dumps([said]))
    assert launcher.shape.constraints.choices == (Choice((NodeTerm((one_of("zone", "a"),)),)),)
