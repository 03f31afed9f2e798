"""What a pod asks of a node."""

from __future__ import annotations

from typing import Any

import pytest

from posse.objects.meta import from_raw
from posse.objects.pods import Pod, PodSpec
from posse.objects.quantity import MAX_BASE_UNITS, QuantityError
from posse.objects.requests import as_held, container_requests, pod_requests

GPU = "nvidia.com/gpu"


def container(cpu: Any = None, *, gpu: Any = None, restart: str | None = None) -> dict[str, Any]:
    requests = {name: amount for name, amount in (("cpu", cpu), (GPU, gpu)) if amount is not None}
    return {"name": "c", "resources": {"requests": requests}, "restartPolicy": restart}


def sidecar(cpu: Any) -> dict[str, Any]:
    return container(cpu, restart="Always")


def spec(*containers: dict[str, Any], init: Any = (), **rest: Any) -> PodSpec:
    raw = {"containers": list(containers), "initContainers": list(init), **rest}
    return from_raw(raw, PodSpec)


CASES: list[tuple[str, PodSpec, dict[str, int]]] = [
    ("nothing is asked", spec(container()), {}),
    ("no containers", spec(), {}),
    ("containers add up", spec(container("1", gpu=1), container("500m")), {"cpu": 1500, GPU: 1}),
    ("an asked zero is kept", spec(container(gpu=0)), {GPU: 0}),
    ("a small init container hides", spec(container("2"), init=[container("1")]), {"cpu": 2000}),
    ("a large init container counts", spec(container("1"), init=[container("3")]), {"cpu": 3000}),
    (
        "init containers run one by one",
        spec(container("1"), init=[container("2"), container("2")]),
        {"cpu": 2000},
    ),
    ("sidecars run beside", spec(container("1"), init=[sidecar("2")]), {"cpu": 3000}),
    (
        "an init container runs beside the sidecars before it",
        spec(container("1"), init=[sidecar("2"), container("3")]),
        {"cpu": 5000},
    ),
    (
        "and not beside those after it",
        spec(container("1"), init=[container("3"), sidecar("1")]),
        {"cpu": 3000},
    ),
    (
        "resources are judged one by one",
        spec(container("1", gpu=2), init=[container("4", gpu=1)]),
        {"cpu": 4000, GPU: 2},
    ),
    (
        "overhead comes on top",
        spec(container("1"), init=[container("3")], overhead={"cpu": "250m", "memory": "1Ki"}),
        {"cpu": 3250, "memory": 1024},
    ),
    (
        "pod-level requests replace the sum",
        spec(container("1"), resources={"requests": {"cpu": "4", "memory": "1Gi"}}),
        {"cpu": 4000, "memory": 2**30},
    ),
    (
        "pod-level requests leave other resources alone",
        spec(container("1", gpu=2), resources={"requests": {"cpu": "4", GPU: "9"}}),
        {"cpu": 4000, GPU: 2},
    ),
    (
        "overhead comes on top of pod-level requests, too",
        spec(container("1"), resources={"requests": {"cpu": "4"}}, overhead={"cpu": "1"}),
        {"cpu": 5000},
    ),
    (
        "a pod-level limit counts where no container asks",
        spec(container("1"), resources={"limits": {"cpu": "4", "memory": "1Gi"}}),
        {"cpu": 1000, "memory": 2**30},
    ),
    (
        "a limit without a request is the request",
        spec(
            {"name": "c", "resources": {"limits": {GPU: 2, "cpu": "1"}, "requests": {"cpu": "0"}}}
        ),
        {"cpu": 0, GPU: 2},
    ),
    (
        "thousandths of memory are rounded once",
        spec(
            {"name": "a", "resources": {"requests": {"memory": "500m"}}},
            {"name": "b", "resources": {"requests": {"memory": "500m"}}},
        ),
        {"memory": 1},
    ),
    (
        "no amount exceeds the cap",
        spec(container("9E"), container("9E")),
        {"cpu": MAX_BASE_UNITS},
    ),
]


@pytest.mark.parametrize(("case", "pod", "asked"), CASES, ids=[case[0] for case in CASES])
def test_pod_requests(case: str, pod: PodSpec, asked: dict[str, int]) -> None:
    assert pod_requests(pod) == asked


