"""An MPIJob as it is read: every default chosen, every name derived."""

from __future__ import annotations

from typing import Any

import msgspec

from posse.objects.jobs.parts import Part
from posse.objects.jobs.policies import CLEAN_NONE
from posse.objects.kinds import MPI_JOB
from posse.objects.meta import from_raw
from posse.objects.mpijobs import MPIJobSpec
from posse.objects.ownership import Manifest, metadata_of, owner_reference
from posse.objects.trainingjobs import ReplicaSpec, RunPolicy, SchedulingPolicy

OPERATOR = "mpi-operator"
MANAGED_BY = "kubeflow.org/mpi-operator"

LAUNCHER = "launcher"
WORKER = "worker"
LAUNCHER_TYPE = "Launcher"
WORKER_TYPE = "Worker"

OPEN_MPI = "OpenMPI"
INTEL = "Intel"
MPICH = "MPICH"

AT_STARTUP = "AtStartup"
WAIT_FOR_WORKERS = "WaitForWorkersReady"

ROOT_SSH_PATH = "/root/.ssh"

# Beyond any cluster that could run them; it keeps a slip of the pen from filling the memory.
MOST_WORKERS = 100_000


class Job(msgspec.Struct, frozen=True):
    """One MPIJob with its defaults; `raw` is the object itself, for ownership and status."""

    raw: Manifest
    slots: int
    launcher_as_worker: bool
    ssh_path: str
    creation_policy: str
    implementation: str
    run: RunPolicy
    clean_pod_policy: str
    launcher: ReplicaSpec | None
    worker: ReplicaSpec | None

    @property
    def name(self) -> str:
        return str(metadata_of(self.raw)["name"])

    @property
    def namespace(self) -> str:
        return str(metadata_of(self.raw)["namespace"])

    @property
    def workers(self) -> int:
        return 0 if self.worker is None else self.worker.replicas or 0

    @property
    def waits_for_workers(self) -> bool:
        return self.creation_policy == WAIT_FOR_WORKERS

    @property
    def suspended(self) -> bool:
        return self.run.suspend is True

    @property
    def scheduling(self) -> SchedulingPolicy:
        return self.run.scheduling_policy or SchedulingPolicy()

    @property
    def launcher_name(self) -> str:
        return f"{self.name}-launcher"

    @property
    def config_name(self) -> str:
        return f"{self.name}-config"

    @property
    def secret_name(self) -> str:
        return f"{self.name}-ssh"

    def worker_name(self, index: int) -> str:
        return f"{self.name}-worker-{index}"

    @property
    def parts(self) -> tuple[Part, ...]:
        """The roles, launcher first: its priority class speaks for the job."""
        parts = []
        if self.launcher is not None:
            parts.append(Part(LAUNCHER, 1, self.launcher.template))
        if self.worker is not None:
            parts.append(Part(WORKER, self.workers, self.worker.template))
        return tuple(parts)

    def owned_metadata(self, name: str, labels: dict[str, str]) -> Manifest:
        """The metadata of an object that lives and dies with this job."""
        return {
            "name": name,
            "namespace": self.namespace,
            "labels": labels,
            "ownerReferences": [owner_reference(MPI_JOB, self.raw)],
        }


def read(raw: Manifest) -> Job:
    """The job with defaults; msgspec.ValidationError when a field is of the wrong type."""
    spec = from_raw(raw.get("spec") or {}, MPIJobSpec)
    return Job(
        raw=raw,
        slots=1 if spec.slots_per_worker is None else spec.slots_per_worker,
        launcher_as_worker=spec.run_launcher_as_worker is True,
        ssh_path=spec.ssh_auth_mount_path or ROOT_SSH_PATH,
        creation_policy=spec.launcher_creation_policy or AT_STARTUP,
        implementation=spec.mpi_implementation or OPEN_MPI,
        run=spec.run_policy,
        clean_pod_policy=spec.run_policy.clean_pod_policy or CLEAN_NONE,
        launcher=_replicas(spec.mpi_replica_specs.get(LAUNCHER_TYPE), 1, "OnFailure"),
        worker=_replicas(spec.mpi_replica_specs.get(WORKER_TYPE), 0, "Never"),
    )


def worker_names(raw: Manifest) -> list[str]:
    """The names of the workers asked for; none where the spec cannot be read."""
    try:
        job = read(raw)
    except msgspec.ValidationError:
        return []
    return [job.worker_name(index) for index in range(min(job.workers, MOST_WORKERS))]


def managed_elsewhere(raw: Manifest) -> bool:
    """Whether `managedBy` hands the job to another controller."""
    spec: Any = raw.get("spec")
    policy: Any = spec.get("runPolicy") if isinstance(spec, dict) else None
    manager = policy.get("managedBy") if isinstance(policy, dict) else None
    return manager is not None and manager != MANAGED_BY


def _replicas(spec: ReplicaSpec | None, replicas: int, restart_policy: str) -> ReplicaSpec | None:
    if spec is None:
        return None
    return ReplicaSpec(
        replicas=replicas if spec.replicas is None else spec.replicas,
        template=spec.template,
        restart_policy=spec.restart_policy or restart_policy,
    )
