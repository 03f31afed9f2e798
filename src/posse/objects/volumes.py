"""Claims, volumes and what storage says of nodes, as the scheduler reads them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from msgspec import field

from posse.objects.affinities import LabelSelector, NodeSelector
from posse.objects.meta import Amount, KubeObject, KubeStruct, Nullable
from posse.objects.raw import mapping, text
from posse.objects.times import parse_time

# Where a claim's volume is to be made; the provisioner takes it away if it cannot.
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
# What keeps a claim while a pod uses it, and a volume while it is bound.
CLAIM_PROTECTION: Final = "kubernetes.io/pvc-protection"
VOLUME_PROTECTION: Final = "kubernetes.io/pv-protection"
DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"
OLD_DEFAULT_CLASS: Final = "storageclass.beta.kubernetes.io/is-default-class"
# The provisioner of classes whose volumes are made by hand.
NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
WAIT_FOR_FIRST_CONSUMER: Final = "WaitForFirstConsumer"
READ_WRITE_ONCE_POD: Final = "ReadWriteOncePod"


class Storage(KubeStruct):
    requests: Nullable[dict[str, Amount]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.requests is None:
            self.requests = {}


class ClaimSpec(KubeStruct):
    volume_name: str = ""
    storage_class_name: str | None = None
    access_modes: Nullable[list[str]] = field(default_factory=list)
    volume_mode: str | None = None
    selector: LabelSelector | None = None
    resources: Nullable[Storage] = field(default_factory=Storage)

    def __post_init__(self) -> None:
        if self.access_modes is None:
            self.access_modes = []
        if self.resources is None:
            self.resources = Storage()


class ClaimStatus(KubeStruct):
    phase: str = ""


class PersistentVolumeClaim(KubeObject):
    spec: Nullable[ClaimSpec] = field(default_factory=ClaimSpec)
    status: Nullable[ClaimStatus] = field(default_factory=ClaimStatus)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.spec is None:
            self.spec = ClaimSpec()
        if self.status is None:
            self.status = ClaimStatus()

    @property
    def bound(self) -> bool:
        """Claim and volume have found each other for good."""
        return bool(self.spec.volume_name) and BIND_COMPLETED in self.metadata.annotations

    @property
    def class_name(self) -> str:
        return self.metadata.annotations.get(CLASS_ANNOTATION) or self.spec.storage_class_name or ""


class ClaimReference(KubeStruct):
    namespace: str = ""
    name: str = ""
    uid: str = ""


class CsiSource(KubeStruct):
    driver: str = ""
    volume_handle: str = ""


class VolumeNodeAffinity(KubeStruct):
    required: NodeSelector | None = None


class VolumeSpec(KubeStruct):
    capacity: Nullable[dict[str, Amount]] = field(default_factory=dict)
    access_modes: Nullable[list[str]] = field(default_factory=list)
    claim_ref: ClaimReference | None = None
    storage_class_name: str = ""
    volume_mode: str | None = None
    node_affinity: VolumeNodeAffinity | None = None
    csi: CsiSource | None = None

    def __post_init__(self) -> None:
        if self.capacity is None:
            self.capacity = {}
        if self.access_modes is None:
            self.access_modes = []


class PersistentVolume(KubeObject):
    spec: Nullable[VolumeSpec] = field(default_factory=VolumeSpec)
    status: Nullable[ClaimStatus] = field(default_factory=ClaimStatus)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.spec is None:
            self.spec = VolumeSpec()
        if self.status is None:
            self.status = ClaimStatus()


class TopologyExpression(KubeStruct):
    key: str = ""
    values: Nullable[list[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.values is None:
            self.values = []


class TopologyTerm(KubeStruct):
    match_label_expressions: Nullable[list[TopologyExpression]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.match_label_expressions is None:
            self.match_label_expressions = []


class StorageClass(KubeObject):
    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: Nullable[list[TopologyTerm]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.allowed_topologies is None:
            self.allowed_topologies = []

    @property
    def waits(self) -> bool:
        """Its claims are bound once it is known where their first pod goes."""
        return self.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER

    @property
    def provisions(self) -> bool:
        return self.provisioner not in ("", NO_PROVISIONER)


class Attachable(KubeStruct):
    count: int | None = None


class NodeDriver(KubeStruct):
    name: str = ""
    allocatable: Attachable | None = None


class CsiNodeSpec(KubeStruct):
    drivers: Nullable[list[NodeDriver]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.drivers is None:
            self.drivers = []


class CsiNode(KubeObject):
    spec: Nullable[CsiNodeSpec] = field(default_factory=CsiNodeSpec)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.spec is None:
            self.spec = CsiNodeSpec()


class CsiDriverSpec(KubeStruct):
    storage_capacity: bool | None = None


class CsiDriver(KubeObject):
    spec: Nullable[CsiDriverSpec] = field(default_factory=CsiDriverSpec)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.spec is None:
            self.spec = CsiDriverSpec()


class CsiStorageCapacity(KubeObject):
    storage_class_name: str = ""
    node_topology: LabelSelector | None = None
    capacity: Amount | None = None
    maximum_volume_size: Amount | None = None


def is_default(storage_class: dict[str, Any]) -> bool:
    """Whether claims that name no class are meant for this one."""
    annotations = mapping(storage_class, "metadata", "annotations")
    return "true" in (annotations.get(DEFAULT_CLASS), annotations.get(OLD_DEFAULT_CLASS))


def default_class(classes: Iterable[dict[str, Any]]) -> str | None:
    """The youngest of those that say they are it; of several of one second, the first by name."""
    found = [one["metadata"] for one in classes if is_default(one)]
    ordered = sorted(found, key=lambda one: (-parse_time(one["creationTimestamp"]), one["name"]))
    return str(ordered[0]["name"]) if ordered else None


def names_class(claim: dict[str, Any]) -> bool:
    """Whether a claim says which class it wants; that it wants none is an answer, too."""
    annotated = CLASS_ANNOTATION in mapping(claim, "metadata", "annotations")
    return annotated or mapping(claim, "spec").get("storageClassName") is not None


def class_of(obj: dict[str, Any]) -> str:
    """The class of a claim or of a volume; the old annotation goes before the field."""
    annotated = text(mapping(obj, "metadata", "annotations"), CLASS_ANNOTATION)
    return annotated or text(mapping(obj, "spec"), "storageClassName")
