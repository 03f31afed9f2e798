"""Numbers of pods that may be written as a part of all of them: 3, or "25%"."""

from __future__ import annotations

import re
from typing import Any

from posse.objects.validating.report import Report

_PERCENT = re.compile("[0-9]+%")


def check_count_or_percent(report: Report, value: Any, field: str) -> None:
    if isinstance(value, str):
        if not _PERCENT.fullmatch(value):
            report.invalid(
                field,
                value,
                "a valid percent string must be a numeric string followed by an ending '%' (e.g. "
                "'1%',  or '93%', regex used for validation is '[0-9]+%')",
            )
    elif isinstance(value, int):
        report.not_negative(field, value)


def check_at_most_all(report: Report, value: Any, field: str) -> None:
    if isinstance(value, str) and amount(value) > 100:
        report.invalid(field, value, "must not be greater than 100%")


def amount(value: Any) -> int:
    """The number that is written, of pods or of hundredths."""
    if isinstance(value, str):
        return int(value[:-1]) if _PERCENT.fullmatch(value) else 0
    return value if isinstance(value, int) else 0
