"""`posse.dev/keeps`: seats that nobody else is given, as they are written on a PodGroup.

It is read strictly: a scheduler that guessed at it could give a seat to two.
"""

from __future__ import annotations

import math

import msgspec

from posse.engine.facts import Keeps, Purpose
from posse.objects import keys
from posse.objects.times import parse_time, rfc3339
from posse.scheduler.reading.quarantine import Unreadable

MOST_SEATS = 100_000
_FIELD = f"metadata.annotations[{keys.KEEPS}]"


class _Written(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    purpose: Purpose
    seats: dict[str, list[str]]
    until: str | None = None


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
    return Keeps(written.purpose, tuple(sorted(seats)), until)


def write_keeps(keeps: Keeps) -> str:
    """The annotation's value: the same seats always give the same text."""
    seats: dict[str, list[str]] = {}
    for role, node in sorted(keeps.seats):
        seats.setdefault(role, []).append(node)
    until = None if keeps.until is None else rfc3339(math.ceil(keeps.until))
    return msgspec.json.encode(_Written(keeps.purpose, seats, until)).decode()
