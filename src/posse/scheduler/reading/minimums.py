"""What a PodGroup says beyond its minimum of members: of each role, of resources, of time."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from posse.engine.facts import Requests
from posse.objects import keys
from posse.objects.groups import PodGroupSpec
from posse.objects.times import parse_duration
from posse.scheduler.reading.amounts import read_units
from posse.scheduler.reading.quarantine import Unreadable

# As quotas name them. What pods may use at most is nothing that a node has to offer.
_REQUESTS = "requests."
_NOT_ON_NODES = ("limits.", "count/")


def read_role_minimums(spec: PodGroupSpec, min_member: int) -> tuple[tuple[str, int], ...]:
    """minTaskMember. As in Volcano it is left alone where its sum is more than minMember."""
    named = spec.min_task_member or {}
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


class Times(msgspec.Struct, frozen=True):
    """How long things take or may take, as annotations say; None where nobody did."""

    start_timeout: float | None = None
    runs_for: float | None = None
    min_runtime: float | None = None
    checkpoint_interval: float | None = None


def read_times(annotations: Mapping[str, str]) -> Times:
    return Times(
        start_timeout=_duration(annotations, keys.START_TIMEOUT),
        runs_for=_duration(annotations, keys.MAX_RUNTIME),
        min_runtime=_duration(annotations, keys.MIN_RUNTIME),
        checkpoint_interval=_duration(annotations, keys.CHECKPOINT_INTERVAL),
    )


def _duration(annotations: Mapping[str, str], key: str) -> float | None:
    text = annotations.get(key)
    if text is None:
        return None
    try:
        seconds = parse_duration(text)
    except ValueError as error:
        raise Unreadable(f"metadata.annotations[{key}]", str(error)) from error
    if seconds < 0:
        raise Unreadable(f"metadata.annotations[{key}]", f"{text!r} is negative")
    return seconds
