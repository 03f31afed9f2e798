"""What a node takes and what it refuses, in Kubernetes' words."""

from __future__ import annotations

import pytest

from posse.local.node.admission import Ledger, refusal, requests_of, tolerates
from posse.objects.nodes import Taint
from posse.objects.pods import Container, PodSpec, Resources, Toleration

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
        "Pod was rejected: Node didn't have enough resource: nvidia.com/gpu, "
        "requested: 1, used: 0, capacity: 0"
    )


def test_what_a_pod_held_is_free_after_it() -> None:
    ledger = Ledger(NODE)
    ledger.take("a", requests_of(spec(gpu="2")))
    ledger.take("a", requests_of(spec(gpu="2")))
    ledger.release("a")
    ledger.release("a")
    assert ledger.shortage(requests_of(spec(gpu="2"))) is None


def test_a_node_selector_that_does_not_match_is_refused() -> None:
    wanting = PodSpec(node_selector={"zone": "a"})
    assert refusal(wanting, {"zone": "a"}, ()) is None
    rejection = refusal(wanting, {"zone": "b"}, ())
    assert rejection is not None
    assert rejection.reason == "NodeAffinity"


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
    assert refusal(PodSpec(), {}, [Taint("k", "", "NoSchedule")]) is None
    assert refusal(PodSpec(), {}, [Taint("k", "", "NoExecute")]) is not None
