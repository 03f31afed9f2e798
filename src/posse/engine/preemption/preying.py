"""The cheapest victims with whose room a gang fits whole, none of them superfluous.

First among the members that lesser gangs of its queue can spare, then among those that its queue
may take from others, then among its own queue's lesser gangs, then among all: whoever ended first
in a queue below its due would come back and take it from others all the same. At last those that
would leave others poorer than its queue, where that is promised so much.

What may be ended is a list of which any beginning may be ended together, by cost: budgets and what
queues must give are counted along it (`Rights`). The shortest beginning that makes room is found by
bisection; of it only who sits where the gang would sit is taken, and without whom these may not be;
then each is reprieved, the dearest first, if the gang fits without. One unit that suffices alone is
taken instead where that costs less. Where the list does not hold all, and makes no room, others are
tried in other orders. Everything is tried in tentative statements; nothing is left of it in the
view.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from posse.engine.columns import Ints
from posse.engine.fit.seating import Seating
from posse.engine.gangs import Gang, Member
from posse.engine.placement.placing import Placement
from posse.engine.policy import Policy
from posse.engine.preemption.clearing import clearings, largest
from posse.engine.preemption.quarry import Quarry
from posse.engine.preemption.rights import Rights
from posse.engine.preemption.trials import Pile, Trials
from posse.engine.preemption.victims import Unit, spare_members, spares, together
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
        self._width = view.columns.width
        self._asked = self._all_it_asks()
        self._rights = Rights(view, gang)
        self._trials = Trials(view, gang, policy, need)
        # There was anybody to look among.
        self.searched = False

    def plan(self) -> Plan | None:
        """Whom to end, and where the gang would sit then; nobody, where enough is going anyway."""
        quarry, queue = self._quarry, self._facts.queue
        within = [
            unit
            for unit in quarry.within(queue, self._facts.priority)
            if self._rights.may_inherit(unit, self._asked)
        ]
        if any(quarry.most(self._gang, s) < n for s, n in self._trials.least.items()):
            return None
        if not self._gang.need:
            # What it is due is for its minimum.
            return self._search(within)
        givers = quarry.across(queue)
        if not givers:
            return self._search(within)
        self._rights.claim(self._all_it_lacks())
        across = self._rights.owed(givers, bool(within))
        both = within + across if within and across else []
        return (
            self._search([unit for unit in within if spares(unit)])
            or self._search(across)
            or self._insist(across)
            or self._search(within)
            or self._search(both)
            or self._insist(both)
        )

    def _insist(self, units: list[Unit]) -> Plan | None:
        """Who is below what it is said to deserve need not wait for a borrower that ends whole or
        not at all, though that one has less than it then.

        It may insist only on what leaves it within its due of everything it asks for, and not only
        of what it lacks: what it ended others for, nobody could take back from it then.
        """
        tree, rights, queue = self._view.tree, self._rights, self._facts.queue
        if not any(tree.may_insist(queue, unit.queue) for unit in units):
            return None
        lacking = rights.taking
        rights.claim(self._asked, insists=True)
        found = self._search(units)
        rights.claim(lacking)
        return found

    def _all_it_asks(self) -> Ints:
        asked = np.zeros(self._width, np.int64)
        muster = self._gang.muster
        for member in muster.waiting[: self._need]:
            asked[member.seating.columns] += member.seating.amounts
        for absent in muster.absent:
            asked[absent.seating.columns] += absent.count * absent.seating.amounts
        return asked

    def _all_it_lacks(self) -> Ints:
        """What it asks of the resources that there are too few seats for, or too little of its
        quota; of all, where it is only all of them together.

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
        lacks |= self._asked > self._view.tree.room(self._facts.queue)
        lacks &= self._asked > 0
        return np.where(lacks, self._asked, 0) if lacks.any() else self._asked

    # -- which of them -----------------------------------------------------------------------

    def _search(self, units: list[Unit]) -> Plan | None:
        allowed = self._rights.along(units)
        if not allowed:
            return None
        self.searched = True
        with self._trials.begun():
            nobody = self._trials.fits()
            if nobody is not None:
                return [], nobody
            found = self._least_of(allowed)
            if found is None and self._rights.exhausted:
                found = self._least_elsewhere(units)
            return found

    def _least_elsewhere(self, units: list[Unit]) -> Plan | None:
        """Where not all may end, and those that cost least do not make room, others may."""
        if self._try_first(Pile(units), len(units)) is None:
            return None
        for pieces in self._other_orders(units):
            allowed = self._rights.in_pieces(pieces)
            found = self._least_of(allowed) if allowed else None
            if found is not None:
                return found
        return None

    def _other_orders(self, units: list[Unit]) -> Iterator[list[list[Unit]]]:
        """First whoever makes a whole seat somewhere; or much room at once; or enough alone."""
        muster = self._gang.muster
        shapes = dict.fromkeys(member.seating for member in muster.waiting[: self._need])
        shapes |= dict.fromkeys(absent.seating for absent in muster.absent)
        yield clearings(self._view, shapes, units)
        by_size = largest(units, self._all_it_lacks())
        yield by_size
        short = self._asked - self._trials.free()
        enough = (p for p in by_size if (p[-1].amounts(self._width) >= short).all())
        yield from ([piece] for piece in islice(enough, _SINGLES))

    def _least_of(self, units: list[Unit]) -> Plan | None:
        """The shortest beginning of these that makes room, without whoever is superfluous in it;
        or one of them that makes room alone."""
        trials = self._trials
        length, placement = self._shortest(Pile(units))
        if placement is None:
            return None
        first = units[:length]
        chosen = self._rights.complete(_on_rows(first, _rows(placement)), first)
        with self._view.tentatively():
            trials.end(chosen)
            narrowed = trials.fits()
            if narrowed is None:
                trials.restore(chosen)
                chosen = first
                trials.end(chosen)
            else:
                placement = narrowed
            chosen, placement = self._reprieve(chosen, placement)
            in_vain = self._in_vain(chosen)
            trials.rejoin(chosen)
        if in_vain:
            return None
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
        self._rights.begin(chosen)
        kept = {id(unit): unit for unit in chosen}
        whole = {id(unit.gang) for unit in chosen if unit.whole}
        for unit in sorted(chosen, key=lambda unit: unit.cost, reverse=True):
            if not unit.whole and id(unit.gang) in whole:
                continue
            if not self._rights.may_spare(unit):
                continue
            self._trials.restore([unit])
            without = self._trials.fits()
            if without is None:
                self._trials.end([unit])
                continue
            placement = without
            self._rights.let_off(unit)
            del kept[id(unit)]
            if unit.whole:
                whole.discard(id(unit.gang))
        return list(kept.values()), placement

    def _in_vain(self, chosen: list[Unit]) -> bool:
        """Whether one of them, all ended, makes no room, and ends only so that its queue has less
        than its due meanwhile: it would come back at once, and its queue have more."""
        for unit in chosen:
            if self._rights.may_spare(unit):
                continue
            self._trials.restore([unit])
            fits = self._trials.fits() is not None
            self._trials.end([unit])
            if fits:
                return True
        return False

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
            without = self._try(fewer) if self._rights.allow(fewer) else None
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
            if not self._rights.allow([alone]):
                continue
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
    return {row for _, row in placement.seats()} | {hold.row for hold in placement.holds}


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
