"""The cheapest victims with whose room a gang fits whole, none of them superfluous.

All that the gang may end, sorted by cost, is a list of which any part may be ended together:
budgets and what queues must give are counted along it. The shortest beginning that makes room is
found by bisection; of it only who sits where the gang would sit is taken; then each is reprieved,
the dearest first, if the gang fits without. One unit that suffices alone is taken instead where
that costs less. Everything is tried in tentative statements; nothing is left of it in the view.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice

import numpy as np

from posse.engine.columns import Ints, Rows
from posse.engine.fit.seating import Seating, Seats
from posse.engine.gangs import Gang, Member
from posse.engine.placement.demands import Demand
from posse.engine.placement.placing import Placement, seat
from posse.engine.policy import Policy
from posse.engine.preemption.victims import (
    Unit,
    fresh_until,
    spare_members,
    spared,
    together,
    units_of,
)
from posse.engine.view import View

# Single units that are tried by themselves, of so many that are looked at.
_SINGLES = 24
_LOOKED_AT = 2_000

Plan = tuple[list[Unit], Placement]


class Quarry:
    """Who may be ended by whom, worked out once for all that look for victims in one cycle."""

    def __init__(self, view: View, policy: Policy, now: float) -> None:
        self._view = view
        self._policy = policy
        self._now = now
        self._pieces: dict[str, list[Unit]] = {}
        self._within: dict[tuple[str, int], list[Unit]] = {}
        self._across: dict[str, dict[str, list[Unit]]] = {}
        self._any: dict[tuple[str, int], bool] = {}
        self._most: dict[tuple[str, int], dict[Seating, int]] = {}

    def within(self, queue: str, priority: int) -> list[Unit]:
        """Units of the queue that are of lower priority."""
        if not self._policy.preemption:
            return []
        key = (queue, priority)
        if key not in self._within:
            lower = self._view.hunting.seated.get(queue, {})
            self._within[key] = [
                unit
                for level in sorted(lower)
                if level < priority
                for gang in lower[level].values()
                for unit in self._units_of(gang)
            ]
        return self._within[key]

    def across(self, queue: str) -> dict[str, list[Unit]]:
        """Units of the queues that this one may take from at all."""
        if not self._policy.reclaim:
            return {}
        if queue not in self._across:
            tree = self._view.tree
            found: dict[str, list[Unit]] = {}
            for giver, levels in sorted(self._view.hunting.seated.items()):
                standing = None if giver == queue else tree.outranks(queue, giver)
                if standing is None or standing < 0:
                    continue
                if not tree.may_give(giver, np.minimum(tree.allocated(giver), 1), queue):
                    continue
                units = [
                    unit
                    for level in sorted(levels)
                    for gang in levels[level].values()
                    for unit in self._units_of(gang)
                ]
                if units:
                    found[giver] = units
            self._across[queue] = found
        return self._across[queue]

    def has_any_for(self, gang: Gang) -> bool:
        assert gang.facts is not None
        queue, priority = gang.facts.queue, gang.facts.priority
        found = self._any.get((queue, priority))
        if found is None:
            found = bool(self.within(queue, priority) or self.across(queue))
            self._any[queue, priority] = found
        return found

    def most(self, gang: Gang, seating: Seating) -> int:
        """The seats there would be if all ended whom the gang may end."""
        assert gang.facts is not None
        queue, priority = gang.facts.queue, gang.facts.priority
        known = self._most.setdefault((queue, priority), {})
        if seating not in known:
            wanted = {seating: None, **{d.seating: None for d in self._demands(queue, priority)}}
            units = [*self.within(queue, priority)]
            for theirs in self.across(queue).values():
                units += theirs
            trials = _Trials(self._view, gang, self._policy)
            with trials.begun():
                pile = _Pile(units)
                trials.end_first(pile, len(units))
                for each in wanted:
                    known[each] = each.total()
                trials.rejoin(units)
        return known[seating]

    def _demands(self, queue: str, priority: int) -> Iterator[Demand]:
        """Of all that wait in the same place: they will ask next."""
        for shortfall in self._view.shortfalls.each():
            first = shortfall.first()
            facts = None if first is None else first.facts
            if facts is not None and (facts.queue, facts.priority) == (queue, priority):
                yield from shortfall.demands

    def changed(self) -> None:
        """Somebody was ended: all of it is worked out anew."""
        for known in (self._pieces, self._within, self._across, self._any, self._most):
            known.clear()

    def _units_of(self, gang: Gang) -> list[Unit]:
        units = self._pieces.get(gang.key)
        if units is None:
            units = []
            if gang.facts is not None and not spared(gang, self._policy):
                fresh = fresh_until(gang, self._policy, self._now)
                if fresh is None:
                    units = units_of(gang, self._now)
                elif fresh < float("inf"):
                    self._view.hunting.fresh[gang.key] = fresh
            self._pieces[gang.key] = units
        return units


class Prey:
    """What one gang may end, and the search among it."""

    def __init__(self, view: View, gang: Gang, policy: Policy, quarry: Quarry) -> None:
        assert gang.facts is not None
        self._view = view
        self._gang = gang
        self._facts = gang.facts
        self._policy = policy
        self._quarry = quarry
        self._width = view.columns.used.shape[1]
        self._asked = self._all_it_asks()
        self._trials = _Trials(view, gang, policy)
        # How often there was anybody to look among.
        self.searched = 0

    def plan(self) -> Plan | None:
        """Whom to end, and where the gang would sit then; nobody, where enough is going anyway."""
        quarry, queue = self._quarry, self._facts.queue
        within = quarry.within(queue, self._facts.priority)
        if any(quarry.most(self._gang, s) < n for s, n in self._trials.least.items()):
            return None
        if within and (found := self._search(self._allowed(within))):
            return found
        across = [
            unit
            for giver, units in quarry.across(queue).items()
            if self._view.tree.outranks(queue, giver) == 1
            or self._view.tree.may_take(queue, self._asked, giver)
            for unit in units
        ]
        return self._search(self._allowed(within + across)) if across else None

    # -- who may be ended --------------------------------------------------------------------

    def _all_it_asks(self) -> Ints:
        asked = np.zeros(self._width, np.int64)
        muster = self._gang.muster
        for member in muster.waiting[: self._gang.need]:
            asked[member.seating.columns] += member.seating.amounts
        for absent in muster.absent:
            asked[absent.seating.columns] += absent.count * absent.seating.amounts
        return asked

    def _allowed(self, units: list[Unit]) -> list[Unit]:
        """In the order of their cost, those that may be ended together with all before them."""
        view, taker = self._view, self._facts.queue
        units = sorted(units, key=lambda unit: unit.cost)
        foreign = any(unit.queue != taker for unit in units)
        if not foreign and not view.budgets:
            return units
        ledger = view.budgets.ledger(
            member for member in view.departing.values() if not member.facts.deleting
        )
        allowed: list[Unit] = []
        unspared: set[str] = set()
        with view.tentatively():
            # What is on its way out is nobody's any more.
            for queue, gone in _by_queue(view, view.departing.values()).items():
                view.tree.charge(queue, -gone)
            for unit in units:
                key = unit.gang.key
                if unit.whole and key in unspared:
                    continue
                lost = None
                if unit.queue != taker:
                    lost = unit.amounts(self._width, unit.adds)
                    if not view.tree.may_give(unit.queue, lost, taker, self._asked):
                        unspared.add(key)
                        continue
                if not ledger.spend(unit.adds):
                    unspared.add(key)
                    continue
                if lost is not None:
                    view.tree.charge(unit.queue, -lost)
                allowed.append(unit)
        return allowed

    # -- which of them -----------------------------------------------------------------------

    def _search(self, units: list[Unit]) -> Plan | None:
        if not units:
            return None
        self.searched += 1
        trials = self._trials
        with trials.begun():
            nobody = trials.fits()
            if nobody is not None:
                return [], nobody
            pile = _Pile(units)
            length, placement = self._shortest(pile)
            if placement is None:
                return None
            chosen = _on_rows(units[:length], _rows(placement))
            with self._view.tentatively():
                trials.end(chosen)
                narrowed = trials.fits()
                if narrowed is None:
                    trials.restore(chosen)
                    chosen = units[:length]
                    trials.end(chosen)
                else:
                    placement = narrowed
                chosen, placement = self._reprieve(chosen, placement)
                trials.rejoin(chosen)
            chosen, placement = self._trim(chosen, placement)
            alone = self._single(units, chosen)
            return (chosen, placement) if alone is None else self._trim(*alone)

    def _shortest(self, pile: _Pile) -> tuple[int, Placement | None]:
        """The length of the shortest beginning that makes room, and where the gang sits then."""
        low, high = 0, len(pile.units)
        found = self._try_first(pile, high)
        if found is None:
            return 0, None
        while high - low > 1:
            middle = (low + high) // 2
            placement = self._try_first(pile, middle)
            if placement is None:
                low = middle
            else:
                high, found = middle, placement
        return high, found

    def _try_first(self, pile: _Pile, length: int) -> Placement | None:
        with self._view.tentatively():
            self._trials.end_first(pile, length)
            placement = self._trials.fits()
            self._trials.rejoin(pile.units[:length])
            return placement

    def _reprieve(self, chosen: list[Unit], placement: Placement) -> Plan:
        """Let each off without whom the gang fits too. The units are ended when this begins."""
        kept = {id(unit): unit for unit in chosen}
        whole = {id(unit.gang) for unit in chosen if unit.whole}
        for unit in reversed(chosen):
            if not unit.whole and id(unit.gang) in whole:
                continue
            self._trials.restore([unit])
            without = self._trials.fits()
            if without is None:
                self._trials.end([unit])
                continue
            placement = without
            del kept[id(unit)]
            if unit.whole:
                whole.discard(id(unit.gang))
        return list(kept.values()), placement

    def _trim(self, chosen: list[Unit], placement: Placement) -> Plan:
        """Of a gang that can spare whoever is really in the way, only those end."""
        for unit in chosen:
            if not unit.whole or not spare_members(unit.gang):
                continue
            part = self._in_the_way(unit, chosen)
            if not part or len(spare_members(unit.gang, part)) < len(part):
                continue
            cost = (unit.cost[0], unit.cost[1], len(part), *unit.cost[3:])
            fewer = [each for each in chosen if each.gang is not unit.gang]
            fewer.append(Unit(unit.gang, part, False, cost, part))
            without = self._try(fewer)
            if without is not None:
                return self._trim(fewer, without)
        return chosen, placement

    def _in_the_way(self, unit: Unit, chosen: list[Unit]) -> list[Member]:
        """The members of a unit without whose end the gang does not fit, the youngest of them."""
        left: list[Member] = []
        with self._view.tentatively():
            self._trials.end(chosen)
            for member in sorted(unit.members, key=lambda member: member.order):
                one = Unit(unit.gang, [member], False, unit.cost, [member])
                self._trials.restore([one])
                if self._trials.fits() is None:
                    self._trials.end([one])
                    left.append(member)
            ended = [each for each in chosen if each.gang is not unit.gang]
            self._trials.rejoin([*ended, Unit(unit.gang, left, False, unit.cost, left)])
        return left

    def _single(self, units: list[Unit], chosen: list[Unit]) -> Plan | None:
        """One unit that makes room by itself, and costs less than the chosen together."""
        if len(chosen) < 2:
            return None
        limit = together(chosen)
        short = self._asked - self._trials.free()
        tried = 0
        for unit in islice(units, _LOOKED_AT):
            if together([unit]) >= limit or tried == _SINGLES:
                break
            if (unit.amounts(self._width) < short).any():
                continue
            tried += 1
            alone = Unit(unit.gang, unit.members, unit.whole, unit.cost, unit.members)
            placement = self._try([alone])
            if placement is not None:
                return [alone], placement
        return None

    def _try(self, units: list[Unit]) -> Placement | None:
        with self._view.tentatively():
            self._trials.end(units)
            placement = self._trials.fits()
            self._trials.rejoin(units)
            return placement


class _Pile:
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
            for seats in _seats(rows[which == number]):
                yield seating, seats


class _Trials:
    """Takes units out of the view and puts them back, and tries whether the gang fits."""

    def __init__(self, view: View, gang: Gang, policy: Policy) -> None:
        assert gang.facts is not None
        self._view = view
        self._gang = gang
        self._policy = policy
        self._width = view.columns.used.shape[1]
        self._limited = view.tree.binds(gang.facts.queue)
        # Whether who sits where matters beyond the room it takes.
        self._social = any(view.neighbours.concern(role.members) for role in gang.muster.roles())
        # Seats without which it surely does not fit: where it has no choice, and none of its own.
        self.least: dict[Seating, int] = {}
        if gang.need == len(gang.muster.waiting) and not gang.holds:
            for member in gang.muster.waiting:
                self.least[member.seating] = self.least.get(member.seating, 0) + 1

    @contextmanager
    def begun(self) -> Iterator[None]:
        """What is on its way out is gone already, for the length of the block."""
        columns, departing = self._view.columns, list(self._view.departing.values())
        moves = columns.moves
        with self._view.tentatively():
            rows = np.flatnonzero(columns.leaving[: len(columns.names)].any(axis=1))
            if len(rows):
                everything = np.arange(len(columns.column), dtype=np.intp)
                gone = -columns.leaving[rows][:, everything]
                columns.shift(columns.used, rows, everything, gone)
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
            outcome = seat(self._view, self._gang, self._policy, need=self._gang.need, afresh=True)
            return outcome if isinstance(outcome, Placement) else None

    def free(self) -> Ints:
        columns = self._view.columns
        used = columns.used + columns.held
        total: Ints = np.maximum(columns.allocatable - used, 0).sum(axis=0)
        for hold in self._gang.holds:
            total[hold.seating.columns] += hold.seating.amounts
        return total

    def end(self, units: Sequence[Unit]) -> None:
        self._move(units, -1)

    def restore(self, units: Sequence[Unit]) -> None:
        self._move(units, 1)

    def end_first(self, pile: _Pile, length: int) -> None:
        units = pile.units[:length]
        for seating, seats in pile.seats(length):
            self._view.take(seating, seats, -1)
        end = bisect_left(pile.holders, length)
        self._settle(units, [pile.units[at] for at in pile.holders[:end]], -1)

    def rejoin(self, units: Sequence[Unit]) -> None:
        """Put back what does not go back by itself at the end of a statement."""
        if self._social:
            for member in _ended(units):
                self._view.neighbours.seat(member)

    def _move(self, units: Sequence[Unit], sign: int) -> None:
        rows: dict[Seating, list[int]] = {}
        for member in _ended(units):
            rows.setdefault(member.seating, []).append(member.row)
        for seating, at in rows.items():
            for seats in _seats(np.array(at, np.intp)):
                self._view.take(seating, seats, sign)
        self._settle(units, [unit for unit in units if unit.holds], sign)

    def _settle(self, units: Sequence[Unit], holders: Sequence[Unit], sign: int) -> None:
        for hold in chain.from_iterable(unit.holds for unit in holders):
            self._view.hold(hold.seating, Seats.one(hold.row), sign)
        if self._limited or self._social:
            self._part(_ended(units), sign)
            for unit in holders:
                self._charge(unit.queue, unit.amounts(self._width, []), sign)

    def _part(self, members: Sequence[Member], sign: int) -> None:
        """These are not there (or are again), for queues and for those who mind their company."""
        view = self._view
        if self._limited:
            for queue, amounts in _by_queue(view, members).items():
                self._charge(queue, amounts, sign)
        if self._social:
            for member in members:
                (view.neighbours.seat if sign > 0 else view.neighbours.unseat)(member)

    def _charge(self, queue: str, amounts: Ints, sign: int) -> None:
        if self._limited and amounts.any():
            self._view.tree.charge(queue, sign * amounts)


def _by_queue(view: View, members: Iterable[Member]) -> dict[str, Ints]:
    """What these take of each queue."""
    taken: dict[str, Ints] = {}
    for member in members:
        gang = view.gangs.get(member.facts.gang or "")
        if gang is not None and gang.facts is not None:
            queue = gang.facts.queue
            if queue not in taken:
                taken[queue] = np.zeros(view.columns.used.shape[1], np.int64)
            taken[queue][member.seating.columns] += member.seating.amounts
    return taken


def _ended(units: Sequence[Unit]) -> list[Member]:
    """Everybody who ends with these units, once."""
    members: dict[str, Member] = {}
    for unit in units:
        members.update((member.facts.uid, member) for member in unit.adds)
    return list(members.values())


def _seats(rows: Rows) -> Iterator[Seats]:
    if len(rows):
        counts = np.bincount(rows)
        at = np.flatnonzero(counts)
        yield Seats(at, counts[at].astype(np.int64))


def _rows(placement: Placement) -> set[int]:
    return {row for _, row in placement.seats} | {hold.row for hold in placement.holds}


def _on_rows(units: Sequence[Unit], rows: set[int]) -> list[Unit]:
    """Those who sit, or hold, on these rows; of a whole gang also its spare members."""
    touching = [
        unit
        for unit in units
        if any(member.row in rows for member in unit.members)
        or any(hold.row in rows for hold in unit.holds)
    ]
    whole = {id(unit.gang) for unit in touching if unit.whole}
    there = {id(unit) for unit in touching}
    return [unit for unit in units if id(unit) in there or id(unit.gang) in whole]
