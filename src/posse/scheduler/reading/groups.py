"""PodGroups: how many start together, who is still to come, and which seats are held for them.

`posse.dev/expects` and `posse.dev/held` are read strictly: a scheduler that guessed at them could
start workers without room for their launcher.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from posse.engine.facts import DEFAULT_QUEUE, Expected, Keeps, Requests, Shape, Topology
from posse.objects import keys
from posse.objects.affinities import NodeAffinity
from posse.objects.groups import PodGroup, PodGroupSpec, Workload
from posse.objects.kinds import (
    COSCHEDULING_POD_GROUP,
    NATIVE_POD_GROUPS,
    POD_GROUP,
    POD_GROUPS,
    Kind,
)
from posse.objects.meta import Amount, Condition
from posse.objects.pods import Toleration
from posse.scheduler.reading.amounts import read_amounts
from posse.scheduler.reading.estimates import Times, read_times
from posse.scheduler.reading.keeps import read_keeps
from posse.scheduler.reading.minimums import read_min_resources, read_role_minimums
from posse.scheduler.reading.parts import Partition, read_partitions
from posse.scheduler.reading.pods import constraints, created_at, may_be_ended
from posse.scheduler.reading.quarantine import Unreadable
from posse.scheduler.reading.topologies import read_topology

MOST_EXPECTED = 100_000

PENDING = "Pending"
INQUEUE = "Inqueue"
RUNNING = "Running"
UNKNOWN = "Unknown"
COMPLETED = "Completed"
STARTED = (RUNNING, UNKNOWN)
# What the scheduler-plugins call the same.
_COSCHEDULING_PHASES = {INQUEUE: "Scheduling", COMPLETED: "Finished"}
_OTHER_WORDS = {
    "PreScheduling": INQUEUE,
    "Scheduling": INQUEUE,
    "Scheduled": INQUEUE,
    "Finished": COMPLETED,
    # At least its minimum came so far that one of it could fail.
    "Failed": UNKNOWN,
}
# The condition by which Kubernetes' own groups say that they were placed.
NATIVE_CONDITIONS = {"v1alpha2": "PodGroupScheduled"}
LATER_CONDITION = "PodGroupInitiallyScheduled"


class GroupTerms(msgspec.Struct, frozen=True):
    """What a PodGroup says by itself, before its pods are looked at."""

    uid: str
    generation: int
    queue: str
    min_member: int
    priority_class: str
    created: float
    ran: bool
    # With how many, as far as it says; 0: it does not.
    ran_with: int = 0
    kind: Kind = POD_GROUP
    # There is no such object: only the labels of the pods speak of the gang.
    bare: bool = False
    # Where the group itself says it, and not its class or its members.
    priority: int | None = None
    preemption_policy: str = ""
    severable: bool = False
    indivisible: bool = False
    grows: bool = False
    loose: bool = False
    expects: tuple[Expected, ...] = ()
    holds: tuple[tuple[str, str], ...] = ()
    topology: Topology | None = None
    partitions: tuple[Partition, ...] = ()
    role_minimums: tuple[tuple[str, int], ...] = ()
    min_resources: Requests = ()
    keeps: Keeps | None = None
    preemptable: bool = True
    evictions: int = 0
    overtaken: int = 0
    times: Times = Times()


def speaking(groups: Mapping[Kind, PodGroup]) -> Kind | None:
    """Which of the groups that several APIs have under one name speaks for the gang.

    What a user made comes before what a controller made for a job.
    """
    there = [kind for kind in (*POD_GROUPS, *NATIVE_POD_GROUPS) if kind in groups]
    users = [kind for kind in there if groups[kind].metadata.controller is None]
    return next(iter(users or there), None)


def read_group(group: PodGroup, kind: Kind = POD_GROUP) -> GroupTerms:
    meta, spec = group.metadata, group.spec
    native = is_native(kind)
    least = _native_minimum(spec) if native else min_member(group)
    partitions = () if native else read_partitions(spec)
    least = max(least, sum(each.least for each in partitions))
    return GroupTerms(
        uid=meta.uid,
        generation=meta.generation,
        queue=spec.queue or meta.annotations.get(keys.QUEUE_NAME) or DEFAULT_QUEUE,
        min_member=least,
        priority_class=spec.priority_class_name,
        created=created_at(meta),
        ran=ran_before(group, kind),
        ran_with=_ran_with(group, kind, least),
        kind=kind,
        priority=spec.priority if native else None,
        preemption_policy=spec.preemption_policy if native else "",
        severable=native and _ends(spec.disruption_mode) == "single",
        indivisible=native and _ends(spec.disruption_mode) == "all",
        grows=native,
        loose=native and "gang" not in (spec.scheduling_policy or {}),
        expects=read_expects(meta.annotations.get(keys.EXPECTS)),
        holds=read_holds(meta.annotations.get(keys.HELD)),
        topology=read_topology(spec),
        partitions=partitions,
        role_minimums=read_role_minimums(spec, least, meta.annotations.get(keys.LEADS, "")),
        min_resources=read_min_resources(spec),
        keeps=read_keeps(meta.annotations.get(keys.KEEPS)),
        preemptable=may_be_ended(meta),
        evictions=read_count(meta.annotations, keys.EVICTIONS),
        overtaken=read_count(meta.annotations, keys.OVERTAKEN),
        times=read_times(meta.annotations),
    )


def min_member(group: PodGroup) -> int:
    """A group that names no minimum has started with its first pod."""
    return max(1, group.spec.min_member or 0)


def is_native(kind: Kind) -> bool:
    return kind in NATIVE_POD_GROUPS


def condition_of(kind: Kind) -> str:
    return NATIVE_CONDITIONS.get(kind.version, LATER_CONDITION)


def phase_of(group: PodGroup) -> str:
    """The phase that the group is in, in Volcano's words."""
    return _OTHER_WORDS.get(group.status.phase, group.status.phase)


