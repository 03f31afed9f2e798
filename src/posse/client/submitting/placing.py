"""How near to each other the pods of a role are to be."""

from __future__ import annotations

from typing import Any

from posse.client.errors import PosseError
from posse.objects.keys import JOB_NAME_LABEL, REPLICA_TYPE_LABEL

_POLICIES = {"none": "", "spread": "podAntiAffinity", "binpack": "podAffinity"}
_CONSTRAINTS = ("preferred", "required")


def affinity(job: str, type_: str, policy: str, constraint: str) -> dict[str, Any]:
    """The pods of one role on as many or as few nodes as can be; {} where it is all the same."""
    flag = f"--{type_.lower()}-affinity"
    if policy not in _POLICIES:
        raise PosseError(f"{flag}-policy must be none, spread or binpack, not {policy!r}")
    if constraint not in _CONSTRAINTS:
        raise PosseError(f"{flag}-constraint must be preferred or required, not {constraint!r}")
    if not _POLICIES[policy]:
        return {}
    labels = {JOB_NAME_LABEL: job, REPLICA_TYPE_LABEL: type_.lower()}
    term = {
        "labelSelector": {"matchLabels": labels},
        "topologyKey": "kubernetes.io/hostname",
    }
    rule: list[dict[str, Any]] = [term]
    if constraint == "preferred":
        rule = [{"weight": 100, "podAffinityTerm": term}]
    return {_POLICIES[policy]: {f"{constraint}DuringSchedulingIgnoredDuringExecution": rule}}
