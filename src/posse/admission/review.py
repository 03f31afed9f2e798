"""One request, one answer. Whoever stands at the door, webhook or API server, asks here.

The kinds are looked at by modules of their own; each is a pair of coroutines. Kinds that are not
ours, and parts of objects such as their status, pass untouched.
"""

from __future__ import annotations

from enum import Enum

from msgspec import structs

from posse.admission import groups, jobs, pods, queues
from posse.admission.lookups import Authorizer, Reader
from posse.admission.patching import Operation, differences
from posse.admission.verdicts import Door, Verdict
from posse.admission.wire import CREATE, DELETE, UPDATE, AdmissionRequest, GroupVersionKind, Review
from posse.objects.kinds import MPI_JOB, POD, POD_GROUPS, QUEUE, TF_JOB
from posse.objects.raw import mapping, text


class Stage(Enum):
    """Of two webhooks, one changes objects and a later one judges what became of them."""

    MUTATING = "mutate"
    VALIDATING = "validate"
    WHOLE = "both"


DOORS: dict[tuple[str, str], Door] = {
    (MPI_JOB.group, MPI_JOB.kind): jobs.MPI_DOOR,
    (TF_JOB.group, TF_JOB.kind): jobs.TF_DOOR,
    (QUEUE.group, QUEUE.kind): queues.DOOR,
    (POD.group, POD.kind): pods.DOOR,
    **{(kind.group, kind.kind): groups.DOOR for kind in POD_GROUPS},
}

_ALLOWED = Review()


def door_of(kind: GroupVersionKind) -> Door | None:
    door = DOORS.get((kind.group, kind.kind))
    return door if door is not None and kind.version in door.versions else None


async def review(
    request: AdmissionRequest,
    reader: Reader,
    authorizer: Authorizer,
    stage: Stage = Stage.WHOLE,
) -> Review:
    """KubeError when a right could not be checked; what cannot be read otherwise is a warning."""
    door = door_of(request.kind)
    if door is None or request.sub_resource:
        return _ALLOWED
    if request.operation not in (CREATE, UPDATE, DELETE):
        return _ALLOWED
    if request.operation != DELETE and (request.object is None or _is_ending(request)):
        # What is on its way out only loses finalizers: nobody may hold it back.
        return _ALLOWED
    patch: tuple[Operation, ...] = ()
    if stage is not Stage.VALIDATING and request.object is not None:
        changed = await door.change(request, reader)
        patch = differences(request.object, changed)
        request = structs.replace(request, object=changed)
    if stage is Stage.MUTATING:
        return Review(patch=patch)
    verdict = await door.judge(request, reader, authorizer)
    return _answer(request, verdict, patch)


def _is_ending(request: AdmissionRequest) -> bool:
    return mapping(request.object, "metadata").get("deletionTimestamp") is not None


def _answer(request: AdmissionRequest, verdict: Verdict, patch: tuple[Operation, ...]) -> Review:
    if not verdict.forbidden and not verdict.wrongs:
        return Review(warnings=verdict.warnings, patch=patch)
    kind = request.kind
    qualified = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    name = request.name or text(mapping(request.object, "metadata"), "name")
    if verdict.forbidden:
        message = f'{qualified} "{name}" is forbidden: {verdict.forbidden}'
        return Review(False, 403, "Forbidden", message, warnings=verdict.warnings)
    told = [str(wrong) for wrong in verdict.wrongs]
    message = f'{qualified} "{name}" is invalid: '
    message += told[0] if len(told) == 1 else f"[{', '.join(told)}]"
    return Review(False, 422, "Invalid", message, verdict.wrongs, verdict.warnings)
