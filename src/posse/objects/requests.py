"""What a pod asks of a node, computed exactly as Kubernetes does.

Containers run side by side, and so do the restartable init containers (sidecars) that precede
them; ordinary init containers run one after another, each beside the sidecars started before it.
The node must bear the larger of the two. Pod-level resources replace that figure for the resources
they name, and the overhead of the pod's sandbox comes on top.
"""

from __future__ import annotations

import msgspec

from posse.objects.pods import Container, ContainerStatus, Pod, PodSpec, Resources
from posse.objects.quantity import MAX_BASE_UNITS, QuantityError, milli_units

_POD_LEVEL = ("cpu", "memory")
_HUGE_PAGES = "hugepages-"
# What a container may be given more or less of while it runs.
_RESIZED = ("cpu", "memory")

_Amounts = dict[str, int]


def pod_requests(spec: PodSpec) -> dict[str, int]:
    """Requests in base units by resource; QuantityError names the field that is at fault.

    Amounts are summed in thousandths, the grain in which the API stores them, and rounded once.
    A limit without a request counts as the request, as it does once the API has filled it in.
    """
    total = _of_containers(spec)
    if spec.resources is not None:
        _replace_by_pod_level(total, spec.resources)
    for resource, amount in spec.overhead.items():
        field = f"spec.overhead[{resource}]"
        total[resource] = total.get(resource, 0) + _amount(amount, field)
    return _base_units(total)


def as_held(pod: Pod) -> Pod:
    """The pod as its node has to bear it; the same one where that is what it asks for.

    While a container is resized in place it counts with the most of what it asks for, what its
    node has promised it and what it has: what is to be given back is not free yet. What the node
    says it can never give is not counted.
    """
    held = {
        status.name: status
        for status in (*pod.status.container_statuses, *pod.status.init_container_statuses)
        if status.resources is not None
    }
    if not held:
        return pod
    vain = any(
        each.type == "PodResizePending" and each.status == "True" and each.reason == "Infeasible"
        for each in pod.status.conditions
    )
    spec = pod.spec
    containers = [_held(each, held.get(each.name), vain) for each in spec.containers]
    sidecars = [
        _held(each, held.get(each.name), vain) if each.restart_policy == "Always" else each
        for each in spec.init_containers
    ]
    if containers == spec.containers and sidecars == spec.init_containers:
        return pod
    spec = msgspec.structs.replace(spec, containers=containers, init_containers=sidecars)
    return msgspec.structs.replace(pod, spec=spec)


def _held(container: Container, status: ContainerStatus | None, vain: bool) -> Container:
    if status is None or status.resources is None:
        return container
    asked = container.resources.requests
    most = {key: amount for key, amount in asked.items() if not vain or key not in _RESIZED}
    try:
        for amounts in (status.resources.requests, status.allocated_resources or {}):
            for resource, amount in amounts.items():
                if resource not in most or _milli(amount) > _milli(most[resource]):
                    most[resource] = amount
    except QuantityError:
        return container
    if most == asked:
        return container
    resources = msgspec.structs.replace(container.resources, requests=most)
    return msgspec.structs.replace(container, resources=resources)


def container_requests(spec: PodSpec) -> dict[str, int]:
    """What the containers ask for together, whatever the pod says as a whole."""
    return _base_units(_of_containers(spec))


def is_pod_level(resource: str) -> bool:
    """Whether `spec.resources` may name this resource."""
    return resource in _POD_LEVEL or resource.startswith(_HUGE_PAGES)


def _of_containers(spec: PodSpec) -> _Amounts:
    total: _Amounts = {}
    for index, container in enumerate(spec.containers):
        _add(total, _asked(container, f"spec.containers[{index}]"))
    if spec.init_containers:
        _raise_to_init_containers(total, spec.init_containers)
    return total


def _base_units(total: _Amounts) -> dict[str, int]:
    return {
        resource: min(MAX_BASE_UNITS, milli if resource == "cpu" else -(-milli // 1000))
        for resource, milli in total.items()
    }


def _raise_to_init_containers(total: _Amounts, init_containers: list[Container]) -> None:
    sidecars: _Amounts = {}
    peak: _Amounts = {}
    for index, container in enumerate(init_containers):
        asked = _asked(container, f"spec.initContainers[{index}]")
        if container.restart_policy == "Always":
            _add(total, asked)
            _add(sidecars, asked)
            asked = sidecars
        else:
            _add(asked, sidecars)
        _raise(peak, asked)
    _raise(total, peak)


def _replace_by_pod_level(total: _Amounts, resources: Resources) -> None:
    for resource, amount in resources.requests.items():
        if is_pod_level(resource):
            total[resource] = _amount(amount, f"spec.resources.requests[{resource}]")
    for resource, amount in resources.limits.items():
        if is_pod_level(resource) and resource not in total:
            total[resource] = _amount(amount, f"spec.resources.limits[{resource}]")


def _asked(container: Container, path: str) -> _Amounts:
    asked: _Amounts = {}
    resources = container.resources
    for resource, amount in resources.requests.items():
        asked[resource] = _amount(amount, f"{path}.resources.requests[{resource}]")
    for resource, amount in resources.limits.items():
        if resource not in asked:
            asked[resource] = _amount(amount, f"{path}.resources.limits[{resource}]")
    return asked


def _milli(value: str | int | float) -> int:
    return milli_units(value, "resources")


def _amount(value: str | int | float, field: str) -> int:
    milli = milli_units(value, field)
    if milli < 0:
        raise QuantityError(field, value, "must be greater than or equal to 0")
    return milli


def _add(total: _Amounts, more: _Amounts) -> None:
    for resource, amount in more.items():
        total[resource] = total.get(resource, 0) + amount


def _raise(total: _Amounts, floor: _Amounts) -> None:
    for resource, amount in floor.items():
        if amount > total.get(resource, -1):
            total[resource] = amount
