"""When the room of those who run comes free, as far as they said, and where a gang would fit then.

A gang ends when the time it said it needs is over. One that is still there later is expected to
need twice as long, and so on. When one that said nothing ends, nobody can know; nor when a pod does
that is not ours, but has devices. Others that are not ours belong to the nodes, and stay.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from posse.engine.columns import Ints, Rows
from posse.engine.fit.seating import Seating, Seats
from posse.engine.gangs import NOWHERE, Gang
from posse.engine.placement.placing import Placement, seat
from posse.engine.policy import Policy
from posse.engine.reservation.shadows import Shadow
from posse.engine.view import View

NEVER = float("inf")
Floats = NDArray[np.float64]


def end_of(gang: Gang, now: float) -> float:
    """When it is expected to end; NEVER where nobody can know."""
    facts = gang.facts
    if facts is None or facts.runs_for is None:
        return NEVER
    began = facts.began
    if began is None:
        began = now if gang.seated_since is None else gang.seated_since
    span = max(1.0, facts.runs_for)
    while began + span <= now:
        span *= 2
    return began + span


@dataclass(frozen=True, slots=True)
class _Group:
    """Members of one shape: where each sits, and when it goes, the earliest first."""

    seating: Seating
    rows: Rows
    ends: Floats

    def before(self, date: float) -> Rows:
        return self.rows[: int(np.searchsorted(self.ends, date, side="right"))]


class Timeline:
    """Who sits where until when, as things are now."""

    def __init__(self, view: View, now: float) -> None:
        self._view = view
        self._ends = [(gang, end_of(gang, now)) for gang in view.running()]
        neighbours = view.neighbours
        # How many jobs there are of which nobody can know; whoever is only to come is none.
        foreign = len(neighbours.foreign) - sum(
            u in neighbours.foreign for u in neighbours.nominees
        )
        self.unknown = foreign + sum(1 for _, end in self._ends if end == NEVER)
        going = any(not member.stuck for member in view.departing.values())
        dates = {end: None for _, end in self._ends if end < NEVER} | ({now: None} if going else {})
        self.dates = sorted(dates)

    def unknown_in(self, queue: str) -> int:
        """How many of them are in this queue, or in one that is part of it."""
        below: dict[str, bool] = {}
        number = 0
        for gang, end in self._ends:
            if end < NEVER or gang.facts is None:
                continue
            name = gang.facts.queue
            if name not in below:
                lineage = self._view.tree.queue(name).lineage()
                below[name] = any(each.name == queue for each in lineage)
            number += below[name]
        return number

    @cached_property
    def _groups(self) -> list[_Group]:
        """Without those who go already."""
        seats: dict[Seating, tuple[list[int], list[float]]] = {}
        members = [(member, end) for gang, end in self._ends for member in gang.members.values()]
        members += [(member, NEVER) for member in self._view.neighbours.foreign.values()]
        for member, end in members:
            if member.row == NOWHERE or (member.going and not member.stuck):
                continue
            rows, ends = seats.setdefault(member.seating, ([], []))
            rows.append(member.row)
            ends.append(NEVER if member.stuck else end)
        groups: list[_Group] = []
        for seating, (rows, ends) in seats.items():
            dates = np.array(ends)
            order = np.argsort(dates, kind="stable")
            groups.append(_Group(seating, np.array(rows, np.intp)[order], dates[order]))
        return groups

    @cached_property
    def _charges(self) -> dict[str, tuple[Floats, Ints]]:
        """By queue: when so much of it is given back."""
        width = self._view.columns.width
        given: dict[str, list[tuple[float, Ints]]] = {}
        binding: dict[str, bool] = {}
        for gang, end in self._ends:
            if gang.facts is None:
                continue
            queue = gang.facts.queue
            if queue not in binding:
                binding[queue] = self._view.tree.binds(queue)
            if binding[queue]:
                amounts = np.zeros(width, np.int64)
                for member in gang.muster.seated:
                    amounts[member.seating.columns] += member.seating.amounts
                given.setdefault(queue, []).append((end, amounts))
        charges: dict[str, tuple[Floats, Ints]] = {}
        for queue, each in given.items():
            each.sort(key=lambda charge: charge[0])
            totals: Ints = np.cumsum([amounts for _, amounts in each], axis=0)
            charges[queue] = (np.array([end for end, _ in each]), totals)
        return charges

    def pass_until(self, date: float) -> None:
        """Inside a tentative statement: all who end by then are gone."""
        self._view.columns.see_off()
        for group in self._groups:
            self._see_off(group.seating, group.before(date))
        self._give_back(date)

    def drain(self, rows: NDArray[np.bool_]) -> None:
        """Inside a tentative statement: all who sit on these rows are gone."""
        self._view.columns.see_off(rows)
        for group in self._groups:
            self._see_off(group.seating, group.rows[rows[group.rows]])
        self._give_back(NEVER)

    def _see_off(self, seating: Seating, rows: Rows) -> None:
        if len(rows):
            self._view.take(seating, Seats.at(rows), -1)

    def given_back(self, queue: str, date: float) -> Ints:
        """How much of the queue's own use has ended by then."""
        given: Ints = np.zeros(self._view.columns.width, np.int64)
        if queue in self._charges:
            ends, totals = self._charges[queue]
            number = int(np.searchsorted(ends, date, side="right"))
            if number:
                given[: totals.shape[1]] = totals[number - 1]
        return given

    def cheapest(self) -> Rows:
        """All rows, those first from which the fewest must go, and the soonest."""
        size = len(self._view.columns.touched)
        staying = np.zeros(size, np.int64)
        pods = np.zeros(size, np.int64)
        last = np.zeros(size)
        for group in self._groups:
            pods += np.bincount(group.rows, minlength=size)
            forever = group.ends == NEVER
            staying += np.bincount(group.rows[forever], minlength=size)
            np.maximum.at(last, group.rows[~forever], group.ends[~forever])
        rows = self._view.columns.by_name()
        order = np.lexsort((np.arange(len(rows)), pods[rows], last[rows], staying[rows]))
        cheapest: Rows = rows[order]
        return cheapest

    def _give_back(self, date: float) -> None:
        for queue in self._charges:
            self._view.tree.charge(queue, -self.given_back(queue, date))


