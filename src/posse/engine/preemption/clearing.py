"""What has to end on a node for one more seat there.

Where not all may be ended together, those that cost least one by one may sit on many nodes, and
leave a whole seat on none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from posse.engine.columns import Ints
from posse.engine.fit.seating import Seating
from posse.engine.preemption.victims import Unit, together
from posse.engine.view import View


def clearings(view: View, seatings: Iterable[Seating], units: Sequence[Unit]) -> list[list[Unit]]:
    """Units that make a seat of one of these shapes by ending together, the cheapest first; with
    a gang come those of its members that are units of their own."""
    fellows = _fellows(units)
    there: dict[int, list[Unit]] = {}
    for unit in sorted(units, key=lambda unit: unit.cost):
        for row in dict.fromkeys([m.row for m in unit.members] + [h.row for h in unit.holds]):
            there.setdefault(row, []).append(unit)
    rows = np.array(sorted(there), np.intp)
    found: list[list[Unit]] = []
    for seating in seatings:
        rooms = view.columns.free_at(rows, seating.columns)
        may = seating.eligibility.at(rows)
        for row, room in zip(rows[may].tolist(), rooms[may], strict=True):
            for ended in _on(row, room, seating, there[row]):
                piece = {id(each): each for unit in ended for each in _with(unit, fellows)}
                found.append(list(piece.values()))
    return sorted(found, key=together)


def largest(units: Sequence[Unit], asked: Ints) -> list[list[Unit]]:
    """One by one, the one that has most of what is asked for first, however much it costs."""
    fellows = _fellows(units)
    wants = asked > 0

    def size(unit: Unit) -> float:
        return float((unit.amounts(len(asked))[wants] / asked[wants]).min(initial=np.inf))

    ordered = sorted(units, key=lambda unit: (-size(unit), unit.cost))
    return [_with(unit, fellows) for unit in ordered]


def _fellows(units: Sequence[Unit]) -> dict[int, list[Unit]]:
    """By gang, its members that are units of their own."""
    fellows: dict[int, list[Unit]] = {}
    for unit in sorted(units, key=lambda unit: unit.cost):
        if not unit.whole:
            fellows.setdefault(id(unit.gang), []).append(unit)
    return fellows


def _with(unit: Unit, fellows: dict[int, list[Unit]]) -> list[Unit]:
    return [*fellows.get(id(unit.gang), ()), unit] if unit.whole else [unit]


def _on(row: int, room: Ints, seating: Seating, units: Sequence[Unit]) -> Iterable[list[Unit]]:
    """Of the units on this row, seat by seat those that make it, none of them superfluous."""
    left: list[tuple[Unit, Ints]] = []
    gone: set[str] = set()
    for unit in units:
        frees = np.zeros_like(room)
        for member in unit.members:
            if member.row == row and member.facts.uid not in gone:
                gone.add(member.facts.uid)
                frees += _of(member.seating, seating)
        for hold in unit.holds:
            if hold.row == row:
                frees += _of(hold.seating, seating)
        room = room + frees
        left.append((unit, frees))
        if (room < seating.amounts).any():
            continue
        for each in reversed(list(left)):
            if (room - each[1] >= seating.amounts).all():
                left.remove(each)
                room = room - each[1]
        yield [each for each, _ in left]
        room = room - seating.amounts
        left = []


def _of(takes: Seating, seating: Seating) -> Ints:
    """What the one takes of what the other asks for."""
    amounts: Ints = np.zeros(len(seating.columns), np.int64)
    at = dict(zip(seating.columns.tolist(), range(len(amounts)), strict=True))
    for column, amount in takes.pairs:
        if column in at:
            amounts[at[column]] = amount
    return amounts
