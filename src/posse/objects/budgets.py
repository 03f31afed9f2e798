"""PodDisruptionBudgets, as far as evictions are concerned, and the one condition they have."""

from __future__ import annotations

from typing import Any

from msgspec import field

from posse.objects.affinities import LabelSelector
from posse.objects.meta import Key, KubeStruct, Nullable, ObjectMeta
from posse.objects.raw import Raw, mappings, number

DISRUPTION_ALLOWED = "DisruptionAllowed"


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


def condition_of(status: Raw) -> Raw:
    """Whether pods may be ended now, as the budget's status says it; empty where it does not."""
    found = (c for c in mappings(status, "conditions") if c.get("type") == DISRUPTION_ALLOWED)
    return next(found, {})


def allowing(status: Raw, now: str, failure: str = "") -> list[Raw]:
    """The status's conditions once they agree with its counts; `failure` is why there are none.

    The condition keeps the time since when it says what it says.
    """
    if failure:
        verdict, reason = "False", "SyncFailed"
    elif (number(status, "disruptionsAllowed") or 0) > 0:
        verdict, reason = "True", "SufficientPods"
    else:
        verdict, reason = "False", "InsufficientPods"
    known = condition_of(status)
    condition: dict[str, Any] = {
        "type": DISRUPTION_ALLOWED,
        "status": verdict,
        "lastTransitionTime": known.get("lastTransitionTime") or now,
        "reason": reason,
        "message": failure,
    }
    if known.get("status") != verdict:
        condition["lastTransitionTime"] = now
    if observed := number(status, "observedGeneration"):
        condition["observedGeneration"] = observed
    others = list(mappings(status, "conditions"))
    if not known:
        return [*others, condition]
    return [condition if one is known else one for one in others]
