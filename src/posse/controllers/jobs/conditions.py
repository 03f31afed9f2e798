"""The conditions of a job, as every kubeflow kind writes them.

The newest condition stands last, Running and Restarting exclude each other, and a final one turns
Running off. Each function takes a list and returns a new one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from posse.objects.times import rfc3339

CREATED = "Created"
RUNNING = "Running"
RESTARTING = "Restarting"
SUCCEEDED = "Succeeded"
FAILED = "Failed"
SUSPENDED = "Suspended"

_FINAL = (SUCCEEDED, FAILED)
_EXCLUDES = {RUNNING: RESTARTING, RESTARTING: RUNNING}

ConditionDict = dict[str, Any]


def find(conditions: Sequence[ConditionDict], type_: str) -> ConditionDict | None:
    return next((item for item in conditions if item.get("type") == type_), None)


def holds(conditions: Sequence[ConditionDict], type_: str) -> bool:
    found = find(conditions, type_)
    return found is not None and found.get("status") == "True"


def is_final(conditions: Sequence[ConditionDict]) -> bool:
    return any(holds(conditions, type_) for type_ in _FINAL)


def without(conditions: Sequence[ConditionDict], type_: str) -> list[ConditionDict]:
    return [item for item in conditions if item.get("type") != type_]


def with_condition(
    conditions: Sequence[ConditionDict],
    type_: str,
    status: bool,
    reason: str,
    message: str,
    now: float,
) -> list[ConditionDict]:
    """The list with this condition in it; the same content comes back untouched."""
    said = "True" if status else "False"
    stamp = rfc3339(now)
    current = find(conditions, type_)
    if current is not None and _says(current, said, reason, message):
        return list(conditions)
    transition = stamp
    if current is not None and current.get("status") == said:
        transition = current.get("lastTransitionTime") or stamp
    kept: list[ConditionDict] = []
    for item in without(conditions, type_):
        if item.get("type") == _EXCLUDES.get(type_):
            continue
        overruled = (RUNNING, RESTARTING, *(final for final in _FINAL if final != type_))
        if type_ in _FINAL and item.get("type") in overruled and item.get("status") == "True":
            item = item | {
                "status": "False",
                "lastUpdateTime": stamp,
                "lastTransitionTime": stamp,
            }
        kept.append(item)
    kept.append(
        {
            "type": type_,
            "status": said,
            "reason": reason,
            "message": message,
            "lastUpdateTime": stamp,
            "lastTransitionTime": transition,
        }
    )
    return kept


def _says(condition: ConditionDict, status: str, reason: str, message: str) -> bool:
    return (
        condition.get("status") == status
        and condition.get("reason") == reason
        and condition.get("message") == message
    )
