"""PodDisruptionBudgets: how many of whose pods may be ended now."""

from __future__ import annotations

from posse.engine.facts import BudgetFacts
from posse.objects.budgets import PodDisruptionBudget
from posse.scheduler.reading.affinities import selector


def read_budget(budget: PodDisruptionBudget) -> BudgetFacts:
    """An empty selector is all pods of the namespace, none at all is no pod.

    One of which nobody has reckoned yet what it allows, allows nothing.
    """
    return BudgetFacts(
        namespace=budget.metadata.namespace,
        name=budget.metadata.name,
        selector=selector(budget.spec.selector),
        allowed=max(0, budget.status.disruptions_allowed or 0),
    )
