"""Objects to facts: who is ours, in which gang, asking for what; and what is nonsense."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from posse.engine.facts import Expected, Shape, Toleration, requests_of
from posse.objects.groups import PodGroup
from posse.objects.nodes import Node
from posse.objects.pods import Pod
from posse.scheduler.reading.claims import Claims, role_of
from posse.scheduler.reading.groups import read_expects, read_group, read_holds, write_holds
from posse.scheduler.reading.nodes import read_node
from posse.scheduler.reading.pods import Place, Shapes, place_of
from posse.scheduler.reading.quarantine import Unreadable
from tests.unit.scheduler.rig import GPU, group, node, pod

Object = dict[str, Any]


def a_pod(document: Object) -> Pod:
    meta = {"namespace": "ns", "uid": "u"} | document["metadata"]
    return msgspec.convert(document | {"metadata": meta}, Pod)


VOLCANO = {"scheduling.volcano.sh/group-name": "v"}
KUBE_BATCH = {"scheduling.k8s.io/group-name": "k"}


@pytest.mark.parametrize(
    ("document", "gang"),
    [
        (pod("a"), "pod:ns/a"),
        (pod("a", scheduler="default-scheduler"), None),
        (pod("a", scheduler="default-scheduler", annotations=KUBE_BATCH), None),
        (pod("a", annotations=KUBE_BATCH), "ns/k"),
        (pod("a", annotations=VOLCANO), "ns/v"),
        (pod("a", annotations=VOLCANO | KUBE_BATCH), "ns/k"),
        (pod("a", annotations=KUBE_BATCH | {"posse.dev/gang": "false"}), "pod:ns/a"),
        (pod("a", annotations=KUBE_BATCH | {"posse.dev/gang": "true"}), "ns/k"),
        (pod("a", annotations={"scheduling.k8s.io/group-name": ""}), "pod:ns/a"),
    ],
)
def test_the_gang_of_a_pod(document: Object, gang: str | None) -> None:
    assert Claims().gang_of(a_pod(document)) == gang


def test_a_scheduler_may_answer_to_several_names_or_all() -> None:
    theirs = a_pod(pod("a", scheduler="volcano"))
    assert Claims(("posse", "volcano")).include(theirs)
    assert Claims((), everything=True).include(theirs)
    assert not Claims().include(theirs)


@pytest.mark.parametrize(
    ("labels", "annotations", "role"),
    [
        ({}, {}, ""),
        ({"training.kubeflow.org/replica-type": "worker"}, {}, "worker"),
        ({}, {"volcano.sh/task-spec": "ps"}, "ps"),
        ({"volcano.sh/task-spec": "ps"}, {}, "ps"),
        ({"volcano.sh/task-spec": "worker"}, {"volcano.sh/task-spec": "ps"}, "ps"),
        (
            {"training.kubeflow.org/replica-type": "worker"},
            {"volcano.sh/task-spec": "ps"},
            "ps",
        ),
    ],
)
def test_the_role_of_a_pod(labels: Object, annotations: Object, role: str) -> None:
    document = pod("a", annotations=annotations)
    document["metadata"]["labels"] = labels
    assert role_of(a_pod(document)) == role


@pytest.mark.parametrize(
    ("spec", "phase", "place"),
    [
        ({}, "Pending", Place.WAITING),
        ({}, "", Place.WAITING),
        ({"schedulingGates": [{"name": "g"}]}, "Pending", Place.GATED),
        ({"resourceClaims": [{"name": "c"}]}, "Pending", Place.BARRED),
        ({"nodeName": "n", "resourceClaims": [{"name": "c"}]}, "Pending", Place.BOUND),
        ({"nodeName": "n"}, "Pending", Place.BOUND),
        ({"nodeName": "n"}, "Running", Place.RUNNING),
        ({"nodeName": "n"}, "Unknown", Place.BOUND),
        ({"nodeName": "n"}, "Succeeded", Place.SUCCEEDED),
        ({"nodeName": "n"}, "Failed", Place.FAILED),
        ({}, "Failed", Place.FAILED),
    ],
)
def test_how_far_a_pod_has_come(spec: Object, phase: str, place: Place) -> None:
    assert place_of(a_pod(pod("a", **spec) | {"status": {"phase": phase}})) is place


def test_a_shape_is_what_the_pod_asks_and_where_it_may_go() -> None:
    shape = Shapes().of(
        a_pod(
            pod(
                "a",
                nodeSelector={"b": "2", "a": "1"},
                tolerations=[{"key": "gpu", "value": "yes", "effect": "NoSchedule"}],
            )
        )
    )
    assert shape.requests == (("cpu", 1000), (GPU, 2), ("pods", 1))
    assert shape.constraints.node_selector == (("a", "1"), ("b", "2"))
    assert shape.constraints.tolerations == (Toleration("gpu", "Equal", "yes", "NoSchedule"),)


def test_pods_of_one_template_share_one_shape_and_others_do_not() -> None:
    shapes = Shapes()
    one = shapes.of(a_pod(pod("a")))
    assert shapes.of(a_pod(pod("b"))) is one
    assert shapes.of(a_pod(pod("c", gpus=1))) != one
    sidecar = {"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}}
    once = sidecar | {"restartPolicy": None}
    assert (
        shapes.of(a_pod(pod("d", initContainers=[sidecar]))).requests
        != shapes.of(a_pod(pod("e", initContainers=[once]))).requests
    )


def test_requests_that_are_no_quantity_name_their_field() -> None:
    bad = a_pod(pod("a", overhead={"cpu": "lots"}))
    with pytest.raises(Unreadable, match="lots"):
        Shapes().of(bad)


EXPECTS_NONSENSE = [
    "",
    "nonsense",
    "null",
    "{}",
    "[1]",
    '[{"role": "launcher"}]',
    '[{"count": 1}]',
    '[{"role": "launcher", "count": "1"}]',
    '[{"role": "launcher", "count": 1.5}]',
    '[{"role": "launcher", "count": true}]',
    '[{"role": "launcher", "count": -1}]',
    '[{"role": "launcher", "count": 1000000000000}]',
    '[{"role": "", "count": 1}]',
    '[{"role": "a", "count": 1}, {"role": "a", "count": 1}]',
    '[{"role": "launcher", "count": 1, "requests": {"cpu": "many"}}]',
    '[{"role": "launcher", "count": 1, "requests": {"cpu": "-1"}}]',
    '[{"role": "launcher", "count": 1, "requests": ["cpu"]}]',
    '[{"role": "launcher", "count": 1, "nodes": 3}]',
    '[{"role": "launcher", "count": 1, "nodeSelector": {"a": 1}}]',
    "[" * 5000,
    '[{"role": "launcher", "count": NaN}]',
]


@pytest.mark.parametrize("text", EXPECTS_NONSENSE, ids=[t[:40] for t in EXPECTS_NONSENSE])
def test_a_nonsensical_announcement_names_its_field(text: str) -> None:
    with pytest.raises(Unreadable, match=r"posse\.dev/expects"):
        read_expects(text)


def test_an_announcement_is_read_in_the_order_of_its_roles() -> None:
    text = json.dumps(
        [
            {"role": "ps", "count": 2, "requests": {"cpu": "500m"}},
            {"role": "launcher", "count": 1, "nodeSelector": {"a": "b"}},
        ]
    )
    launcher, ps = read_expects(text)
    assert ps == Expected("ps", 2, Shape(requests_of({"cpu": 500})))
    assert launcher.shape.requests == (("pods", 1),)
    assert launcher.shape.constraints.node_selector == (("a", "b"),)


@pytest.mark.parametrize("text", ["", "[]", '{"a": "n"}', '{"a": [1]}', '{"a": [""]}', "{"])
def test_nonsensical_holds_name_their_field(text: str) -> None:
    with pytest.raises(Unreadable, match=r"posse\.dev/held"):
        read_holds(text)


def test_holds_survive_being_written() -> None:
    holds = (("launcher", "n3"), ("ps", "n1"), ("ps", "n1"), ("ps", "n2"))
    text = write_holds(tuple(reversed(holds)))
    assert text == '{"launcher":["n3"],"ps":["n1","n1","n2"]}'
    assert read_holds(text) == holds


@pytest.mark.parametrize(("asked", "least"), [(None, 1), (0, 1), (-2, 1), (1, 1), (4, 4)])
def test_the_minimum_of_a_group(asked: int | None, least: int) -> None:
    document = group("g", 1)
    document["spec"]["minMember"] = asked
    assert read_group(msgspec.convert(document, PodGroup)).min_member == least


def test_the_queue_of_a_group_is_the_default_one_unless_named() -> None:
    assert read_group(msgspec.convert({"metadata": {}}, PodGroup)).queue == "default"
    named = msgspec.convert(group("g", 1, queue="q"), PodGroup)
    assert read_group(named).queue == "q"


def a_node(**changes: Any) -> Node:
    return msgspec.convert(node("n") | changes, Node)


def tainted(key: str, effect: str = "NoSchedule") -> Object:
    return {"spec": {"taints": [{"key": key, "effect": effect}]}}


@pytest.mark.parametrize(
    ("changes", "ready", "schedulable", "closed"),
    [
        ({}, True, True, ""),
        ({"spec": {"unschedulable": True}}, True, False, ""),
        ({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}, False, True, ""),
        ({"status": {}}, False, True, ""),
        (tainted("ToBeDeletedByClusterAutoscaler"), True, True, "being removed"),
        (tainted("karpenter.sh/disrupted", "X"), True, True, "being removed"),
        (tainted("gpu"), True, True, ""),
        (
            {"metadata": {"name": "n", "deletionTimestamp": "2020-01-01T00:00:00Z"}},
            True,
            True,
            "being removed",
        ),
    ],
)
def test_which_nodes_take_pods(
    changes: Object, ready: bool, schedulable: bool, closed: str
) -> None:
    facts, why = read_node(a_node(**changes))
    assert (facts.ready, facts.schedulable, facts.closed, why) == (ready, schedulable, closed, "")


def test_a_node_that_is_not_trusted_is_closed_but_not_cordoned() -> None:
    facts, _ = read_node(a_node(), trusted=False)
    assert (facts.schedulable, facts.closed) == (True, "quarantined")


@pytest.mark.parametrize("amount", ["many", "-1", "", "1.5.5"])
def test_a_node_that_is_not_understood_takes_nothing_new(amount: str) -> None:
    status = {
        "allocatable": {"cpu": "4", GPU: amount},
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    facts, why = read_node(a_node(status=status))
    assert facts.closed == "quarantined"
    assert GPU in why
    assert facts.allocatable == {"cpu": 4000}
