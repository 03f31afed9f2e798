"""A pod's priority comes from its PriorityClass, never from its author."""

from __future__ import annotations

from posse.local.apiserver import statuses
from posse.local.apiserver.store import Object
from posse.local.apiserver.strategies.strategy import Context
from posse.objects.kinds import POD, PRIORITY_CLASS, Kind

_PREEMPTS = "PreemptLowerPriority"


def admit(context: Context, pod: Object) -> None:
    """Sets priority and preemptionPolicy; forbids values other than the class's own."""
    spec = pod["spec"]
    name = spec.get("priorityClassName") or ""
    if name:
        found = context.latest(PRIORITY_CLASS, "", name)
        if found is None:
            raise _forbidden(pod, f"no PriorityClass with name {name} was found")
    else:
        found = _global_default(context)
        if found is not None:
            spec["priorityClassName"] = found["metadata"]["name"]
    priority = found.get("value", 0) if found is not None else 0
    policy = found.get("preemptionPolicy", _PREEMPTS) if found is not None else _PREEMPTS
    asked = spec.get("priority")
    if asked is not None and asked != priority:
        raise _forbidden(
            pod,
            f"the integer value of priority ({asked}) must not be provided in pod spec; priority"
            f" admission controller computed {priority} from the given PriorityClass name",
        )
    asked_policy = spec.get("preemptionPolicy")
    if asked_policy is not None and asked_policy != policy:
        raise _forbidden(
            pod,
            f"the string value of PreemptionPolicy ({asked_policy}) must not be provided in pod"
            f" spec; priority admission controller computed {policy} from the given PriorityClass"
            " name",
        )
    spec["priority"] = priority
    spec["preemptionPolicy"] = policy


def check_single_default(context: Context, kind: Kind, obj: Object) -> None:
    """Of all classes, one at most may be the default."""
    name = obj["metadata"]["name"]
    if not obj.get("globalDefault"):
        return
    for other in context.store.all_latest(kind.qualified):
        if other.key[1] != name and other.obj.get("globalDefault"):
            raise statuses.forbidden(
                kind,
                name,
                f"PriorityClass {other.key[1]} is already marked as default. Only one default can"
                " exist",
            )


def _global_default(context: Context) -> Object | None:
    """The default class; the lowest of several, as they can come in by restoring a store."""
    defaults = [
        stored.obj
        for stored in context.store.all_latest(PRIORITY_CLASS.qualified)
        if stored.obj.get("globalDefault")
    ]
    return min(defaults, key=lambda one: (one["value"], one["metadata"]["name"]), default=None)


def _forbidden(pod: Object, why: str) -> statuses.Refusal:
    metadata = pod["metadata"]
    return statuses.forbidden(POD, metadata.get("name") or metadata.get("generateName", ""), why)