def status(requests: Any, allocated: Any = None) -> dict[str, Any]:
    said: dict[str, Any] = {"name": "c", "resources": {"requests": requests}}
    return said if allocated is None else {**said, "allocatedResources": allocated}


def resized(asked: dict[str, Any], *statuses: dict[str, Any], **more: Any) -> Pod:
    told = {"containerStatuses": list(statuses)}
    return from_raw({"spec": {"containers": [asked]}, "status": told | more}, Pod)


INFEASIBLE = [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]
DEFERRED = [{"type": "PodResizePending", "status": "True", "reason": "Deferred"}]
HELD: list[tuple[str, Pod, dict[str, int]]] = [
    ("as it asks", resized(container("2"), status({"cpu": "2"})), {"cpu": 2000}),
    ("in other words", resized(container("2"), status({"cpu": "2000m"})), {"cpu": 2000}),
    (
        "kubernetes#117765: what it is to give back is not free yet",
        resized(container("1"), status({"cpu": "8"})),
        {"cpu": 8000},
    ),
    (
        "kubernetes#129532: nor is what was promised to it and is not wanted any more",
        resized(container("1"), status({"cpu": "2"}, {"cpu": "4"})),
        {"cpu": 4000},
    ),
    (
        "kubernetes#135107: what it waits for is not anybody else's",
        resized(container("8"), status({"cpu": "2"}), conditions=DEFERRED),
        {"cpu": 8000},
    ),
    (
        "what it can never have is not kept for it",
        resized(container("80", gpu=1), status({"cpu": "2"}, {"cpu": "3"}), conditions=INFEASIBLE),
        {"cpu": 3000, GPU: 1},
    ),
    ("a status without a word of it", resized(container("2"), {"name": "c"}), {"cpu": 2000}),
    ("a status of nonsense", resized(container("2"), status({"cpu": "lots"})), {"cpu": 2000}),
    (
        "of somebody else",
        resized(container("2"), status({"cpu": "9"}) | {"name": "x"}),
        {"cpu": 2000},
    ),
]


@pytest.mark.parametrize(("case", "pod", "held"), HELD, ids=[case[0] for case in HELD])
def test_what_a_pod_on_its_node_takes(case: str, pod: Pod, held: dict[str, int]) -> None:
    assert pod_requests(as_held(pod).spec) == held


@pytest.mark.parametrize(("kind", "cpus"), [(sidecar("1"), 5000), (container("1"), 1000)])
def test_of_init_containers_the_sidecars_are_resized(kind: dict[str, Any], cpus: int) -> None:
    pod = from_raw(
        {
            "spec": {"initContainers": [kind]},
            "status": {"initContainerStatuses": [status({"cpu": "5"})]},
        },
        Pod,
    )
    assert pod_requests(as_held(pod).spec) == {"cpu": cpus}


def test_a_pod_that_has_what_it_asks_for_is_the_same_pod() -> None:
    pod = resized(container("2"), status({"cpu": "2"}, {"cpu": "2"}))
    assert as_held(pod) is pod


def test_the_containers_alone() -> None:
    pod = spec(container("1"), resources={"requests": {"cpu": "4"}}, overhead={"cpu": "1"})
    assert container_requests(pod) == {"cpu": 1000}


@pytest.mark.parametrize(
    ("pod", "field"),
    [
        (spec(container("1"), container("much")), "spec.containers[1].resources.requests[cpu]"),
        (spec(init=[container("-1")]), "spec.initContainers[0].resources.requests[cpu]"),
        (spec(overhead={"memory": "1Gib"}), "spec.overhead[memory]"),
        (spec(resources={"requests": {"cpu": ""}}), "spec.resources.requests[cpu]"),
        (
            spec({"resources": {"limits": {GPU: "two"}}}),
            f"spec.containers[0].resources.limits[{GPU}]",
        ),
    ],
)
def test_a_bad_amount_is_named_by_its_field(pod: PodSpec, field: str) -> None:
    with pytest.raises(QuantityError) as raised:
        pod_requests(pod)
    assert raised.value.field == field
