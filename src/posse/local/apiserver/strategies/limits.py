"""LimitRanges: defaults for containers that say nothing, bounds for those that do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from posse.local.apiserver import statuses
from posse.local.apiserver.store import Object
from posse.local.apiserver.strategies.strategy import Context
from posse.objects import quantity
from posse.objects.kinds import LIMIT_RANGE, POD
from posse.objects.raw import mapping, mappings

_ANNOTATION = "kubernetes.io/limit-ranger"
Amounts = dict[str, int]  # billionths


def admit(context: Context, pod: Object) -> bool:
    """Fills in the defaults of the namespace's LimitRanges, then holds the pod to their bounds.

    Returns whether it filled in anything.
    """
    namespace = pod["metadata"]["namespace"]
    ranges = sorted(
        context.store.all_latest(LIMIT_RANGE.qualified, namespace), key=lambda one: one.key
    )
    if not ranges:
        return False
    bounds = [limit for one in ranges for limit in mappings(one.obj, "spec", "limits")]
    filled: list[str] = []
    for limit in bounds:
        if limit.get("type") == "Container":
            filled += _fill(pod["spec"], limit)
    if filled:
        annotations = pod["metadata"].setdefault("annotations", {})
        annotations.setdefault(_ANNOTATION, "LimitRanger plugin set: " + "; ".join(filled))
    problems = [problem for limit in bounds for problem in _problems(pod["spec"], limit)]
    if problems:
        metadata = pod["metadata"]
        name = metadata.get("name") or metadata.get("generateName", "")
        told = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
        raise statuses.forbidden(POD, name, told)
    return bool(filled)


def _fill(spec: Object, limit: dict[str, Any]) -> Iterator[str]:
    for field, what in (("containers", "container"), ("initContainers", "init container")):
        for container in spec.get(field) or []:
            resources = container.setdefault("resources", {})
            for part, default in (("requests", "defaultRequest"), ("limits", "default")):
                present = resources.get(part) or {}
                missing = {
                    name: amount
                    for name, amount in sorted(mapping(limit, default).items())
                    if name not in present
                }
                if missing:
                    resources[part] = {**present, **missing}
                    yield f"{', '.join(missing)} {part[:-1]} for {what} {container.get('name')}"


def _problems(spec: Object, limit: dict[str, Any]) -> Iterator[str]:
    match limit.get("type"):
        case "Container":
            for field in ("containers", "initContainers"):
                for container in spec.get(field) or []:
                    resources = container.get("resources")
                    requests = _amounts(mapping(resources, "requests"))
                    limits = _amounts(mapping(resources, "limits"))
                    yield from _outside(limit, "Container", requests, limits)
        case "Pod":
            yield from _outside(limit, "Pod", _total(spec, "requests"), _total(spec, "limits"))


def _outside(limit: dict[str, Any], what: str, requests: Amounts, limits: Amounts) -> Iterator[str]:
    for name, text in sorted(mapping(limit, "min").items()):
        bound, rule = quantity.parse(text).nano, f"minimum {name} usage per {what} is {text}"
        if name not in requests:
            yield f"{rule}.  No request is specified"
        elif requests[name] < bound:
            yield f"{rule}, but request is {_shown(name, requests[name])}"
        elif limits.get(name, bound) < bound:
            yield f"{rule}, but limit is {_shown(name, limits[name])}"
    for name, text in sorted(mapping(limit, "max").items()):
        bound, rule = quantity.parse(text).nano, f"maximum {name} usage per {what} is {text}"
        if name not in limits:
            yield f"{rule}.  No limit is specified"
        elif limits[name] > bound:
            yield f"{rule}, but limit is {_shown(name, limits[name])}"
        elif requests.get(name, 0) > bound:
            yield f"{rule}, but request is {_shown(name, requests[name])}"
    for name, text in sorted(mapping(limit, "maxLimitRequestRatio").items()):
        rule = f"{name} max limit to request ratio per {what} is {text}"
        if not requests.get(name):
            yield f"{rule}, but no request is specified or request is 0"
        elif not limits.get(name):
            yield f"{rule}, but no limit is specified or limit is 0"
        elif limits[name] * 10**9 > quantity.parse(text).nano * requests[name]:
            yield f"{rule}, but provided ratio is {limits[name] / requests[name]:f}"


def _total(spec: Object, part: str) -> Amounts:
    """Of the pod: the sum of its containers, or its largest init container if that is more."""
    total: Amounts = {}
    for container in spec.get("containers") or []:
        for name, amount in _amounts(mapping(container, "resources", part)).items():
            total[name] = total.get(name, 0) + amount
    for container in spec.get("initContainers") or []:
        for name, amount in _amounts(mapping(container, "resources", part)).items():
            total[name] = max(total.get(name, 0), amount)
    return total


def _amounts(texts: dict[str, Any]) -> Amounts:
    """Amounts that cannot be read are for validation to refuse, not for a limit to judge."""
    amounts: Amounts = {}
    for name, text in texts.items():
        try:
            amounts[name] = quantity.parse(text).nano
        except quantity.QuantityError:
            continue
    return amounts


def _shown(name: str, nano: int) -> str:
    amount = quantity.Quantity(nano)
    return quantity.format_base_units(name, amount.milli if name == "cpu" else amount.value)
