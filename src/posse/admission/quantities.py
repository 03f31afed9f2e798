"""Amounts of resources in groups and queues."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from posse.objects.errors import INVALID, FieldError
from posse.objects.jobs.wrongs import invalid
from posse.objects.meta import Amount
from posse.objects.quantity import QuantityError, milli_units


def amounts(
    written: Mapping[str, Amount], field: str
) -> tuple[dict[str, int], tuple[FieldError, ...]]:
    """In thousandths, and what is wrong with those that are left out."""
    found: dict[str, int] = {}
    wrongs: list[FieldError] = []
    for resource, value in written.items():
        place = f"{field}[{resource}]"
        try:
            amount = milli_units(value, place)
        except QuantityError as error:
            wrongs.append(FieldError(place, INVALID, f'Invalid value: "{value}": {error.why}'))
            continue
        if amount < 0:
            wrongs.append(invalid(place, str(value), "must be greater than or equal to 0"))
        else:
            found[resource] = amount
    return found, tuple(wrongs)


def exceeding(less: Mapping[str, int], more: Mapping[str, int]) -> Iterator[str]:
    """The resources of which the one says more than the other allows; unnamed is unlimited."""
    return (name for name, amount in less.items() if name in more and amount > more[name])