def spoken(phase: str, kind: Kind) -> str:
    """The phase in the words of the group's own API."""
    if kind == COSCHEDULING_POD_GROUP:
        return _COSCHEDULING_PHASES.get(phase, phase)
    return phase


def ran_before(group: PodGroup, kind: Kind) -> bool:
    """Whether the group says that it has been placed whole."""
    if not is_native(kind):
        return phase_of(group) in STARTED
    return _placed(group, kind) is not None


def _placed(group: PodGroup, kind: Kind) -> Condition | None:
    """The condition by which one of Kubernetes' own groups says that it was placed whole."""
    told = (c for c in group.status.conditions if c.type == condition_of(kind))
    return next((c for c in told if c.status == "True"), None)


def _ran_with(group: PodGroup, kind: Kind, least: int) -> int:
    """Kubernetes' own groups do not count who runs: at least their minimum did, unless they ask
    for another one since that was said."""
    if not is_native(kind):
        return group.status.running
    placed = _placed(group, kind)
    said_of = None if placed is None else placed.observed_generation
    return least if said_of == group.metadata.generation else 0


def goes_with_its_job(group: PodGroup, kind: Kind) -> bool:
    """Whether it is taken away when its job ends, rests or is deleted: as long as it is there,
    so is the job, and its pods come back.

    Controllers of jobs do so with the groups that they made. What a user made outlives the job, and
    so do Kubernetes' own groups the rest of one.
    """
    return group.metadata.controller is not None and not is_native(kind)


def workload_minimums(workload: Workload) -> dict[str, int]:
    """How many pods of each group inside of a Workload start together."""
    return {
        group.name: _gang_minimum(group.policy, f"spec.podGroups[{at}].policy")
        for at, group in enumerate(workload.spec.pod_groups)
    }


def _native_minimum(spec: PodGroupSpec) -> int:
    if spec.parent_composite_pod_group_name:
        # Placed by itself, it could be the half that keeps another half from ever starting.
        field = "spec.parentCompositePodGroupName"
        raise Unreadable(field, "CompositePodGroups are not supported")
    return _gang_minimum(spec.scheduling_policy or {}, "spec.schedulingPolicy")


def _gang_minimum(policy: dict[str, Any], at: str) -> int:
    """Pods of a group without a gang policy are placed as each of them fits."""
    field = f"{at}.gang.minCount"
    gang = policy.get("gang")
    if gang is None:
        return 1
    least = gang.get("minCount") if isinstance(gang, dict) else None
    if not isinstance(least, int) or isinstance(least, bool) or least < 1:
        raise Unreadable(field, f"{least!r} is not a whole number from 1 on")
    return least


def _ends(mode: str | dict[str, Any] | None) -> str:
    """How pods are ended: `single`, `all` together, "" where nobody said.

    The first version says it by a word, later ones by an object.
    """
    if isinstance(mode, dict):
        return next((way for way in ("single", "all") if way in mode), "")
    return {"Pod": "single", "PodGroup": "all"}.get(mode or "", "")


class _Announced(msgspec.Struct, rename="camel", forbid_unknown_fields=True, kw_only=True):
    role: str
    count: int
    requests: dict[str, Amount] = {}
    node_selector: dict[str, str] = {}
    tolerations: list[Toleration] = []
    node_affinity: NodeAffinity | None = None


def read_expects(text: str | None) -> tuple[Expected, ...]:
    if text is None:
        return ()
    field = f"metadata.annotations[{keys.EXPECTS}]"
    try:
        announced = msgspec.json.decode(text, type=list[_Announced])
    except (ValueError, RecursionError) as error:
        raise Unreadable(field, str(error)) from error
    roles: dict[str, Expected] = {}
    for index, entry in enumerate(announced):
        at = f"{field}[{index}]"
        if not entry.role:
            raise Unreadable(f"{at}.role", "is empty")
        if entry.role in roles:
            raise Unreadable(f"{at}.role", f"{entry.role!r} is announced twice")
        if not 0 <= entry.count <= MOST_EXPECTED:
            raise Unreadable(f"{at}.count", f"{entry.count} is not from 0 to {MOST_EXPECTED}")
        asked = read_amounts(entry.requests, f"{at}.requests")
        where = constraints(entry.node_selector, entry.tolerations, entry.node_affinity)
        shape = Shape(asked, where)
        roles[entry.role] = Expected(role=entry.role, count=entry.count, shape=shape)
    return tuple(roles[role] for role in sorted(roles))


def read_count(annotations: Mapping[str, str], key: str) -> int:
    """How often something happened; never, where nobody said."""
    text = annotations.get(key, "0")
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise Unreadable(f"metadata.annotations[{key}]", f"{text!r} is not a whole number")
    return int(text)


def read_holds(text: str | None) -> tuple[tuple[str, str], ...]:
    if text is None:
        return ()
    field = f"metadata.annotations[{keys.HELD}]"
    try:
        held = msgspec.json.decode(text, type=dict[str, list[str]])
    except (ValueError, RecursionError) as error:
        raise Unreadable(field, str(error)) from error
    if any(not node for nodes in held.values() for node in nodes):
        raise Unreadable(field, "holds a seat on a node without a name")
    return tuple(sorted((role, node) for role, nodes in held.items() for node in nodes))


def write_holds(holds: tuple[tuple[str, str], ...]) -> str:
    """The annotation's value: the same seats always give the same text."""
    by_role: dict[str, list[str]] = {}
    for role, node in sorted(holds):
        by_role.setdefault(role, []).append(node)
    return msgspec.json.encode(by_role).decode()
