"""ResourceQuotas: what a namespace may hold, counted from the objects that are there.

Usage is never kept as a running sum that could drift: it is counted anew, from figures that each
stored state carries once they have been computed.
"""

from __future__ import annotations

from typing import Any

import msgspec

from posse.local.apiserver import statuses
from posse.local.apiserver.store import Object, Store, Stored
from posse.local.apiserver.strategies.strategy import Context
from posse.objects import quantity
from posse.objects.kinds import POD, RESOURCE_QUOTA, SERVICE, Kind
from posse.objects.meta import from_raw
from posse.objects.pods import PodSpec
from posse.objects.raw import mapping, mappings
from posse.objects.requests import pod_requests

Usage = dict[str, int]  # by the quota's own names, in base units

_COUNTED_BY_NAME = ("pods", "services", "secrets", "configmaps", "resourcequotas")
_MUST_BE_SAID = ("cpu", "memory", "ephemeral-storage")
_NATIVE = ("cpu", "memory", "ephemeral-storage", "storage")


def check(context: Context, kind: Kind, obj: Object) -> None:
    """Forbids an object that would take its namespace over a quota."""
    metadata = obj["metadata"]
    quotas = _quotas(context.store, metadata.get("namespace") or "")
    if not quotas:
        return
    name = metadata.get("name", "")
    asked = usage(kind, obj)
    for quota in quotas:
        hard = hard_limits(quota.obj)
        if not applies(quota.obj, kind, obj):
            continue
        if kind == POD and (unsaid := _unsaid(hard, obj["spec"])):
            why = f"failed quota: {quota.key[1]}: must specify {unsaid}"
            raise statuses.forbidden(kind, name, why)
        bounded = {what: asked[what] for what in sorted(hard) if asked.get(what, 0) > 0}
        if not bounded:
            continue
        used = count(context.store, quota.obj, list(bounded))
        over = [what for what in bounded if used.get(what, 0) + bounded[what] > hard[what]]
        if over:
            requested = _listed({what: bounded[what] for what in over})
            taken = _listed({what: used.get(what, 0) for what in over})
            limited = _listed({what: hard[what] for what in over})
            why = (
                f"exceeded quota: {quota.key[1]}, requested: {requested}, used: {taken},"
                f" limited: {limited}"
            )
            raise statuses.forbidden(kind, name, why)


def status_of(store: Store, quota: Object) -> dict[str, Any]:
    """The status a quota should show."""
    hard = mapping(quota, "spec", "hard")
    used = count(store, quota, list(hard))
    return {
        "hard": dict(hard),
        "used": {what: shown(what, used.get(what, 0)) for what in hard},
    }


def count(store: Store, quota: Object, what: list[str]) -> Usage:
    """How much of each is in use in the quota's namespace."""
    namespace = quota["metadata"]["namespace"]
    total: Usage = {}
    resources = dict.fromkeys(_resource_of(name) for name in what)
    for resource in resources:
        for stored in store.all_latest(resource, namespace):
            if not _applies_to(quota, resource, stored.obj):
                continue
            taken = _usage_of(resource, stored)
            for name in what:
                if name in taken:
                    total[name] = total.get(name, 0) + taken[name]
    return total


def usage(kind: Kind, obj: Object) -> Usage:
    """What one object takes."""
    return _usage(kind.qualified, obj)


def applies(quota: Object, kind: Kind, obj: Object) -> bool:
    return _applies_to(quota, kind.qualified, obj)


def hard_limits(quota: Object) -> Usage:
    """The limits that can be read; validation keeps the others out."""
    limits: Usage = {}
    for what, text in mapping(quota, "spec", "hard").items():
        try:
            limits[what] = quantity.base_units(_unit(what), text, what)
        except quantity.QuantityError:
            continue
    return limits


def shown(what: str, amount: int) -> str:
    return quantity.format_base_units(_unit(what), amount)


def _quotas(store: Store, namespace: str) -> list[Stored]:
    if not namespace:
        return []
    return sorted(
        store.all_latest(RESOURCE_QUOTA.qualified, namespace), key=lambda stored: stored.key
    )


def _resource_of(what: str) -> str:
    """The store's name of the resource whose objects make up this figure."""
    if what.startswith("count/"):
        return what.removeprefix("count/")
    if what.startswith("services."):
        return SERVICE.qualified
    return what if what in _COUNTED_BY_NAME else POD.qualified


