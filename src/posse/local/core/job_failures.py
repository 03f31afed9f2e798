"""What the end of a pod means to its Job, where the Job says so itself (`podFailurePolicy`)."""

from __future__ import annotations

from enum import Enum
from typing import Any

Manifest = dict[str, Any]


class Failure(Enum):
    COUNT = "Count"
    IGNORE = "Ignore"
    FAIL_JOB = "FailJob"


def failure_of(spec: Manifest, pod: Manifest) -> Failure:
    """The action of the first rule that the pod meets; a failure that none is about counts."""
    for rule in (spec.get("podFailurePolicy") or {}).get("rules") or []:
        if _meets(rule, pod):
            action = rule.get("action")
            return Failure(action) if action in (f.value for f in Failure) else Failure.COUNT
    return Failure.COUNT


def _meets(rule: Manifest, pod: Manifest) -> bool:
    status = pod.get("status") or {}
    codes = rule.get("onExitCodes")
    if isinstance(codes, dict):
        return any(_has_code(codes, one) for one in _ended(status))
    have = {(one.get("type"), one.get("status")) for one in status.get("conditions") or []}
    wanted = rule.get("onPodConditions") or []
    return any((one.get("type"), one.get("status") or "True") in have for one in wanted)


def _has_code(wanted: Manifest, ended: tuple[str, int]) -> bool:
    """Containers that ended well meet no rule."""
    name, code = ended
    if not code or wanted.get("containerName") not in (None, name):
        return False
    return (code in (wanted.get("values") or [])) == (wanted.get("operator") == "In")


def _ended(status: Manifest) -> list[tuple[str, int]]:
    found = []
    for field in ("initContainerStatuses", "containerStatuses"):
        for one in status.get(field) or []:
            code = ((one.get("state") or {}).get("terminated") or {}).get("exitCode")
            if isinstance(code, int):
                found.append((str(one.get("name")), code))
    return found
