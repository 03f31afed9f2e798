"""Queues: what they say must be possible, and what others rest on must stay."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from posse.admission.lookups import Authorizer, Reader
from posse.admission.quantities import amounts, exceeding
from posse.admission.verdicts import Door, Verdict, brought, object_of
from posse.admission.wire import CREATE, DELETE, AdmissionRequest, Object
from posse.kube.errors import KubeError
from posse.objects.access import NamespaceRule
from posse.objects.errors import INVALID, FieldError
from posse.objects.groups import Queue, QueueSpec
from posse.objects.jobs.queues import DEFAULT_QUEUE, ROOT_QUEUE
from posse.objects.jobs.wrongs import invalid
from posse.objects.keys import NAMESPACES
from posse.objects.kinds import QUEUE
from posse.objects.meta import from_raw
from posse.objects.raw import mapping, strings, text
from posse.objects.selectors import SelectorError

_log = logging.getLogger(__name__)
_MOST_NAMED = 5


async def _judge(request: AdmissionRequest, reader: Reader, authorizer: Authorizer) -> Verdict:
    if request.operation == DELETE:
        return await _judge_deletion(request, reader)
    queue = object_of(request)
    before = None if request.operation == CREATE else request.old_object
    known = [] if before is None else list(_wrongs(before))
    wrongs = brought(_wrongs(queue), known)
    if wrongs:
        return Verdict(wrongs)
    return Verdict(warnings=await _doubts(queue, reader))


async def _judge_deletion(request: AdmissionRequest, reader: Reader) -> Verdict:
    name = request.name or text(mapping(request.old_object, "metadata"), "name")
    if name == DEFAULT_QUEUE:
        return Verdict(forbidden="work that names no queue waits in this one")
    try:
        found = await reader.list(QUEUE)
    except KubeError as error:
        _log.warning("queues cannot be listed: %s", error)
        return Verdict(warnings=("whether other queues are part of this one could not be seen",))
    parts = sorted(
        part
        for one in found
        if (part := text(mapping(one, "metadata"), "name")) != name
        and (_parent(one) or ROOT_QUEUE) == name
    )
    if not parts:
        return Verdict()
    shown = ", ".join(parts[:_MOST_NAMED]) + (", ..." if len(parts) > _MOST_NAMED else "")
    return Verdict(forbidden=f"other queues are part of this one: {shown}")


def _wrongs(queue: Object) -> Iterable[FieldError]:
    try:
        spec: QueueSpec = from_raw(queue, Queue).spec
    except msgspec.ValidationError as error:
        yield FieldError("spec", INVALID, f"Invalid value: {error}")
        return
    if spec.weight is not None and spec.weight < 1:
        yield invalid("spec.weight", spec.weight, "must be greater than or equal to 1")
    name = text(mapping(queue, "metadata"), "name")
    if spec.parent and spec.parent == name:
        yield invalid("spec.parent", spec.parent, "a queue cannot be a part of itself")
    said = strings(queue, "metadata", "annotations").get(NAMESPACES)
    if said is not None:
        try:
            NamespaceRule(said)
        except SelectorError as error:
            yield invalid(f"metadata.annotations[{NAMESPACES}]", said, str(error))
    capability, wrong_capability = amounts(spec.capability, "spec.capability")
    deserved, wrong_deserved = amounts(spec.deserved, "spec.deserved")
    guarantee, wrong_guarantee = amounts(spec.guarantee.resource, "spec.guarantee.resource")
    yield from (*wrong_capability, *wrong_deserved, *wrong_guarantee)
    yield from _beyond("deserved", deserved, spec.deserved, "capability", capability)
    where = "guarantee.resource"
    yield from _beyond(where, guarantee, spec.guarantee.resource, "deserved", deserved)
    yield from _beyond(where, guarantee, spec.guarantee.resource, "capability", capability)


def _beyond(
    field: str,
    less: dict[str, int],
    written: Mapping[str, object],
    bound: str,
    more: dict[str, int],
) -> Iterator[FieldError]:
    for resource in exceeding(less, more):
        why = f"must be less than or equal to {bound}"
        yield invalid(f"spec.{field}[{resource}]", str(written[resource]), why)


async def _doubts(queue: Object, reader: Reader) -> tuple[str, ...]:
    """A tree is put together one queue at a time: what does not fit yet is said, not refused."""
    parent = _parent(queue)
    if not parent:
        return ()
    try:
        found = await reader.get(QUEUE, parent)
    except KubeError as error:
        _log.warning("queue %s cannot be read: %s", parent, error)
        return (f"queue {parent!r} could not be looked at",)
    if found is None and parent == ROOT_QUEUE:
        return ()
    if found is None:
        return (f"queue {parent!r}, of which this one is a part, does not exist",)
    own, bound = _capability(queue), _capability(found)
    return tuple(
        f"spec.capability[{resource}] is more than queue {parent!r} has"
        for resource in exceeding(own, bound)
    )


def _capability(queue: Object) -> dict[str, int]:
    try:
        spec: QueueSpec = from_raw(queue, Queue).spec
    except msgspec.ValidationError:
        return {}
    return amounts(spec.capability, "spec.capability")[0]


def _parent(queue: Object) -> str:
    return text(mapping(queue, "spec"), "parent")


DOOR = Door((QUEUE.version,), _judge)
