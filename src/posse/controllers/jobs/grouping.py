"""A job as a gang: its PodGroup, and the marks that make its pods members.

What the user made wins. A template that names a group is left as it is, and a PodGroup under the
job's name that is not ours is used, not replaced.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from posse.controllers.runtime import Manifest
from posse.objects.jobs.parts import Part
from posse.objects.jobs.queues import DEFAULT_QUEUE, named_queue
from posse.objects.jobs.templates import requests_of
from posse.objects.keys import (
    CHECKPOINT_INTERVAL,
    EXPECTS,
    GANG,
    GROUP_NAME,
    LEADS,
    MAX_RUNTIME,
    MIN_RUNTIME,
    PREEMPTABLE,
    START_TIMEOUT,
    TASK_SPEC,
    VOLCANO_GROUP_NAME,
)
from posse.objects.kinds import POD_GROUP
from posse.objects.quantity import format_base_units
from posse.objects.trainingjobs import SchedulingPolicy

# What a job says of itself to the scheduler, which sees the group.
_WISHES = (START_TIMEOUT, MAX_RUNTIME, MIN_RUNTIME, CHECKPOINT_INTERVAL, PREEMPTABLE)
# Other dialects name the group in a label.
_GROUP_ANNOTATIONS = (GROUP_NAME, VOLCANO_GROUP_NAME)
_GROUP_LABELS = ("scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io/name")


class GangSettings(msgspec.Struct, frozen=True):
    """`--enable-gang-scheduling` and `--gang-scheduler-name`."""

    enabled: bool = True
    scheduler_name: str = "posse"


class Mark(msgspec.Struct, frozen=True):
    """What makes a pod a member of its group: an annotation, or a label in some dialects."""

    where: str  # "annotations" or "labels"
    key: str
    group: str


def users_mark(parts: Iterable[Part]) -> Mark | None:
    """The group that the user's own templates name; the first one speaks for the whole job."""
    found = (mark_on(part.template.get("metadata") or {}) for part in parts)
    return next((mark for mark in found if mark is not None), None)


def mark_on(metadata: Mapping[str, Any]) -> Mark | None:
    """The group that a pod or a template names."""
    for where, keys in (("annotations", _GROUP_ANNOTATIONS), ("labels", _GROUP_LABELS)):
        named = metadata.get(where) or {}
        for key in keys:
            if named.get(key):
                return Mark(where, key, str(named[key]))
    return None


def wants_group(settings: GangSettings, job_metadata: Mapping[str, Any]) -> bool:
    annotations = job_metadata.get("annotations") or {}
    return settings.enabled and str(annotations.get(GANG, "")).lower() != "false"


def marks(template: Manifest, role: str, mark: Mark | None, settings: GangSettings) -> Manifest:
    """The template with role, group and scheduler filled in where the user left them open."""
    metadata = dict(template.get("metadata") or {})
    annotations = dict(metadata.get("annotations") or {})
    annotations.setdefault(TASK_SPEC, role)
    metadata["annotations"] = annotations
    if mark is not None and users_mark([Part(role, 1, template)]) is None:
        metadata[mark.where] = dict(metadata.get(mark.where) or {}) | {mark.key: mark.group}
    spec = dict(template.get("spec") or {})
    if settings.enabled and settings.scheduler_name and not spec.get("schedulerName"):
        spec["schedulerName"] = settings.scheduler_name
    return template | {"metadata": metadata, "spec": spec}


def pod_group(
    metadata: Manifest,
    *,
    min_member: int,
    policy: SchedulingPolicy,
    job_metadata: Mapping[str, Any],
    parts: Sequence[Part],
    min_resources: Mapping[str, Any] | None,
    expects: Sequence[Part] = (),
    leads: Part | None = None,
    deadline: int | None = None,
) -> Manifest:
    """The PodGroup of a job. `parts` in the order in which their priority class counts.

    `leads`: the one pod whose running is the job's. Where fewer than all may start, it is among
    them: the others would sit there for nothing, and might keep it out.
    `deadline`: after so many seconds the job is ended: it does not run longer.
    """
    spec: Manifest = {"minMember": min_member}
    if queue := named_queue(policy, job_metadata):
        spec["queue"] = queue
    if priority := policy.priority_class or _priority_of(parts):
        spec["priorityClassName"] = priority
    if min_resources:
        spec["minResources"] = dict(min_resources)
    annotations = _wishes(job_metadata)
    if deadline is not None:
        annotations.setdefault(MAX_RUNTIME, f"{deadline}s")
    if expects:
        annotations[EXPECTS] = announcement(expects)
    if leads is not None and 0 < min_member < sum(part.replicas for part in parts):
        annotations[LEADS] = _role_of(leads)
    return {
        "apiVersion": POD_GROUP.api_version,
        "kind": POD_GROUP.kind,
        "metadata": metadata | ({"annotations": annotations} if annotations else {}),
        "spec": spec,
    }