def _unit(what: str) -> str:
    """The resource whose units the figure has."""
    for prefix in ("requests.", "limits."):
        if what.startswith(prefix):
            return what.removeprefix(prefix)
    return what


def _usage_of(resource: str, stored: Stored) -> Usage:
    if stored.usage is None:
        stored.usage = _usage(resource, stored.obj)
    return stored.usage


def _usage(resource: str, obj: Object) -> Usage:
    taken: Usage = {f"count/{resource}": 1}
    if resource == POD.qualified:
        if mapping(obj, "status").get("phase") not in ("Succeeded", "Failed"):
            taken["pods"] = 1
            taken.update(_compute(obj["spec"]))
        return taken
    if resource in _COUNTED_BY_NAME:
        taken[resource] = 1
    if resource == SERVICE.qualified:
        spec = mapping(obj, "spec")
        if spec.get("type") in ("NodePort", "LoadBalancer"):
            taken["services.nodeports"] = len(spec.get("ports") or [])
        if spec.get("type") == "LoadBalancer":
            taken["services.loadbalancers"] = 1
    return taken


def _compute(spec: dict[str, Any]) -> Usage:
    taken: Usage = {}
    try:
        requests = pod_requests(from_raw(spec, PodSpec))
        limits = pod_requests(from_raw(_with_limits_alone(spec), PodSpec))
    except (quantity.QuantityError, msgspec.ValidationError):
        # Validation lets no such pod in; one that is in nevertheless must not stop the counting.
        return taken
    for name, amount in requests.items():
        taken[f"requests.{name}"] = amount
        if name in _NATIVE or name.startswith("hugepages-"):
            taken[name] = amount
    for name, amount in limits.items():
        taken[f"limits.{name}"] = amount
    return taken


def _with_limits_alone(spec: dict[str, Any]) -> dict[str, Any]:
    """The pod as if it asked for nothing but its limits."""

    def limited(part: dict[str, Any]) -> dict[str, Any]:
        return {**part, "resources": {"limits": mapping(part, "resources", "limits")}}

    changed = dict(spec)
    for field in ("containers", "initContainers"):
        if spec.get(field):
            changed[field] = [limited(container) for container in spec[field]]
    if spec.get("resources"):
        changed = limited(changed)
    return changed


def _unsaid(hard: Usage, spec: dict[str, Any]) -> str:
    """Which figures a quota needs and which containers leave them out."""
    parts: list[str] = []
    containers = [*mappings(spec, "containers"), *mappings(spec, "initContainers")]
    for what in sorted(hard):
        name = _unit(what)
        if name not in _MUST_BE_SAID:
            continue
        field = "limits" if what.startswith("limits.") else "requests"
        if name in mapping(spec, "resources", field):
            continue
        silent = [c["name"] for c in containers if name not in mapping(c, "resources", field)]
        if silent:
            parts.append(f"{what} for: {','.join(silent)}")
    return "; ".join(parts)


def _listed(amounts: Usage) -> str:
    return ",".join(f"{what}={shown(what, amount)}" for what, amount in sorted(amounts.items()))


def _applies_to(quota: Object, resource: str, obj: Object) -> bool:
    """Whether the object is within every scope of the quota; only pods can be."""
    spec = mapping(quota, "spec")
    scopes = [{"scopeName": name, "operator": "Exists"} for name in spec.get("scopes") or []]
    scopes += mappings(spec, "scopeSelector", "matchExpressions")
    if not scopes:
        return True
    return resource == POD.qualified and all(_in_scope(scope, obj) for scope in scopes)


def _in_scope(scope: dict[str, Any], pod: Object) -> bool:
    spec = pod["spec"]
    match scope.get("scopeName"):
        case "Terminating":
            return (spec.get("activeDeadlineSeconds") or -1) >= 0
        case "NotTerminating":
            return (spec.get("activeDeadlineSeconds") or -1) < 0
        case "BestEffort":
            return mapping(pod, "status").get("qosClass") == "BestEffort"
        case "NotBestEffort":
            return mapping(pod, "status").get("qosClass") != "BestEffort"
        case "PriorityClass":
            name, values = spec.get("priorityClassName") or "", scope.get("values") or []
            match scope.get("operator"):
                case "In":
                    return name in values
                case "NotIn":
                    return name not in values
                case "DoesNotExist":
                    return not name
                case _:
                    return bool(name)
        case _:
            return False
