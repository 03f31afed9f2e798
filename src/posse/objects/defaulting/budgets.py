"""Disruption budgets."""

from __future__ import annotations

from posse.objects.defaulting.filling import part
from posse.objects.raw import Raw

_COUNTED = ("currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods")


def default_budget(budget: Raw) -> None:
    part(budget, "spec")
    status = part(budget, "status")
    for name in _COUNTED:
        if status.get(name) is None:
            status[name] = 0
