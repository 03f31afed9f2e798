"""Disruption budgets."""

from __future__ import annotations

from posse.objects.raw import Raw, mapping, number
from posse.objects.validating.conditions import check_conditions
from posse.objects.validating.placement import check_selector
from posse.objects.validating.report import Report
from posse.objects.validating.shares import check_at_most_all, check_count_or_percent

_POLICIES = ("AlwaysAllow", "IfHealthyBudget")
_COUNTED = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")


def check_budget(report: Report, budget: Raw) -> None:
    spec = mapping(budget, "spec")
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    policy = spec.get("unhealthyPodEvictionPolicy")
    if least is not None and most is not None:
        shown = {
            "MinAvailable": least,
            "Selector": spec.get("selector"),
            "MaxUnavailable": most,
            "UnhealthyPodEvictionPolicy": policy,
        }
        report.invalid("spec", shown, "minAvailable and maxUnavailable cannot be both set")
    for name, value in (("minAvailable", least), ("maxUnavailable", most)):
        check_count_or_percent(report, value, f"spec.{name}")
        check_at_most_all(report, value, f"spec.{name}")
    check_selector(report, mapping(spec, "selector"), "spec.selector")
    if policy is not None and policy not in _POLICIES:
        report.unsupported("spec.unhealthyPodEvictionPolicy", policy, _POLICIES)


def check_budget_status(report: Report, new: Raw, old: Raw) -> None:
    status = mapping(new, "status")
    check_conditions(report, status, "status.conditions")
    for name in _COUNTED:
        report.not_negative(f"status.{name}", number(status, name))
