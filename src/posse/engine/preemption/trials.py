"""Who would fit if others were gone: tried in the view, and taken back again."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain

import numpy as np

from posse.engine.columns import Ints
from posse.engine.fit.seating import Seating, Seats
from posse.engine.gangs import Gang, Member
from posse.engine.placement.placing import Placement, seat
from posse.engine.policy import Policy
from posse.engine.preemption.victims import Unit
from posse.engine.reservation.reserving import charge_kept_back
from posse.engine.view import View


class Pile:
    """Units in a row, of which any beginning is taken out at once."""

    def __init__(self, units: list[Unit]) -> None:
        self.units = units
        numbers: dict[Seating, int] = {}
        rows: list[int] = []
        which: list[int] = []
        ends = [0]
        for unit in units:
            for member in unit.adds:
                rows.append(member.row)
                which.append(numbers.setdefault(member.seating, len(numbers)))
            ends.append(len(rows))
        self._seatings = list(numbers)
        self._rows = np.array(rows, np.intp)
        self._which = np.array(which, np.intp)
        self._ends = ends
        # The places of those for whom something is held.
        self.holders = [at for at, unit in enumerate(units) if unit.holds]

    def seats(self, length: int) -> Iterator[tuple[Seating, Seats]]:
        """Where the members of the first units sit, by shape."""
        end = self._ends[length]
        rows, which = self._rows[:end], self._which[:end]
        for number, seating in enumerate(self._seatings):
            here = rows[which == number]
            if len(here):
                yield seating, Seats.at(here)


class Trials:
    """Takes units out of the view and puts them back, and tries whether the gang fits."""

    def __init__(self, view: View, gang: Gang, policy: Policy, need: int | None = None) -> None:
        assert gang.facts is not None
        self._view = view
        self._gang = gang
        self._need = gang.need if need is None else need
        self._policy = policy
        self._width = view.columns.width
        self._limited = view.tree.binds(gang.facts.queue)
        # Whether who sits where matters beyond the room it takes.
        self._social = any(view.neighbours.concern(role.members) for role in gang.muster.roles())
        # Seats without which it surely does not fit: where it has no choice, and none of its own.
        self.least: dict[Seating, int] = {}
        if self._need == len(gang.muster.waiting) and not gang.holds:
            for member in gang.muster.waiting:
                self.least[member.seating] = self.least.get(member.seating, 0) + 1

    @contextmanager
    def begun(self) -> Iterator[None]:
        """What is on its way out is gone already, for the length of the block."""
        columns, departing = self._view.columns, list(self._view.departing.values())
        moves = columns.moves
        with self._view.tentatively():
            charge_kept_back(self._view)
            columns.see_off()
            self._part(departing, -1)
            try:
                yield
            finally:
                self._part(departing, 1)
                if columns.moves != moves:
                    self._nobody_moved(moves)

    def _nobody_moved(self, since: int) -> None:
        """All sit where they sat before: that is no news to those who mind their company."""
        for shortfall in self._view.shortfalls.each():
            if shortfall.moves is not None and shortfall.moves >= since:
                shortfall.moves = self._view.columns.moves

    def fits(self) -> Placement | None:
        if any(seating.total() < number for seating, number in self.least.items()):
            return None
        with self._view.tentatively():
            outcome = seat(self._view, self._gang, self._policy, need=self._need, afresh=True)
            return outcome if isinstance(outcome, Placement) else None

    def free(self) -> Ints:
        total: Ints = np.maximum(self._view.columns.free, 0).sum(axis=0)
        for hold in self._gang.holds:
            total[hold.seating.columns] += hold.seating.amounts
        return total

    def end(self, units: Sequence[Unit]) -> None:
        self._move(units, -1)

    def restore(self, units: Sequence[Unit]) -> None:
        self._move(units, 1)

    def end_first(self, pile: Pile, length: int) -> None:
        units = pile.units[:length]
        for seating, seats in pile.seats(length):
            self._view.take(seating, seats, -1)
        end = bisect_left(pile.holders, length)
        self._settle(units, [pile.units[at] for at in pile.holders[:end]], -1)

    def rejoin(self, units: Sequence[Unit]) -> None:
        """Put back what does not go back by itself at the end of a statement."""
        if self._social:
            for member in _ended(units):
                self._view.neighbours.rejoin(member)

    def _move(self, units: Sequence[Unit], sign: int) -> None:
        rows: dict[Seating, list[int]] = {}
        for member in _ended(units):
            rows.setdefault(member.seating, []).append(member.row)
        for seating, at in rows.items():
            self._view.take(seating, Seats.at(at), sign)
        self._settle(units, [unit for unit in units if unit.holds], sign)

    def _settle(self, units: Sequence[Unit], holders: Sequence[Unit], sign: int) -> None:
        for hold in chain.from_iterable(unit.holds for unit in holders):
            self._view.hold(hold.seating, Seats.one(hold.row), sign, hold.use)
        if self._limited or self._social:
            self._part(_ended(units), sign)
            for unit in holders:
                self._charge(unit.queue, unit.amounts(self._width, []), sign)

    def _part(self, members: Sequence[Member], sign: int) -> None:
        """These are not there (or are again), for queues and for those who mind their company."""
        view = self._view
        if self._limited:
            for queue, amounts in view.by_queue(members).items():
                self._charge(queue, amounts, sign)
        if self._social:
            for member in members:
                (view.neighbours.rejoin if sign > 0 else view.neighbours.part)(member)

    def _charge(self, queue: str, amounts: Ints, sign: int) -> None:
        if self._limited and amounts.any():
            self._view.tree.charge(queue, sign * amounts)


def _ended(units: Sequence[Unit]) -> list[Member]:
    """Everybody who ends with these units, once."""
    members: dict[str, Member] = {}
    for unit in units:
        members.update((member.facts.uid, member) for member in unit.adds)
    return list(members.values())
