"""What a pod says of nodes and of other pods' company, as it stands in `spec.affinity` and beside.

Read on its own, not with the pod: one that is nonsense is the pod's fault alone, and named so.
"""

from __future__ import annotations

from msgspec import field

from posse.objects.meta import KubeStruct, Nullable


class Expression(KubeStruct):
    key: str = ""
    operator: str = ""
    values: Nullable[list[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.values is None:
            self.values = []


class LabelSelector(KubeStruct):
    match_labels: Nullable[dict[str, str]] = field(default_factory=dict)
    match_expressions: Nullable[list[Expression]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.match_labels is None:
            self.match_labels = {}
        if self.match_expressions is None:
            self.match_expressions = []


class NodeSelectorTerm(KubeStruct):
    match_expressions: Nullable[list[Expression]] = field(default_factory=list)
    match_fields: Nullable[list[Expression]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.match_expressions is None:
            self.match_expressions = []
        if self.match_fields is None:
            self.match_fields = []


class NodeSelector(KubeStruct):
    node_selector_terms: Nullable[list[NodeSelectorTerm]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.node_selector_terms is None:
            self.node_selector_terms = []


class PreferredNodes(KubeStruct):
    weight: int = 0
    preference: Nullable[NodeSelectorTerm] = field(default_factory=NodeSelectorTerm)

    def __post_init__(self) -> None:
        if self.preference is None:
            self.preference = NodeSelectorTerm()


class NodeAffinity(KubeStruct):
    required: NodeSelector | None = field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: Nullable[list[PreferredNodes]] = field(
        default_factory=list, name="preferredDuringSchedulingIgnoredDuringExecution"
    )

    def __post_init__(self) -> None:
        if self.preferred is None:
            self.preferred = []


class PodAffinityTerm(KubeStruct):
    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespaces: Nullable[list[str]] = field(default_factory=list)
    namespace_selector: LabelSelector | None = None
    match_label_keys: Nullable[list[str]] = field(default_factory=list)
    mismatch_label_keys: Nullable[list[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.namespaces is None:
            self.namespaces = []
        if self.match_label_keys is None:
            self.match_label_keys = []
        if self.mismatch_label_keys is None:
            self.mismatch_label_keys = []


class PreferredPods(KubeStruct):
    weight: int = 0
    pod_affinity_term: Nullable[PodAffinityTerm] = field(default_factory=PodAffinityTerm)

    def __post_init__(self) -> None:
        if self.pod_affinity_term is None:
            self.pod_affinity_term = PodAffinityTerm()


class PodAffinity(KubeStruct):
    required: Nullable[list[PodAffinityTerm]] = field(
        default_factory=list, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: Nullable[list[PreferredPods]] = field(
        default_factory=list, name="preferredDuringSchedulingIgnoredDuringExecution"
    )

    def __post_init__(self) -> None:
        if self.required is None:
            self.required = []
        if self.preferred is None:
            self.preferred = []


class Affinity(KubeStruct):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(KubeStruct):
    max_skew: int = 1
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: Nullable[list[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.match_label_keys is None:
            self.match_label_keys = []
