"""The quality of service that a pod's requests and limits earn it."""

from __future__ import annotations

from posse.objects.quantity import QuantityError, milli_units
from posse.objects.raw import Raw, mapping, mappings

GUARANTEED, BURSTABLE, BEST_EFFORT = "Guaranteed", "Burstable", "BestEffort"

_COUNTED = ("cpu", "memory")


def qos_class(spec: Raw) -> str:
    """Guaranteed, Burstable or BestEffort, by cpu and memory alone.

    Guaranteed is a pod whose every container limits both and asks for as much as it may use.
    """
    requests: dict[str, int] = {}
    limits: dict[str, int] = {}
    if pod_level := mapping(spec, "resources"):
        asked, bound = _amounts(pod_level, "requests"), _amounts(pod_level, "limits")
        if asked or bound:
            return _graded(asked, bound, len(bound) == len(_COUNTED))
    all_limited = True
    for container in mappings(spec, "containers") + mappings(spec, "initContainers"):
        resources = mapping(container, "resources")
        bound = _amounts(resources, "limits")
        all_limited = all_limited and len(bound) == len(_COUNTED)
        for total, amounts in ((requests, _amounts(resources, "requests")), (limits, bound)):
            for resource, amount in amounts.items():
                total[resource] = total.get(resource, 0) + amount
    return _graded(requests, limits, all_limited)


def _graded(requests: dict[str, int], limits: dict[str, int], all_limited: bool) -> str:
    if not requests and not limits:
        return BEST_EFFORT
    return GUARANTEED if all_limited and requests == limits else BURSTABLE


def _amounts(resources: Raw, kind: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for resource, amount in mapping(resources, kind).items():
        if resource in _COUNTED:
            try:
                milli = milli_units(amount)
            except QuantityError:
                continue
            if milli > 0:
                found[resource] = milli
    return found
