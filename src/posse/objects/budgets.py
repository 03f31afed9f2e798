"""PodDisruptionBudgets, as far as evictions are concerned."""

from __future__ import annotations

from msgspec import field

from posse.objects.affinities import LabelSelector
from posse.objects.meta import Key, KubeStruct, Nullable, ObjectMeta


class BudgetSpec(KubeStruct):
    selector: LabelSelector | None = None


class BudgetStatus(KubeStruct):
    disruptions_allowed: int | None = None


class PodDisruptionBudget(KubeStruct):
    metadata: Nullable[ObjectMeta] = field(default_factory=ObjectMeta)
    spec: Nullable[BudgetSpec] = field(default_factory=BudgetSpec)
    status: Nullable[BudgetStatus] = field(default_factory=BudgetStatus)

    def __post_init__(self) -> None:
        if self.metadata is None:
            self.metadata = ObjectMeta()
        if self.spec is None:
            self.spec = BudgetSpec()
        if self.status is None:
            self.status = BudgetStatus()

    @property
    def key(self) -> Key:
        return (self.metadata.namespace, self.metadata.name)
