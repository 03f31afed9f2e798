"""Entries of `status.conditions`, read and written."""

from __future__ import annotations

from typing import Any

Manifest = dict[str, Any]


def condition(obj: Manifest, kind: str) -> Manifest:
    """The condition of that type, empty where there is none."""
    for entry in (obj.get("status") or {}).get("conditions") or []:
        if isinstance(entry, dict) and entry.get("type") == kind:
            return entry
    return {}


def is_true(obj: Manifest, kind: str) -> bool:
    return condition(obj, kind).get("status") == "True"


def condition_set(
    conditions: list[Manifest],
    kind: str,
    status: str,
    reason: str,
    message: str,
    now: str,
    *,
    stamped: tuple[str, ...] = ("lastProbeTime", "lastTransitionTime"),
) -> None:
    """Put a condition into the list; one that already says so keeps its times."""
    for index, entry in enumerate(conditions):
        if entry.get("type") == kind:
            if (entry.get("status"), entry.get("reason")) == (status, reason):
                return
            del conditions[index]
            break
    conditions.append(
        {"type": kind, "status": status, "reason": reason, "message": message}
        | dict.fromkeys(stamped, now)
    )
