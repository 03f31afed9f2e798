"""Pods: what admission adds to them, and how they wait for their node when deleted."""

from __future__ import annotations

from typing import Any

from posse.local.apiserver import statuses
from posse.local.apiserver.store import Object
from posse.local.apiserver.strategies import limits, priorities
from posse.local.apiserver.strategies.strategy import Context, Strategy
from posse.objects import quantity
from posse.objects.kinds import SERVICE_ACCOUNT, Kind
from posse.objects.raw import mapping, mappings

_TERMINAL = ("Succeeded", "Failed")
_EVICTED_AFTER = 300
_NODE_PROBLEMS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


class Pods(Strategy):
    status_apart = True
    counts_generations = True
    returns_deleted = True

    def admit(self, context: Context, kind: Kind, obj: Object) -> None:
        limits.admit(context, obj)
        self._admit_account(context, kind, obj)
        _tolerate_node_problems(obj["spec"])
        priorities.admit(context, obj)

    def prepare_create(self, context: Context, kind: Kind, obj: Object) -> None:
        status: dict[str, Any] = {"phase": "Pending", "qosClass": qos_class(obj["spec"])}
        if obj["spec"].get("schedulingGates"):
            status["conditions"] = [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "lastProbeTime": None,
                    "lastTransitionTime": obj["metadata"]["creationTimestamp"],
                    "reason": "SchedulingGated",
                    "message": "Scheduling is blocked due to non-empty scheduling gates",
                }
            ]
        obj["status"] = status

    def prepare_status(self, context: Context, kind: Kind, new: Object, old: Object) -> Object:
        result = super().prepare_status(context, kind, new, old)
        owners = old["metadata"].get("ownerReferences")
        result["metadata"].pop("ownerReferences", None)
        if owners:
            result["metadata"]["ownerReferences"] = owners
        status = dict(result.get("status") or {})
        if qos := mapping(old, "status").get("qosClass"):
            status["qosClass"] = qos
        result["status"] = status
        return result

    def grace(self, obj: Object, asked: int | None) -> int | None:
        """A pod on a node waits for the node to stop it; any other may go at once."""
        spec = obj["spec"]
        period = asked if asked is not None else spec.get("terminationGracePeriodSeconds", 0)
        if not spec.get("nodeName") or mapping(obj, "status").get("phase") in _TERMINAL:
            return 0
        return 1 if period < 0 else int(period)

    def _admit_account(self, context: Context, kind: Kind, obj: Object) -> None:
        spec, metadata = obj["spec"], obj["metadata"]
        name = spec.get("serviceAccountName") or spec.get("serviceAccount") or "default"
        spec["serviceAccountName"] = spec["serviceAccount"] = name
        if context.latest(SERVICE_ACCOUNT, metadata["namespace"], name) is None:
            raise statuses.forbidden(
                kind,
                metadata.get("name") or metadata.get("generateName", ""),
                f"error looking up service account {metadata['namespace']}/{name}:"
                f' serviceaccount "{name}" not found',
            )


def qos_class(spec: dict[str, Any]) -> str:
    """Guaranteed, Burstable or BestEffort, from cpu and memory alone."""
    units = [*mappings(spec, "containers"), *mappings(spec, "initContainers")]
    if mapping(spec, "resources", "requests") or mapping(spec, "resources", "limits"):
        units = [spec]
    requests: dict[str, int] = {}
    limited: dict[str, int] = {}
    guaranteed = True
    for unit in units:
        for part, total in (("requests", requests), ("limits", limited)):
            amounts = _positive(mapping(unit, "resources", part))
            if part == "limits" and len(amounts) < 2:
                guaranteed = False
            for name, amount in amounts.items():
                total[name] = total.get(name, 0) + amount
    if not requests and not limited:
        return "BestEffort"
    return "Guaranteed" if guaranteed and requests == limited else "Burstable"


def _positive(amounts: dict[str, Any]) -> dict[str, int]:
    found: dict[str, int] = {}
    for name in ("cpu", "memory"):
        try:
            nano = quantity.parse(amounts[name]).nano if name in amounts else 0
        except quantity.QuantityError:
            continue
        if nano > 0:
            found[name] = nano
    return found


def _tolerate_node_problems(spec: dict[str, Any]) -> None:
    """A node that is gone for five minutes loses its pods, unless they say otherwise."""
    tolerations = list(spec.get("tolerations") or [])
    for key in _NODE_PROBLEMS:
        if not any(
            (one.get("key") or key) == key and (one.get("effect") or "NoExecute") == "NoExecute"
            for one in tolerations
        ):
            tolerations.append(
                {
                    "key": key,
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": _EVICTED_AFTER,
                }
            )
    spec["tolerations"] = tolerations
