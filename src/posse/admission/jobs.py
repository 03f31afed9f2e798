"""Training jobs: refused for what their controllers would refuse them for, in the same words."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from posse.admission.lookups import Authorizer, Reader, namespace_queue, queue_standing
from posse.admission.verdicts import (
    PASSED,
    Door,
    Verdict,
    annotated,
    annotation,
    brought,
    object_of,
)
from posse.admission.wire import CREATE, DELETE, AdmissionRequest, Object
from posse.objects.errors import INVALID, FieldError
from posse.objects.jobs.mpi import spec as mpi
from posse.objects.jobs.mpi.validating import problems as mpi_problems
from posse.objects.jobs.queues import named_queue
from posse.objects.jobs.replicas import spec as replicas
from posse.objects.jobs.replicas.validating import problems as replica_problems
from posse.objects.jobs.tf.form import TF_FORM
from posse.objects.jobs.tf.versions import V1, V1BETA1, V1BETA2
from posse.objects.jobs.wrongs import invalid
from posse.objects.keys import QUEUE_NAME, WRITTEN_AS
from posse.objects.kinds import MPI_JOB
from posse.objects.raw import mapping, text

_POLICY_QUEUE = "spec.runPolicy.schedulingPolicy.queue"
_MANAGED_BY = "spec.runPolicy.managedBy"
# A generated name ends in so many letters that are not drawn yet.
_TAIL = "xxxxx"


@dataclass(frozen=True, slots=True)
class Reading:
    """How one kind is read. `manager`: what `managedBy` means where it says nothing."""

    versions: tuple[str, ...]
    manager: str
    managed_elsewhere: Callable[[Object], bool]
    read: Callable[[Object], Any]
    problems: Callable[[Any], list[FieldError]]

    def wrongs(self, raw: Object) -> list[FieldError]:
        try:
            return self.problems(self.read(raw))
        except msgspec.ValidationError as error:
            return [FieldError("spec", INVALID, f"Invalid value: {error}")]

    def queue(self, raw: Object) -> tuple[str, str]:
        """The queue that the job names, and where; ("", "") for none, and for a broken job."""
        try:
            policy = self.read(raw).scheduling
        except msgspec.ValidationError:
            return "", ""
        metadata = {where: mapping(raw, "metadata", where) for where in ("annotations", "labels")}
        place = _POLICY_QUEUE if policy.queue else f"metadata.annotations[{QUEUE_NAME}]"
        queue = named_queue(policy, metadata)
        return (queue, place) if queue else ("", "")


async def _change(reading: Reading, request: AdmissionRequest, reader: Reader) -> Object:
    """Notes what can no longer be seen once the job is stored."""
    job = object_of(request)
    if reading.managed_elsewhere(job):
        return job
    if request.operation != CREATE:
        kept = annotation(request.old_object, WRITTEN_AS)
        return annotated(job, {WRITTEN_AS: kept}) if kept else job
    notes: dict[str, str] = {}
    written = request.written_kind
    if len(reading.versions) > 1 and written.version in reading.versions:
        notes[WRITTEN_AS] = written.api_version
    if not reading.queue(job)[0] and (queue := await namespace_queue(reader, request.namespace)):
        notes[QUEUE_NAME] = queue
    return annotated(job, notes) if notes else job


async def _judge(
    reading: Reading, request: AdmissionRequest, reader: Reader, authorizer: Authorizer
) -> Verdict:
    if request.operation == DELETE:
        return PASSED
    job, old = _named(object_of(request)), request.old_object
    before = None if request.operation == CREATE or old is None else _named(old)
    fixed = tuple(_manager_problems(reading, job, before))
    if reading.managed_elsewhere(job):
        return Verdict(fixed)
    wrongs = brought(reading.wrongs(job), [] if before is None else reading.wrongs(before))
    queue, place = reading.queue(job)
    if not queue or (before is not None and reading.queue(before)[0] == queue):
        return Verdict((*fixed, *wrongs))
    standing = await queue_standing(reader, queue, request.namespace)
    refused = (invalid(place, queue, standing.refusal),) if standing.refusal else ()
    return Verdict(
        (*fixed, *wrongs, *refused), warnings=(standing.doubt,) if standing.doubt else ()
    )


def _manager_problems(reading: Reading, job: Object, before: Object | None) -> Iterable[FieldError]:
    """Two controllers would meet in the middle of a job that changes hands."""
    if before is None:
        return
    new, old = (text(mapping(one, "spec", "runPolicy"), "managedBy") for one in (job, before))
    if (new or reading.manager) != (old or reading.manager):
        yield invalid(_MANAGED_BY, new, "field is immutable")


def _named(job: Object) -> Object:
    """With the name that it will have, as long as the one that it will have."""
    metadata = mapping(job, "metadata")
    if text(metadata, "name"):
        return job
    generated = text(metadata, "generateName")
    return job | {"metadata": metadata | {"name": f"{generated}{_TAIL}" if generated else ""}}


def _door(reading: Reading) -> Door:
    return Door(reading.versions, partial(_judge, reading), partial(_change, reading))


MPI_DOOR = _door(
    Reading(
        versions=(MPI_JOB.version,),
        manager=mpi.MANAGED_BY,
        managed_elsewhere=mpi.managed_elsewhere,
        read=mpi.read,
        problems=mpi_problems,
    )
)
TF_DOOR = _door(
    Reading(
        versions=(V1, V1BETA2, V1BETA1),
        manager=TF_FORM.manager,
        managed_elsewhere=partial(replicas.managed_elsewhere, TF_FORM),
        read=partial(replicas.read, TF_FORM),
        problems=replica_problems,
    )
)
