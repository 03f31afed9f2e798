"""Quantities of resources, in base units."""

from __future__ import annotations

from collections.abc import Mapping

from posse.engine.facts import Requests, requests_of
from posse.objects.meta import Amount
from posse.objects.quantity import QuantityError, base_units
from posse.scheduler.reading.quarantine import Unreadable


def read_units(resource: str, amount: Amount, field: str) -> int:
    """Unreadable where that is no quantity, or negative."""
    try:
        units = base_units(resource, amount, field)
    except QuantityError as error:
        raise Unreadable(error.field, f"{error.value!r} {error.why}") from error
    if units < 0:
        raise Unreadable(field, f"{amount!r} is negative")
    return units


def read_amounts(written: Mapping[str, Amount], field: str) -> Requests:
    """What one pod asks for."""
    return requests_of(
        {
            resource: read_units(resource, each, f"{field}[{resource}]")
            for resource, each in written.items()
        }
    )