def group_changes(present: Manifest, desired: Manifest) -> dict[str, Any]:
    """The merge patch from the group that is there to the one that should be; {} when equal.

    Only our own fields are compared: the scheduler writes others on the same object.
    """
    old, new = present.get("spec") or {}, desired["spec"]
    spec: dict[str, Any] = {}
    for name in ("minMember", "priorityClassName"):
        if (old.get(name) or None) != (new.get(name) or None):
            spec[name] = new.get(name)
    had, has = old.get("minResources") or {}, new.get("minResources") or {}
    if had != has:
        # A merge keeps what it does not name.
        spec["minResources"] = {resource: None for resource in had if resource not in has} | has
    # A job that names no queue leaves its group in the one where it is: the namespace's, maybe.
    if (queue := new.get("queue")) and queue != (old.get("queue") or DEFAULT_QUEUE):
        spec["queue"] = queue
    changes: dict[str, Any] = {"spec": spec} if spec else {}
    told = (present.get("metadata") or {}).get("annotations") or {}
    tell = desired["metadata"].get("annotations") or {}
    # A wish that the job does not have may be somebody else's, made on the group itself.
    wishes = {key: tell[key] for key in _WISHES if key in tell and told.get(key) != tell[key]}
    ours = {key: tell.get(key) for key in (EXPECTS, LEADS) if told.get(key) != tell.get(key)}
    if wishes or ours:
        changes["metadata"] = {"annotations": wishes | ours}
    return changes


def _wishes(job_metadata: Mapping[str, Any]) -> dict[str, str]:
    """What the job says that is for whoever schedules it."""
    said = job_metadata.get("annotations") or {}
    return {key: str(said[key]) for key in _WISHES if key in said}


def announcement(parts: Sequence[Part]) -> str:
    """`posse.dev/expects`: members that have no pod yet, with what their pods will ask for.

    It does not change while their pods come and go, so nobody races with the scheduler over it.
    """
    expected: list[Manifest] = []
    for part in parts:
        spec = part.template.get("spec") or {}
        entry: Manifest = {
            "role": part.role,
            "count": part.replicas,
            "requests": _written(requests_of(part.template)),
        }
        if spec.get("nodeSelector"):
            entry["nodeSelector"] = dict(sorted(spec["nodeSelector"].items()))
        if spec.get("tolerations"):
            entry["tolerations"] = spec["tolerations"]
        if nodes := (spec.get("affinity") or {}).get("nodeAffinity"):
            entry["nodeAffinity"] = nodes
        expected.append(entry)
    return msgspec.json.encode(expected).decode()


def summed_requests(counted: Iterable[tuple[Part, int]]) -> dict[str, str]:
    """The requests of so many pods of each part together, as quantities."""
    total: dict[str, int] = {}
    for part, count in counted:
        for resource, amount in requests_of(part.template).items():
            total[resource] = total.get(resource, 0) + amount * count
    return _written({resource: amount for resource, amount in total.items() if amount})


def _written(amounts: Mapping[str, int]) -> dict[str, str]:
    return {
        resource: format_base_units(resource, amount)
        for resource, amount in sorted(amounts.items())
    }


def _role_of(part: Part) -> str:
    """As its pods bear it: a role that the template names stays."""
    annotations = (part.template.get("metadata") or {}).get("annotations") or {}
    return str(annotations.get(TASK_SPEC) or part.role)


def _priority_of(parts: Iterable[Part]) -> str:
    for part in parts:
        if name := (part.template.get("spec") or {}).get("priorityClassName"):
            return str(name)
    return ""
