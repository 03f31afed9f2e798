"""Conditions in the form that newer kinds share: each says its reason and since when it holds."""

from __future__ import annotations

import re

from posse.objects import names
from posse.objects.raw import Raw, mappings, number, text
from posse.objects.validating.report import Report

_STATUSES = ("False", "True", "Unknown")
_REASON = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_IS_REASON = re.compile(_REASON)
_REASON_WORDS = (
    "a condition reason must start with alphabetic character, optionally followed by a string of"
    " alphanumeric characters or '_,:', and must end with an alphanumeric character or '_'"
)
_REASON_EXAMPLES = ("my_name", "MY_NAME", "MyName", "ReasonA,ReasonB", "ReasonA:ReasonB")
_LONGEST_REASON = 1024
_LONGEST_MESSAGE = 32 * 1024


def check_conditions(report: Report, status: Raw, path: str) -> None:
    seen: dict[str, None] = {}
    for index, condition in enumerate(mappings(status, "conditions")):
        field, kind = f"{path}[{index}]", text(condition, "type")
        if kind in seen:
            report.duplicate(f"{field}.type", kind)
        seen[kind] = None
        _check_condition(report, condition, field)


def _check_condition(report: Report, condition: Raw, field: str) -> None:
    kind, status = text(condition, "type"), text(condition, "status")
    report.invalid(f"{field}.type", kind, *names.qualified_name_problems(kind))
    if status not in _STATUSES:
        report.unsupported(f"{field}.status", status, _STATUSES)
    observed = number(condition, "observedGeneration") or 0
    if observed < 0:
        detail = "must be greater than or equal to zero"
        report.invalid(f"{field}.observedGeneration", observed, detail)
    if not condition.get("lastTransitionTime"):
        report.required(f"{field}.lastTransitionTime")
    reason = text(condition, "reason")
    if not reason:
        report.required(f"{field}.reason")
    else:
        if not _IS_REASON.fullmatch(reason):
            wrong = names.by_regex(_REASON_WORDS, _REASON, *_REASON_EXAMPLES)
            report.invalid(f"{field}.reason", reason, wrong)
        if len(reason.encode()) > _LONGEST_REASON:
            report.too_long(f"{field}.reason", _LONGEST_REASON)
    if len(text(condition, "message").encode("utf-8", "surrogatepass")) > _LONGEST_MESSAGE:
        report.too_long(f"{field}.message", _LONGEST_MESSAGE)
