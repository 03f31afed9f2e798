"""HyperNodes: groups of nodes that a network joins, as Volcano's tools draw them."""

from __future__ import annotations

from msgspec import field

from posse.objects.affinities import LabelSelector
from posse.objects.meta import Key, KubeStruct, Nullable, ObjectMeta


class ExactMatch(KubeStruct):
    name: str = ""


class RegexMatch(KubeStruct):
    pattern: str = ""


class MemberSelector(KubeStruct):
    exact_match: ExactMatch | None = None
    regex_match: RegexMatch | None = None
    label_match: LabelSelector | None = None


class HyperNodeMember(KubeStruct):
    type: str = ""
    selector: Nullable[MemberSelector] = field(default_factory=MemberSelector)

    def __post_init__(self) -> None:
        if self.selector is None:
            self.selector = MemberSelector()


class HyperNodeSpec(KubeStruct):
    tier: int = 0
    tier_name: str = ""
    members: Nullable[list[HyperNodeMember]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.members is None:
            self.members = []


class HyperNode(KubeStruct):
    """topology.volcano.sh/v1alpha1, cluster-scoped."""

    metadata: Nullable[ObjectMeta] = field(default_factory=ObjectMeta)
    spec: Nullable[HyperNodeSpec] = field(default_factory=HyperNodeSpec)

    def __post_init__(self) -> None:
        if self.metadata is None:
            self.metadata = ObjectMeta()
        if self.spec is None:
            self.spec = HyperNodeSpec()

    @property
    def key(self) -> Key:
        return ("", self.metadata.name)
