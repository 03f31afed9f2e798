"""Nodes, as the scheduler and the command line read them."""

from __future__ import annotations

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

NodeCondition = Condition


class Taint(FrozenStruct, frozen=True):
    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str | None = None


class NodeSpec(KubeStruct):
    unschedulable: bool | None = None
    taints: Nullable[list[Taint]] = field(default_factory=list)
    provider_id: str = field(default="", name="providerID")

    def __post_init__(self) -> None:
        if self.taints is None:
            self.taints = []


class NodeAddress(KubeStruct):
    type: str = ""
    address: str = ""


class NodeStatus(KubeStruct):
    capacity: Nullable[dict[str, Amount]] = field(default_factory=dict)
    allocatable: Nullable[dict[str, Amount]] = field(default_factory=dict)
    conditions: Nullable[list[NodeCondition]] = field(default_factory=list)
    addresses: Nullable[list[NodeAddress]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.capacity is None:
            self.capacity = {}
        if self.allocatable is None:
            self.allocatable = {}
        if self.conditions is None:
            self.conditions = []
        if self.addresses is None:
            self.addresses = []


class Node(KubeStruct):
    metadata: Nullable[ObjectMeta] = field(default_factory=ObjectMeta)
    spec: Nullable[NodeSpec] = field(default_factory=NodeSpec)
    status: Nullable[NodeStatus] = field(default_factory=NodeStatus)

    def __post_init__(self) -> None:
        if self.metadata is None:
            self.metadata = ObjectMeta()
        if self.spec is None:
            self.spec = NodeSpec()
        if self.status is None:
            self.status = NodeStatus()

    @property
    def key(self) -> Key:
        return ("", self.metadata.name)

    @property
    def ready(self) -> bool:
        """Its agent says so; a node that has said nothing yet is not ready."""
        return any(c.type == "Ready" and c.status == "True" for c in self.status.conditions)

    @property
    def schedulable(self) -> bool:
        """Nobody has cordoned it."""
        return not self.spec.unschedulable

    def address(self, *types: str) -> str:
        """The first address of the first of the types that has one, else empty."""
        for wanted in types or ("InternalIP", "Hostname"):
            for address in self.status.addresses:
                if address.type == wanted:
                    return address.address
        return ""
