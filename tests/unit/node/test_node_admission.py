"""What a node takes and what it refuses, in Kubernetes' words."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from posse.local.node.admission import (
    HostPort,
    Ledger,
    driven_off,
    judged,
    ports_of,
    requests_of,
    tolerates,
)
from posse.objects.meta import ObjectMeta
from posse.objects.nodes import Node, NodeSpec, Taint
from posse.objects.pods import Container, ContainerPort, PodSpec, Resources, Toleration

NODE = {"cpu": 4000, "memory": 8 << 30, "nvidia.com/gpu": 2, "pods": 3}


def spec(**requests: str) -> PodSpec:
    named = {name.replace("gpu", "nvidia.com/gpu"): amount for name, amount in requests.items()}
    return PodSpec(containers=[Container("main", "image", Resources(requests=dict(named)))])


@pytest.mark.parametrize(
    ("used", "asked", "reason"),
    [
        ([], spec(cpu="4", memory="8Gi", gpu="2"), None),
        ([], spec(cpu="4001m"), "OutOfcpu"),
        ([], spec(memory="9Gi"), "OutOfmemory"),
        ([], spec(gpu="3"), "OutOfnvidia.com/gpu"),
        ([spec(gpu="2")], spec(gpu="1"), "OutOfnvidia.com/gpu"),
        ([spec(gpu="2")], spec(cpu="1"), None),
        ([spec()] * 3, spec(), "OutOfpods"),
        ([spec(cpu="4")], spec(cpu="1", gpu="3"), "OutOfcpu"),
    ],
)
def test_a_pod_is_taken_only_where_everything_it_asks_is_left(
    used: list[PodSpec], asked: PodSpec, reason: str | None
) -> None:
    ledger = Ledger(NODE)
    for index, pod in enumerate(used):
        ledger.take(f"uid-{index}", requests_of(pod))
    rejection = ledger.shortage(requests_of(asked))
    assert (rejection.reason if rejection else None) == reason


def test_a_resource_that_the_node_does_not_have_is_short() -> None:
    ledger = Ledger({"cpu": 1000, "pods": 1})
    rejection = ledger.shortage(requests_of(spec(gpu="1")))
    assert rejection is not None
    assert rejection.message == (
        "Node didn't have enough resource: nvidia.com/gpu, requested: 1, used: 0, capacity: 0"
    )


def test_what_a_pod_held_is_free_after_it() -> None:
    ledger = Ledger(NODE)
    ledger.take("a", requests_of(spec(gpu="2")))
    ledger.take("a", requests_of(spec(gpu="2")))
    ledger.release("a")
    ledger.release("a")
    assert ledger.shortage(requests_of(spec(gpu="2"))) is None


def node(*taints: Taint, **labels: str) -> Node:
    return Node(ObjectMeta(name="n1", labels=labels), NodeSpec(taints=list(taints)))


def verdict(
    spec: PodSpec, on: Node, ledger: Ledger | None = None, pod: dict[str, Any] | None = None
) -> str | None:
    rejection = judged(pod or {}, spec, on, Ledger(NODE) if ledger is None else ledger)
    return rejection.reason if rejection else None


def wanting(*terms: list[dict[str, Any]], fields: bool = False) -> PodSpec:
    """A pod with one required term for each list of expressions."""
    name = "matchFields" if fields else "matchExpressions"
    selector = {"nodeSelectorTerms": [{name: term} for term in terms]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": selector}
    return PodSpec(affinity={"nodeAffinity": required})


def label(operator: str, *values: str, key: str = "zone") -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


def test_a_node_selector_that_does_not_match_is_refused() -> None:
    asking = PodSpec(node_selector={"zone": "a"})
    assert verdict(asking, node(zone="a")) is None
    rejection = judged({}, asking, node(zone="b"), Ledger(NODE))
    assert rejection is not None
    assert rejection.reason == "NodeAffinity"
    assert rejection.message == (
        "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
    )


@pytest.mark.parametrize(
    ("asking", "taken"),
    [
        (wanting([label("In", "a", "b")]), True),
        (wanting([label("In", "b")]), False),
        (wanting([label("In", "b")], [label("Exists")]), True),
        (wanting([label("Exists"), label("NotIn", "a")]), False),
        (wanting([label("NotIn", "b", key="none")]), True),
        (wanting([label("DoesNotExist")]), False),
        (wanting([label("Gt", "3", key="size")]), True),
        (wanting([label("Gt", "4", key="size")]), False),
        (wanting([label("Lt", "10", key="size")]), True),
        (wanting([label("Lt", "10", key="none")]), False),
        (wanting([label("Gt", "x", key="size")]), False),
        (wanting([]), False),
        (wanting(), False),
        (wanting([label("Near", "a")], [label("In", "a")]), True),
        (wanting([label("In", "n1", key="metadata.name")], fields=True), True),
        (wanting([label("NotIn", "n1", key="metadata.name")], fields=True), False),
        (wanting([label("In", "n1", key="metadata.uid")], fields=True), False),
        (PodSpec(affinity={"nodeAffinity": {}}), True),
        (PodSpec(affinity={"podAffinity": {}}), True),
    ],
)
def test_node_affinity_is_read_as_kubernetes_reads_it(asking: PodSpec, taken: bool) -> None:
    assert verdict(asking, node(zone="a", size="4")) == (None if taken else "NodeAffinity")


def test_preferences_keep_nobody_out() -> None:
    preferred = [{"weight": 1, "preference": {"matchExpressions": [label("In", "b")]}}]
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    assert verdict(PodSpec(affinity=affinity), node(zone="a")) is None


def using(*ports: ContainerPort, **more: Any) -> PodSpec:
    return PodSpec(containers=[Container("main", "image", ports=list(ports))], **more)


def port(number: int, protocol: str = "TCP", address: str = "") -> ContainerPort:
    return ContainerPort(80, "", protocol, number, address)


@pytest.mark.parametrize(
    ("held", "asked", "free"),
    [
        (port(8080), port(8080), False),
        (port(8080), port(8081), True),
        (port(8080), port(8080, "UDP"), True),
        (port(8080, address="10.0.0.1"), port(8080, address="10.0.0.2"), True),
        (port(8080, address="10.0.0.1"), port(8080, address="10.0.0.1"), False),
        (port(8080, address="10.0.0.1"), port(8080), False),
        (port(8080, address="0.0.0.0"), port(8080, address="10.0.0.1"), False),
        (port(0), port(0), True),
    ],
)
def test_a_port_of_the_node_is_given_once(
    held: ContainerPort, asked: ContainerPort, free: bool
) -> None:
    ledger = Ledger(NODE)
    ledger.take("a", requests_of(using(held)), ports_of(using(held)))
    assert verdict(using(asked), node(), ledger) == (None if free else "NodePorts")
    ledger.release("a")
    assert verdict(using(asked), node(), ledger) is None


def test_a_sidecar_keeps_its_port_and_an_init_container_does_not() -> None:
    init = Container("init", "image", ports=[port(1)])
    sidecar = Container("side", "image", ports=[port(2)], restart_policy="Always")
    both = using(port(3), init_containers=[init, sidecar])
    assert ports_of(both) == [HostPort("TCP", 2, "0.0.0.0"), HostPort("TCP", 3, "0.0.0.0")]


def test_the_first_of_several_reasons_is_told() -> None:
    """Room before affinity, that before ports, and taints last."""
    ledger, tainted = Ledger(NODE), node(Taint("k", "", "NoExecute"), zone="a")
    ledger.take("a", requests_of(using(port(1))), ports_of(using(port(1))))
    all_wrong = msgspec.structs.replace(
        using(port(1)), node_selector={"zone": "b"}, overhead={"cpu": "5"}
    )
    assert verdict(all_wrong, tainted, ledger) == "OutOfcpu"
    all_wrong.overhead = {}
    assert verdict(all_wrong, tainted, ledger) == "NodeAffinity"
    all_wrong.node_selector = {}
    assert verdict(all_wrong, tainted, ledger) == "NodePorts"
    ledger.release("a")
    assert verdict(all_wrong, tainted, ledger) == "TaintToleration"


def test_a_pod_for_another_system_is_refused_first() -> None:
    windows: dict[str, Any] = {"spec": {"os": {"name": "windows"}}}
    linux: dict[str, Any] = {"spec": {"os": {"name": "linux"}}}
    labelled = {"metadata": {"labels": {"kubernetes.io/os": "windows"}}}
    on = node(**{"kubernetes.io/os": "linux"})
    assert verdict(spec(cpu="9"), on, pod=windows) == "PodOSNotSupported"
    assert verdict(spec(), on, pod=linux) is None
    assert verdict(spec(), on, pod=labelled) == "PodOSSelectorNodeLabelDoesNotMatch"


@pytest.mark.parametrize(
    ("toleration", "taint", "expected"),
    [
        (Toleration("k", "Equal", "v", "NoExecute"), Taint("k", "v", "NoExecute"), True),
        (Toleration("k", "", "v"), Taint("k", "v", "NoExecute"), True),
        (Toleration("k", "Equal", "w"), Taint("k", "v", "NoExecute"), False),
        (Toleration("k", "Exists"), Taint("k", "v", "NoExecute"), True),
        (Toleration("k", "Exists", "", "NoSchedule"), Taint("k", "v", "NoExecute"), False),
        (Toleration("", "Exists"), Taint("anything", "v", "NoExecute"), True),
        (Toleration("", "Equal", ""), Taint("k", "", "NoExecute"), False),
    ],
)
def test_tolerations_match_as_kubernetes_matches_them(
    toleration: Toleration, taint: Taint, expected: bool
) -> None:
    assert tolerates(toleration, taint) is expected


def test_only_a_no_execute_taint_keeps_a_bound_pod_out() -> None:
    assert driven_off(PodSpec(), [Taint("k", "", "NoSchedule")]) is None
    rejection = driven_off(PodSpec(), [Taint("k", "", "NoExecute")])
    assert rejection is not None
    assert rejection.reason == "TaintToleration"
    assert rejection.message == (
        "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate"
    )
