"""What pods are scheduled by: groups, the queues they wait in, and priority classes."""

from __future__ import annotations

from typing import Any

from msgspec import field

from posse.objects.meta import Amount, Condition, Key, KubeStruct, Nullable, ObjectMeta


class PodGroupSpec(KubeStruct):
    min_member: int | None = None
    min_task_member: Nullable[dict[str, int]] = field(default_factory=dict)
    queue: str = ""
    priority_class_name: str = ""
    min_resources: Nullable[dict[str, Amount]] = field(default_factory=dict)
    network_topology: dict[str, Any] | None = None
    sub_group_policy: Nullable[list[dict[str, Any]]] = field(default_factory=list)
    # As Kubernetes' own PodGroup says it.
    scheduling_policy: dict[str, Any] | None = None
    scheduling_constraints: dict[str, Any] | None = None
    disruption_mode: str | dict[str, Any] | None = None
    priority: int | None = None
    preemption_policy: str = ""
    parent_composite_pod_group_name: str | None = None

    def __post_init__(self) -> None:
        if self.min_task_member is None:
            self.min_task_member = {}
        if self.min_resources is None:
            self.min_resources = {}
        if self.sub_group_policy is None:
            self.sub_group_policy = []


class PodGroupStatus(KubeStruct):
    phase: str = ""
    conditions: Nullable[list[Condition]] = field(default_factory=list)
    running: int = 0
    succeeded: int = 0
    failed: int = 0

    def __post_init__(self) -> None:
        if self.conditions is None:
            self.conditions = []


class PodGroup(KubeStruct):
    """So many pods start together, or none does: the fields of every API that has such a kind."""

    metadata: Nullable[ObjectMeta] = field(default_factory=ObjectMeta)
    spec: Nullable[PodGroupSpec] = field(default_factory=PodGroupSpec)
    status: Nullable[PodGroupStatus] = field(default_factory=PodGroupStatus)

    def __post_init__(self) -> None:
        if self.metadata is None:
            self.metadata = ObjectMeta()
        if self.spec is None:
            self.spec = PodGroupSpec()
        if self.status is None:
            self.status = PodGroupStatus()

    @property
    def key(self) -> Key:
        return (self.metadata.namespace, self.metadata.name)


class WorkloadGroup(KubeStruct):
    name: str = ""
    policy: Nullable[dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.policy is None:
            self.policy = {}


class WorkloadSpec(KubeStruct):
    pod_groups: Nullable[list[WorkloadGroup]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.pod_groups is None:
            self.pod_groups = []


class Workload(KubeStruct):
    """scheduling.k8s.io/v1alpha1, of Kubernetes 1.35: several groups in one object."""

    metadata: Nullable[ObjectMeta] = field(default_factory=ObjectMeta)
    spec: Nullable[WorkloadSpec] = field(default_factory=WorkloadSpec)

    def __post_init__(self) -> None:
        if self.metadata is None:
            self.metadata = ObjectMeta()
        if self.spec is None:
            self.spec = WorkloadSpec()

    @property
    def key(self) -> Key:
        return (self.metadata.namespace, self.metadata.name)


class Guarantee(KubeStruct):
    resource: Nullable[dict[str, Amount]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.resource is None:
            self.resource = {}


class QueueSpec(KubeStruct):
    """A resource that `capability` or `deserved` does not name is unlimited, not zero."""

    weight: int | None = None
    capability: Nullable[dict[str, Amount]] = field(default_factory=dict)
    deserved: Nullable[dict[str, Amount]] = field(default_factory=dict)
    guarantee: Nullable[Guarantee] = field(default_factory=Guarantee)
    reclaimable: bool | None = None
    parent: str = ""
    priority: int | None = None
    affinity: dict[str, Any] | None = None
    dequeue_strategy: str = ""

    def __post_init__(self) -> None:
        if self.capability is None:
            self.capability = {}
        if self.deserved is None:
            self.deserved = {}
        if self.guarantee is None:
            self.guarantee = Guarantee()


class QueueStatus(KubeStruct):
    state: str = ""
    pending: int = 0
    running: int = 0
    inqueue: int = 0
    completed: int = 0
    unknown: int = 0
    reservation: dict[str, Any] | None = None
    allocated: Nullable[dict[str, Amount]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.allocated is None:
            self.allocated = {}


class Queue(KubeStruct):
    """scheduling.volcano.sh/v1beta1, cluster-scoped."""

    metadata: Nullable[ObjectMeta] = field(default_factory=ObjectMeta)
    spec: Nullable[QueueSpec] = field(default_factory=QueueSpec)
    status: Nullable[QueueStatus] = field(default_factory=QueueStatus)

    def __post_init__(self) -> None:
        if self.metadata is None:
            self.metadata = ObjectMeta()
        if self.spec is None:
            self.spec = QueueSpec()
        if self.status is None:
            self.status = QueueStatus()

    @property
    def key(self) -> Key:
        return ("", self.metadata.name)

    @property
    def open(self) -> bool:
        """A queue that nobody has given a state yet is open."""
        return self.status.state in ("", "Open")


class PriorityClass(KubeStruct):
    metadata: Nullable[ObjectMeta] = field(default_factory=ObjectMeta)
    value: int = 0
    global_default: bool | None = None
    preemption_policy: str | None = None
    description: str = ""

    def __post_init__(self) -> None:
        if self.metadata is None:
            self.metadata = ObjectMeta()

    @property
    def key(self) -> Key:
        return ("", self.metadata.name)
