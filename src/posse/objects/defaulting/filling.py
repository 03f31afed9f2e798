"""Putting values where an object has none."""

from __future__ import annotations

from typing import Any

from posse.objects.quantity import QuantityError, canonical_milli
from posse.objects.raw import Raw


def fill(obj: Raw, name: str, value: Any) -> None:
    """Set a member that is absent, null or empty text: to Go these are one."""
    if obj.get(name) is None or obj[name] == "":
        obj[name] = value


def fill_zero(obj: Raw, name: str, value: int) -> None:
    """Set a number that is absent or zero, where zero stands for "not given"."""
    if not obj.get(name):
        obj[name] = value


def part(obj: Raw, name: str) -> Raw:
    """The mapping under `name`, made where there is none.

    What is there but is no mapping is left alone, for the schema to refuse.
    """
    if obj.get(name) is None:
        obj[name] = {}
    value = obj[name]
    return value if isinstance(value, dict) else {}


def tidy_quantities(amounts: Any) -> None:
    """Rewrite a resource list as the server would; what is no quantity stays, to be refused."""
    if not isinstance(amounts, dict):
        return
    for resource, amount in amounts.items():
        try:
            amounts[resource] = canonical_milli(amount)
        except QuantityError:
            continue
