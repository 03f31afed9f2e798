"""What a PodGroup says beyond its minimum of members: of each role, and of resources."""

from __future__ import annotations

from posse.engine.facts import Requests
from posse.objects.groups import PodGroupSpec
from posse.scheduler.reading.amounts import read_units
from posse.scheduler.reading.quarantine import Unreadable

# As quotas name them. What pods may use at most is nothing that a node has to offer.
_REQUESTS = "requests."
_NOT_ON_NODES = ("limits.", "count/")


def read_role_minimums(
    spec: PodGroupSpec, min_member: int, leader: str = ""
) -> tuple[tuple[str, int], ...]:
    """minTaskMember, and one of the role that leads. As in Volcano it is left alone where its sum
    is more than minMember."""
    named = {leader: 1} | (spec.min_task_member or {}) if leader else spec.min_task_member or {}
    for role, least in named.items():
        if least < 0:
            raise Unreadable(f"spec.minTaskMember[{role}]", f"{least} is less than nobody")
    if sum(named.values()) > min_member:
        return ()
    return tuple(sorted((role, least) for role, least in named.items() if least))


def read_min_resources(spec: PodGroupSpec) -> Requests:
    asked: dict[str, int] = {}
    for name, amount in (spec.min_resources or {}).items():
        if name.startswith(_NOT_ON_NODES):
            continue
        resource = name.removeprefix(_REQUESTS)
        units = read_units(resource, amount, f"spec.minResources[{name}]")
        if units:
            asked[resource] = max(units, asked.get(resource, 0))
    return tuple(sorted(asked.items()))
