"""What the training jobs of kubeflow.org have in common.

Pod templates stay raw dicts: they reach the pods untouched, with fields that nobody here knows.
Unset fields stay unset; the controllers, which know why, choose their defaults.
"""

from __future__ import annotations

from typing import Any

from msgspec import field

from posse.objects.meta import Amount, Condition, KubeStruct, Nullable


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


class ReplicaStatus(KubeStruct):
    active: int = 0
    succeeded: int = 0
    failed: int = 0


class JobStatus(KubeStruct):
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
