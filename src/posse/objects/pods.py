"""Pods, as the scheduler, the controllers and the node agents read them."""

from __future__ import annotations

from typing import Any

from msgspec import field

from posse.objects.meta import (
    Amount,
    Condition,
    FrozenStruct,
    Key,
    KubeStruct,
    Nullable,
    ObjectMeta,
)


class Resources(KubeStruct):
    """Requests and limits of a container, or of a whole pod."""

    requests: Nullable[dict[str, Amount]] = field(default_factory=dict)
    limits: Nullable[dict[str, Amount]] = field(default_factory=dict)
    claims: Nullable[list[dict[str, Any]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.requests is None:
            self.requests = {}
        if self.limits is None:
            self.limits = {}
        if self.claims is None:
            self.claims = []


class ContainerPort(KubeStruct):
    container_port: int = 0
    name: str = ""
    protocol: str = "TCP"
    host_port: int = 0
    host_ip: str = field(default="", name="hostIP")


class Container(KubeStruct):
    name: str = ""
    image: str = ""
    resources: Nullable[Resources] = field(default_factory=Resources)
    ports: Nullable[list[ContainerPort]] = field(default_factory=list)
    restart_policy: str | None = None

    def __post_init__(self) -> None:
        if self.resources is None:
            self.resources = Resources()
        if self.ports is None:
            self.ports = []


class Toleration(FrozenStruct, frozen=True):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class SchedulingGate(KubeStruct):
    name: str = ""


class SchedulingGroup(KubeStruct):
    """Kubernetes' own link from a pod to its group."""

    pod_group_name: str = ""


class PodVolume(KubeStruct):
    """Only what names a claim: the rest of a volume is its node's business, and is large."""

    name: str = ""
    persistent_volume_claim: Any = None
    ephemeral: Any = None


class WorkloadReference(KubeStruct):
    """The same in Kubernetes 1.35: a group inside of a Workload, and which copy of it."""

    name: str = ""
    pod_group: str = ""
    pod_group_replica_key: str = ""


class PodSpec(KubeStruct):
    containers: Nullable[list[Container]] = field(default_factory=list)
    init_containers: Nullable[list[Container]] = field(default_factory=list)
    node_name: str = ""
    scheduler_name: str = ""
    node_selector: Nullable[dict[str, str]] = field(default_factory=dict)
    tolerations: Nullable[list[Toleration]] = field(default_factory=list)
    affinity: dict[str, Any] | None = None
    topology_spread_constraints: Nullable[list[dict[str, Any]]] = field(default_factory=list)
    priority: int | None = None
    priority_class_name: str = ""
    scheduling_group: SchedulingGroup | None = None
    workload_ref: WorkloadReference | None = None
    preemption_policy: str | None = None
    restart_policy: str = ""
    termination_grace_period_seconds: int | None = None
    active_deadline_seconds: int | None = None
    host_network: bool | None = None
    hostname: str = ""
    subdomain: str = ""
    resources: Resources | None = None
    overhead: Nullable[dict[str, Amount]] = field(default_factory=dict)
    scheduling_gates: Nullable[list[SchedulingGate]] = field(default_factory=list)
    resource_claims: Nullable[list[dict[str, Any]]] = field(default_factory=list)
    volumes: Nullable[list[PodVolume]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.containers is None:
            self.containers = []
        if self.init_containers is None:
            self.init_containers = []
        if self.node_selector is None:
            self.node_selector = {}
        if self.tolerations is None:
            self.tolerations = []
        if self.topology_spread_constraints is None:
            self.topology_spread_constraints = []
        if self.overhead is None:
            self.overhead = {}
        if self.scheduling_gates is None:
            self.scheduling_gates = []
        if self.resource_claims is None:
            self.resource_claims = []
        if self.volumes is None:
            self.volumes = []


class Waiting(KubeStruct):
    reason: str = ""
    message: str = ""


class Running(KubeStruct):
    started_at: str | None = None


class Terminated(KubeStruct):
    exit_code: int = 0
    signal: int = 0
    reason: str = ""
    message: str = ""
    started_at: str | None = None
    finished_at: str | None = None


class ContainerState(KubeStruct):
    """Exactly one of the three, or none while nothing is known."""

    waiting: Waiting | None = None
    running: Running | None = None
    terminated: Terminated | None = None


class ContainerStatus(KubeStruct):
    name: str = ""
    ready: bool = False
    started: bool | None = None
    restart_count: int = 0
    state: Nullable[ContainerState] = field(default_factory=ContainerState)
    last_state: Nullable[ContainerState] = field(default_factory=ContainerState)
    # What it has, and what its node has promised it: not what it asks for while it is resized.
    resources: Resources | None = None
    allocated_resources: dict[str, Amount] | None = None

    def __post_init__(self) -> None:
        if self.state is None:
            self.state = ContainerState()
        if self.last_state is None:
            self.last_state = ContainerState()


class PodStatus(KubeStruct):
    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: Nullable[list[Condition]] = field(default_factory=list)
    pod_ip: str = field(default="", name="podIP")
    host_ip: str = field(default="", name="hostIP")
    start_time: str | None = None
    nominated_node_name: str = ""
    container_statuses: Nullable[list[ContainerStatus]] = field(default_factory=list)
    init_container_statuses: Nullable[list[ContainerStatus]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.conditions is None:
            self.conditions = []
        if self.container_statuses is None:
            self.container_statuses = []
        if self.init_container_statuses is None:
            self.init_container_statuses = []


class Pod(KubeStruct):
    metadata: Nullable[ObjectMeta] = field(default_factory=ObjectMeta)
    spec: Nullable[PodSpec] = field(default_factory=PodSpec)
    status: Nullable[PodStatus] = field(default_factory=PodStatus)

    def __post_init__(self) -> None:
        if self.metadata is None:
            self.metadata = ObjectMeta()
        if self.spec is None:
            self.spec = PodSpec()
        if self.status is None:
            self.status = PodStatus()

    @property
    def key(self) -> Key:
        return (self.metadata.namespace, self.metadata.name)

    @property
    def terminal(self) -> bool:
        """It has run to its end and uses nothing any more."""
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def ready(self) -> bool:
        return self.condition_status("Ready") == "True"

    def condition_status(self, kind: str) -> str:
        """ "True", "False", "Unknown", or "" where the condition is absent."""
        for condition in self.status.conditions:
            if condition.type == kind:
                return condition.status
        return ""
