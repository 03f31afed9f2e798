"""MPIJob of kubeflow.org/v2beta1.

Pod templates stay raw dicts: they reach the pods untouched, with fields that nobody here knows.
Unset fields stay unset; the controller, which knows why, chooses their defaults.
"""

from __future__ import annotations

from typing import Any

from msgspec import field

from posse.objects.meta import Amount, Condition, Key, KubeStruct, Nullable, ObjectMeta


class SchedulingPolicy(KubeStruct):
    min_available: int | None = None
    queue: str = ""
    min_resources: Nullable[dict[str, Amount]] = field(default_factory=dict)
    priority_class: str = ""
    schedule_timeout_seconds: int | None = None

    def __post_init__(self) -> None:
        if self.min_resources is None:
            self.min_resources = {}


class RunPolicy(KubeStruct):
    clean_pod_policy: str | None = None
    ttl_seconds_after_finished: int | None = None
    active_deadline_seconds: int | None = None
    backoff_limit: int | None = None
    suspend: bool | None = None
    managed_by: str | None = None
    scheduling_policy: SchedulingPolicy | None = None


class ReplicaSpec(KubeStruct):
    replicas: int | None = None
    template: Nullable[dict[str, Any]] = field(default_factory=dict)
    restart_policy: str = ""

    def __post_init__(self) -> None:
        if self.template is None:
            self.template = {}


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


class ReplicaStatus(KubeStruct):
    active: int = 0
    succeeded: int = 0
    failed: int = 0


class MPIJobStatus(KubeStruct):
    conditions: Nullable[list[Condition]] = field(default_factory=list)
    replica_statuses: Nullable[dict[str, ReplicaStatus]] = field(default_factory=dict)
    start_time: str | None = None
    completion_time: str | None = None
    last_reconcile_time: str | None = None

    def __post_init__(self) -> None:
        if self.conditions is None:
            self.conditions = []
        if self.replica_statuses is None:
            self.replica_statuses = {}


class MPIJob(KubeStruct):
    metadata: Nullable[ObjectMeta] = field(default_factory=ObjectMeta)
    spec: Nullable[MPIJobSpec] = field(default_factory=MPIJobSpec)
    status: Nullable[MPIJobStatus] = field(default_factory=MPIJobStatus)

    def __post_init__(self) -> None:
        if self.metadata is None:
            self.metadata = ObjectMeta()
        if self.spec is None:
            self.spec = MPIJobSpec()
        if self.status is None:
            self.status = MPIJobStatus()

    @property
    def key(self) -> Key:
        return (self.metadata.namespace, self.metadata.name)
