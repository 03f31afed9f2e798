"""What is wrong with an MPIJob, in the API's own words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from posse.controllers.jobs import cleaning
from posse.controllers.jobs.grouping import requests_of
from posse.controllers.jobs.shapes import check_template
from posse.controllers.mpi.spec import (
    AT_STARTUP,
    INTEL,
    LAUNCHER_TYPE,
    MOST_WORKERS,
    MPICH,
    OPEN_MPI,
    WAIT_FOR_WORKERS,
    WORKER_TYPE,
    Job,
)
from posse.objects.errors import INVALID, NOT_SUPPORTED, REQUIRED, FieldError
from posse.objects.names import dns_1035_label_problems
from posse.objects.quantity import QuantityError
from posse.objects.trainingjobs import ReplicaSpec

_RESTART_POLICIES = ("Never", "OnFailure")
_IMPLEMENTATIONS = (INTEL, MPICH, OPEN_MPI)
_CREATION_POLICIES = (AT_STARTUP, WAIT_FOR_WORKERS)
_SPECS = "spec.mpiReplicaSpecs"


def problems(job: Job) -> list[FieldError]:
    """Every reason why this job can never run; empty for a sound one."""
    return [
        *_name_problems(job),
        *_launcher_problems(job.launcher, f"{_SPECS}[{LAUNCHER_TYPE}]"),
        *_worker_problems(job.worker, f"{_SPECS}[{WORKER_TYPE}]"),
        *_non_negative("spec.slotsPerWorker", job.slots),
        *_run_policy_problems(job),
        *_one_of("spec.mpiImplementation", job.implementation, _IMPLEMENTATIONS),
        *_one_of("spec.launcherCreationPolicy", job.creation_policy, _CREATION_POLICIES),
    ]


def _name_problems(job: Job) -> Iterable[FieldError]:
    """The longest name that the job gives to a pod must do as a host name."""
    longest = job.worker_name(max(job.workers, 1) - 1)
    if wrong := dns_1035_label_problems(longest):
        yield _invalid(
            "metadata.name",
            job.name,
            f"its pods and service cannot be named: {longest!r} is no DNS label: "
            + ", ".join(wrong),
        )


def _launcher_problems(spec: ReplicaSpec | None, path: str) -> Iterable[FieldError]:
    if spec is None:
        yield _required(path, "must have Launcher replica spec")
        return
    yield from _replica_problems(spec, path)
    if spec.replicas != 1:
        yield _invalid(f"{path}.replicas", spec.replicas, "must be 1")


def _worker_problems(spec: ReplicaSpec | None, path: str) -> Iterable[FieldError]:
    if spec is None:
        return
    yield from _replica_problems(spec, path)
    if spec.replicas is None or spec.replicas <= 0:
        yield _invalid(f"{path}.replicas", spec.replicas, "must be greater than or equal to 1")
    elif spec.replicas > MOST_WORKERS:
        yield _invalid(
            f"{path}.replicas", spec.replicas, f"must be less than or equal to {MOST_WORKERS}"
        )


def _replica_problems(spec: ReplicaSpec, path: str) -> Iterable[FieldError]:
    yield from _one_of(f"{path}.restartPolicy", spec.restart_policy, _RESTART_POLICIES)
    template_spec = spec.template.get("spec")
    containers = template_spec.get("containers") if isinstance(template_spec, dict) else None
    if not containers:
        yield _required(f"{path}.template.spec.containers", "must define at least one container")
        return
    try:
        check_template(spec.template)
        requests_of(spec.template)
    except QuantityError as error:
        yield FieldError(f"{path}.template.{error.field}", INVALID, f"Invalid value: {error}")
    except msgspec.ValidationError as error:
        yield FieldError(f"{path}.template", INVALID, f"Invalid value: {error}")


def _run_policy_problems(job: Job) -> Iterable[FieldError]:
    path = "spec.runPolicy"
    yield from _one_of(f"{path}.cleanPodPolicy", job.clean_pod_policy, cleaning.POLICIES)
    yield from _non_negative(f"{path}.ttlSecondsAfterFinished", job.run.ttl_seconds_after_finished)
    yield from _non_negative(f"{path}.activeDeadlineSeconds", job.run.active_deadline_seconds)
    yield from _non_negative(f"{path}.backoffLimit", job.run.backoff_limit)
    yield from _non_negative(f"{path}.schedulingPolicy.minAvailable", job.scheduling.min_available)


def _non_negative(field: str, value: int | None) -> Iterable[FieldError]:
    if value is not None and value < 0:
        yield _invalid(field, value, "must be greater than or equal to 0")


def _one_of(field: str, value: str, supported: Sequence[str]) -> Iterable[FieldError]:
    if value not in supported:
        known = ", ".join(f'"{item}"' for item in supported)
        yield FieldError(
            field, NOT_SUPPORTED, f'Unsupported value: "{value}": supported values: {known}'
        )


def _required(field: str, why: str) -> FieldError:
    return FieldError(field, REQUIRED, f"Required value: {why}")


def _invalid(field: str, value: object, why: str) -> FieldError:
    shown = f'"{value}"' if isinstance(value, str) else value
    return FieldError(field, INVALID, f"Invalid value: {shown}: {why}")
