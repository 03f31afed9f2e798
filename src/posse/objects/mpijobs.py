"""MPIJob of kubeflow.org/v2beta1."""

from __future__ import annotations

from msgspec import field

from posse.objects.meta import Key, KubeStruct, Nullable, ObjectMeta
from posse.objects.trainingjobs import JobStatus, ReplicaSpec, RunPolicy


class MPIJobSpec(KubeStruct):
    slots_per_worker: int | None = None
    run_launcher_as_worker: bool | None = None
    ssh_auth_mount_path: str = ""
    launcher_creation_policy: str = ""
    mpi_implementation: str = ""
    run_policy: Nullable[RunPolicy] = field(default_factory=RunPolicy)
    mpi_replica_specs: Nullable[dict[str, ReplicaSpec]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.run_policy is None:
            self.run_policy = RunPolicy()
        if self.mpi_replica_specs is None:
            self.mpi_replica_specs = {}


class MPIJob(KubeStruct):
    metadata: Nullable[ObjectMeta] = field(default_factory=ObjectMeta)
    spec: Nullable[MPIJobSpec] = field(default_factory=MPIJobSpec)
    status: Nullable[JobStatus] = field(default_factory=JobStatus)

    def __post_init__(self) -> None:
        if self.metadata is None:
            self.metadata = ObjectMeta()
        if self.spec is None:
            self.spec = MPIJobSpec()
        if self.status is None:
            self.status = JobStatus()

    @property
    def key(self) -> Key:
        return (self.metadata.namespace, self.metadata.name)
