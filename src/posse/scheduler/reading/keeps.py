"""`posse.dev/keeps`: seats that nobody else is given, as they are written on a PodGroup.

It is read strictly: a scheduler that guessed at it could give a seat to two. `asks` says what the
pods of a role that nobody is left of ask for: of where they may go, only what a seat elsewhere than
on its own node must have.
"""

from __future__ import annotations

import math

import msgspec

from posse.engine.facts import PODS, Keeps, Purpose, Shape
from posse.objects import keys
from posse.objects.pods import Toleration
from posse.objects.quantity import format_base_units
from posse.objects.times import parse_time, rfc3339
from posse.scheduler.reading.amounts import read_amounts
from posse.scheduler.reading.pods import constraints
from posse.scheduler.reading.quarantine import Unreadable

MOST_SEATS = 100_000
# A date is written anew with a policy's hold on top of it, and years have four digits.
_LATEST = parse_time("9000-01-01T00:00:00Z")
_FIELD = f"metadata.annotations[{keys.KEEPS}]"


class _Asked(
    msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, rename="camel", frozen=True
):
    """As much of a pod as its seat depends on."""

    requests: dict[str, str]
    node_selector: dict[str, str] = {}
    tolerations: list[Toleration] = []


class _Written(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    purpose: Purpose
    seats: dict[str, list[str]]
    until: str | None = None
    asks: dict[str, _Asked] = {}


def read_keeps(text: str | None) -> Keeps | None:
    if text is None:
        return None
    try:
        written = msgspec.json.decode(text, type=_Written)
    except (ValueError, RecursionError) as error:
        raise Unreadable(_FIELD, str(error)) from error
    seats = [(role, node) for role, nodes in written.seats.items() for node in nodes]
    if any(not node for _, node in seats):
        raise Unreadable(f"{_FIELD}.seats", "keeps a seat on a node without a name")
    if len(seats) > MOST_SEATS:
        raise Unreadable(f"{_FIELD}.seats", f"{len(seats)} are more than {MOST_SEATS}")
    until = None
    if written.until is not None:
        try:
            until = parse_time(written.until)
        except ValueError as error:
            raise Unreadable(f"{_FIELD}.until", str(error)) from error
        if not 0 <= until <= _LATEST:
            raise Unreadable(f"{_FIELD}.until", f"{written.until} is not from 1970 to 9000")
    asks = tuple((role, _shape_of(role, asked)) for role, asked in sorted(written.asks.items()))
    return Keeps(written.purpose, tuple(sorted(seats)), until, asks)


def write_keeps(keeps: Keeps) -> str:
    """The annotation's value: the same seats always give the same text."""
    seats: dict[str, list[str]] = {}
    for role, node in sorted(keeps.seats):
        seats.setdefault(role, []).append(node)
    until = None if keeps.until is None else rfc3339(math.ceil(keeps.until))
    asks = {role: _asked(shape) for role, shape in sorted(keeps.asks)}
    return msgspec.json.encode(_Written(keeps.purpose, seats, until, asks)).decode()


def _asked(shape: Shape) -> _Asked:
    where = shape.constraints
    return _Asked(
        {name: format_base_units(name, amount) for name, amount in shape.requests if name != PODS},
        dict(where.node_selector),
        [Toleration(t.key, t.operator, t.value, t.effect) for t in where.tolerations],
    )


def _shape_of(role: str, asked: _Asked) -> Shape:
    requests = read_amounts(asked.requests, f"{_FIELD}.asks[{role}].requests")
    return Shape(requests, constraints(asked.node_selector, asked.tolerations))
