"""PodGroups, in every dialect."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from posse.admission.lookups import Access, Authorizer, Reader, namespace_queue, queue_standing
from posse.admission.quantities import amounts
from posse.admission.verdicts import PASSED, Door, Verdict, annotation, brought, object_of
from posse.admission.wire import CREATE, DELETE, AdmissionRequest, Object
from posse.objects.errors import INVALID, FieldError
from posse.objects.groups import PodGroup, PodGroupSpec
from posse.objects.jobs.queues import DEFAULT_QUEUE
from posse.objects.jobs.wrongs import invalid, non_negative
from posse.objects.keys import HELD, KEEPS
from posse.objects.kinds import POD_GROUPS
from posse.objects.meta import from_raw
from posse.objects.ownership import controller_of
from posse.objects.raw import mapping, text


async def _change(request: AdmissionRequest, reader: Reader) -> Object:
    """The queue of the namespace, for a group that somebody wrote by hand and that names none.

    The schema writes `default` where nothing is written, so the two are one. The group of a job
    has the job's queue, and the job's controller would put it back.
    """
    group = object_of(request)
    spec = group.get("spec")
    if request.operation != CREATE or not isinstance(spec, dict) or controller_of(group):
        return group
    if _queue(group) != DEFAULT_QUEUE:
        return group
    queue = await namespace_queue(reader, request.namespace)
    return group | {"spec": spec | {"queue": queue}} if queue else group


async def _judge(request: AdmissionRequest, reader: Reader, authorizer: Authorizer) -> Verdict:
    if request.operation == DELETE:
        return PASSED
    group = object_of(request)
    before = None if request.operation == CREATE else request.old_object
    wrongs = brought(_wrongs(group), [] if before is None else list(_wrongs(before)))
    warnings: tuple[str, ...] = ()
    queue = _queue(group)
    if before is None or _queue(before) != queue:
        standing = await queue_standing(reader, queue, request.namespace)
        if standing.refusal and controller_of(group) is None:
            wrongs += (invalid("spec.queue", queue, standing.refusal),)
        elif said := standing.refusal or standing.doubt:
            # A job without its group would wait and not say why; with it the scheduler says so.
            warnings = (said,)
    return Verdict(wrongs, await _forbidden(request, before, authorizer), warnings)


async def _forbidden(
    request: AdmissionRequest, before: Object | None, authorizer: Authorizer
) -> str:
    """Held seats keep others off nodes: they are for those who may give pods to nodes."""
    written = [
        key
        for key in (HELD, KEEPS)
        if annotation(request.object, key)
        and annotation(request.object, key) != annotation(before, key)
    ]
    if not written:
        return ""
    binding = Access("create", "", "pods", subresource="binding", namespace=request.namespace)
    if await authorizer.allows(request.user_info, binding):
        return ""
    return f"only a scheduler may write the annotation {written[0]}, which holds seats on nodes"


def _wrongs(group: Object) -> Iterable[FieldError]:
    try:
        spec: PodGroupSpec = from_raw(group, PodGroup).spec
    except msgspec.ValidationError as error:
        yield FieldError("spec", INVALID, f"Invalid value: {error}")
        return
    yield from non_negative("spec.minMember", spec.min_member)
    for role, least in spec.min_task_member.items():
        yield from non_negative(f"spec.minTaskMember[{role}]", least)
    yield from amounts(spec.min_resources, "spec.minResources")[1]
    yield from _two_tiers(spec.network_topology, "spec.networkTopology")
    for at, policy in enumerate(spec.sub_group_policy):
        field = f"spec.subGroupPolicy[{at}].networkTopology"
        yield from _two_tiers(mapping(policy, "networkTopology"), field)


def _two_tiers(topology: Object | None, field: str) -> Iterable[FieldError]:
    """A tier is named by its number or by its name."""
    asked = topology or {}
    if asked.get("highestTierAllowed") is not None and asked.get("highestTierName"):
        why = "must not be named together with highestTierAllowed"
        yield invalid(f"{field}.highestTierName", str(asked["highestTierName"]), why)


def _queue(group: Object) -> str:
    return text(mapping(group, "spec"), "queue") or DEFAULT_QUEUE


DOOR = Door(tuple(dict.fromkeys(kind.version for kind in POD_GROUPS)), _judge, _change)
