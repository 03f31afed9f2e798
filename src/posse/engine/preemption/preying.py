"""The cheapest victims with whose room a gang fits whole, none of them superfluous.

All that the gang may end, sorted by cost, is a list of which any part may be ended together:
budgets and what queues must give are counted along it. The shortest beginning that makes room is
found by bisection; of it only who sits where the gang would sit is taken; then each is reprieved,
the dearest first, if the gang fits without. One unit that suffices alone is taken instead where
that costs less. Everything is tried in tentative statements; nothing is left of it in the view.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import numpy as np

from posse.engine.columns import Ints
from posse.engine.fit.seating import Seating
from posse.engine.gangs import Gang, Member
from posse.engine.placement.placing import Placement
from posse.engine.policy import Policy
from posse.engine.preemption.quarry import Quarry
from posse.engine.preemption.trials import Pile, Trials, by_queue
from posse.engine.preemption.victims import Unit, spare_members, together
from posse.engine.view import View

# Single units that are tried by themselves, of so many that are looked at.
_SINGLES = 24
_LOOKED_AT = 2_000

Plan = tuple[list[Unit], Placement]


class Prey:
    """What one gang may end, and the search among it."""

    def __init__(self, view: View, gang: Gang, policy: Policy, quarry: Quarry, need: int) -> None:
        assert gang.facts is not None
        self._need = need
        self._view = view
        self._gang = gang
        self._facts = gang.facts
        self._policy = policy
        self._quarry = quarry
        self._width = view.columns.used.shape[1]
        self._asked = self._taken = self._all_it_asks()
        self._trials = Trials(view, gang, policy, need)
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
        if not self._gang.need:
            # What it is due is for its minimum.
            return None
        givers = quarry.across(queue)
        if givers:
            self._taken = self._all_it_lacks()
        across = [
            unit
            for giver, units in givers.items()
            if self._view.tree.outranks(queue, giver) == 1
            or self._view.tree.may_take(queue, self._taken, giver)
            for unit in units
        ]
        return self._search(self._allowed(within + across)) if across else None

    # -- who may be ended --------------------------------------------------------------------

    def _all_it_asks(self) -> Ints:
        asked = np.zeros(self._width, np.int64)
        muster = self._gang.muster
        for member in muster.waiting[: self._need]:
            asked[member.seating.columns] += member.seating.amounts
        for absent in muster.absent:
            asked[absent.seating.columns] += absent.count * absent.seating.amounts
        return asked

    def _all_it_lacks(self) -> Ints:
        """What it asks of the resources that there are too few seats for; of all, where it is only
        all of them together.

        The rest lies about, and whoever is beyond its due of that takes it from nobody.
        """
        counts: dict[Seating, int] = {}
        for member in self._gang.muster.waiting[: self._need]:
            counts[member.seating] = counts.get(member.seating, 0) + 1
        for absent in self._gang.muster.absent:
            counts[absent.seating] = counts.get(absent.seating, 0) + absent.count
        wanted = np.zeros(self._width, np.int64)
        for seating, count in counts.items():
            wanted[seating.columns] += count
        lacks = np.zeros(self._width, np.bool_)
        for seating in counts:
            lacks[seating.columns] |= seating.by_resource() < wanted[seating.columns]
        return np.where(lacks, self._asked, 0) if lacks.any() else self._asked

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
            for queue, gone in by_queue(view, view.departing.values()).items():
                view.tree.charge(queue, -gone)
            for unit in units:
                key = unit.gang.key
                if unit.whole and key in unspared:
                    continue
                lost = None
                if unit.queue != taker:
                    lost = unit.amounts(self._width, unit.adds)
                    if not view.tree.may_give(unit.queue, lost, taker, self._taken):
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
            pile = Pile(units)
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

    def _shortest(self, pile: Pile) -> tuple[int, Placement | None]:
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

    def _try_first(self, pile: Pile, length: int) -> Placement | None:
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
            cost = (*unit.cost[:2], len(part), False, *unit.cost[4:])
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
