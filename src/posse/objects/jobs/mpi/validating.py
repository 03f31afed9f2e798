"""What is wrong with an MPIJob, in the API's own words."""

from __future__ import annotations

from collections.abc import Iterable

from posse.objects.errors import FieldError
from posse.objects.jobs.mpi.spec import (
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
from posse.objects.jobs.policies import run_policy_problems
from posse.objects.jobs.templates import template_problems
from posse.objects.jobs.wrongs import invalid, non_negative, one_of, required
from posse.objects.names import dns_1035_label_problems
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
        *non_negative("spec.slotsPerWorker", job.slots),
        *run_policy_problems(job.run, job.clean_pod_policy),
        *one_of("spec.mpiImplementation", job.implementation, _IMPLEMENTATIONS),
        *one_of("spec.launcherCreationPolicy", job.creation_policy, _CREATION_POLICIES),
    ]


def _name_problems(job: Job) -> Iterable[FieldError]:
    """The longest name that the job gives to a pod must do as a host name."""
    longest = job.worker_name(max(job.workers, 1) - 1)
    if wrong := dns_1035_label_problems(longest):
        yield invalid(
            "metadata.name",
            job.name,
            f"its pods and service cannot be named: {longest!r} is no DNS label: "
            + ", ".join(wrong),
        )


def _launcher_problems(spec: ReplicaSpec | None, path: str) -> Iterable[FieldError]:
    if spec is None:
        yield required(path, "must have Launcher replica spec")
        return
    yield from _replica_problems(spec, path)
    if spec.replicas != 1:
        yield invalid(f"{path}.replicas", spec.replicas, "must be 1")


def _worker_problems(spec: ReplicaSpec | None, path: str) -> Iterable[FieldError]:
    if spec is None:
        return
    yield from _replica_problems(spec, path)
    if spec.replicas is None or spec.replicas <= 0:
        yield invalid(f"{path}.replicas", spec.replicas, "must be greater than or equal to 1")
    elif spec.replicas > MOST_WORKERS:
        yield invalid(
            f"{path}.replicas", spec.replicas, f"must be less than or equal to {MOST_WORKERS}"
        )


def _replica_problems(spec: ReplicaSpec, path: str) -> Iterable[FieldError]:
    yield from one_of(f"{path}.restartPolicy", spec.restart_policy, _RESTART_POLICIES)
    yield from template_problems(spec.template, f"{path}.template")