@dataclass(frozen=True, slots=True)
class Prospect:
    """Where and when a gang would start."""

    date: float
    seats: tuple[tuple[str, int], ...]
    # What it would take, row by row; and how much of that is in use until then.
    room: Shadow
    awaited: Ints


def earliest(view: View, gang: Gang, policy: Policy, timeline: Timeline) -> Prospect | None:
    """When enough others have ended, and where the gang sits then; None: nobody can know."""
    dates = timeline.dates
    if not dates:
        return None
    found = _at(view, gang, policy, timeline, dates[-1])
    low, high = -1, len(dates) - 1
    while found is not None and high - low > 1:
        middle = (low + high) // 2
        sooner = _at(view, gang, policy, timeline, dates[middle])
        if sooner is None:
            low = middle
        else:
            found, high = sooner, middle
    return None if found is None else _prospect(view, timeline, found, dates[high])


def _at(
    view: View, gang: Gang, policy: Policy, timeline: Timeline, date: float
) -> Placement | None:
    with view.tentatively():
        timeline.pass_until(date)
        return fits(view, gang, policy)


def fits(view: View, gang: Gang, policy: Policy) -> Placement | None:
    """Inside a tentative statement: where the gang would sit, as things are in it."""
    with view.tentatively():
        outcome = seat(view, gang, policy, need=gang.need, afresh=True)
    return outcome if isinstance(outcome, Placement) else None


def _prospect(view: View, timeline: Timeline, placement: Placement, date: float) -> Prospect:
    room = room_of(view, placement)
    before: Ints = view.columns.free[room.rows]
    with view.tentatively():
        timeline.pass_until(date)
        awaited: Ints = view.columns.free[room.rows] - before
    return Prospect(date, seats_of(placement), room, awaited)


def seats_of(placement: Placement) -> tuple[tuple[str, int], ...]:
    """(role, row) of every seat."""
    seats = [(member.facts.role, row) for member, row in placement.seats()]
    return tuple(seats + [(hold.role, hold.row) for hold in placement.holds])


def room_of(view: View, placement: Placement) -> Shadow:
    """What it takes, row by row."""
    taken: dict[int, Ints] = {}
    sitting = [(member.seating, row) for member, row in placement.seats()]
    sitting += [(hold.seating, hold.row) for hold in placement.holds]
    for seating, row in sitting:
        amounts = taken.get(row)
        if amounts is None:
            amounts = taken[row] = np.zeros(view.columns.width, np.int64)
        amounts[seating.columns] += seating.amounts
    rows = np.array(sorted(taken), np.intp)
    return Shadow(rows, np.array([taken[row] for row in rows.tolist()], np.int64))
