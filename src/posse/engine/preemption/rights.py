"""Whom a gang may end together: as far as queues must give and budgets allow.

Its queue takes back what is due to it, and no more: so that nobody is left poorer than it or, where
that cannot be, and it is said what it deserves, from whoever has more than its due. That is counted
as it will be, once those are gone that end in the queue itself, or beside it inside of a queue
above: so some may be ended only together with others, behind which they stand. Nothing is charged
to the queues meanwhile.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import numpy as np

from posse.engine.columns import Ints
from posse.engine.gangs import Gang
from posse.engine.preemption.victims import Unit
from posse.engine.view import View


class Rights:
    """To be asked outside of any statement first: what queues use then is what they use."""

    def __init__(self, view: View, gang: Gang) -> None:
        assert gang.facts is not None
        self.view = view
        self.tree = view.tree
        self.queue = gang.facts.queue
        self._holds = gang.holds
        self.width = view.columns.width
        self.taking: Ints = np.zeros(self.width, np.int64)
        # What the chosen take, queue by queue.
        self._lost: dict[str, Ints] = {}
        # Whether anybody could not be ended beside those that could.
        self.exhausted = False
        # Others may be left poorer.
        self.insists = False

    @cached_property
    def used(self) -> Ints:
        """By queue: what is on its way out is nobody's any more, and what is kept for the gang is
        part of what it asks for."""
        used = self.tree.use()
        for queue, gone in self.view.going().items():
            self.lose(used, queue, gone)
        for hold in self._holds:
            self.lose(used, self.queue, hold.seating.vector())
        return used

    def claim(self, amounts: Ints, *, insists: bool = False) -> None:
        """What the gang's queue is to have more, once the gang has its seats."""
        self.taking, self.insists = amounts, insists

    def may_inherit(self, unit: Unit, asked: Ints) -> bool:
        """Whether the gang, which asks for so much in all, may have the room that others ended for
        in another's name: only if it could have ended them itself."""
        others = unit.gang.taken_from
        if unit.members or not others:
            return True
        used = self.used.copy()
        self.lose(used, unit.queue, unit.amounts(self.width))
        tree, queue = self.tree, self.queue
        return all(
            tree.outranks(queue, other) == 1 or tree.may_take(queue, asked, other, used)
            for other in others
        )

    def owed(self, givers: Mapping[str, list[Unit]], own: bool) -> list[Unit]:
        """The units of those that its queue could take from at all: if nobody were left of them,
        nor of its `own`."""
        used = self.used.copy()
        for queue in [*givers, self.queue] if own else givers:
            self.lose(used, queue, self.used[self.tree.queue(queue).row])
        return [unit for giver in givers if self.is_due(giver, used) for unit in givers[giver]]

    def along(self, units: list[Unit]) -> list[Unit]:
        """Those that may be ended, each together with all before it: by cost, but for those that
        may only because others end, which stand behind these."""
        units = sorted(units, key=lambda unit: unit.cost)
        self.exhausted = False
        if not self.view.budgets and all(unit.queue == self.queue for unit in units):
            return units
        return self.in_pieces([unit] for unit in units)

    def in_pieces(self, pieces: Iterable[Sequence[Unit]]) -> list[Unit]:
        """The same in another order than that of cost, of each piece all or none.

        Who was refused is asked again at once when its queue has come to owe something, before
        those behind it, and once more in the end.
        """
        left = deque(pieces)
        walk = _Walk(self, left)
        refused: list[Sequence[Unit]] = []
        eased = False
        while left:
            piece = left.popleft()
            if not walk.end(piece):
                refused.append(piece)
            elif refused and any(self.tree.akin(self.queue, unit.queue) for unit in piece):
                eased = True
                if walk.owed_more():
                    left.extendleft(reversed(refused))
                    refused = []
            if not left and refused and eased:
                left.extend(refused)
                refused, eased = [], False
        self.exhausted |= bool(refused)
        return list(walk.ended.values())

    def complete(self, chosen: list[Unit], units: list[Unit]) -> list[Unit]:
        """The chosen, and those of the units without whose end they may not be ended."""
        there = {id(unit) for unit in chosen}
        self._count(chosen)
        for unit in units:
            if self._bears(self._lost):
                break
            if id(unit) not in there and self.tree.akin(self.queue, unit.queue):
                there.add(id(unit))
                self._lose_more(unit, 1)
        return [unit for unit in units if id(unit) in there]

    def begin(self, chosen: Iterable[Unit]) -> None:
        """From here on `let_off` counts with these."""
        self._count(chosen)

    def may_spare(self, unit: Unit) -> bool:
        """Whether those that are left may be ended without this one."""
        if len(self._lost) == 1 or not self.tree.akin(self.queue, unit.queue):
            return True
        self._lose_more(unit, -1)
        without = self._bears(self._lost)
        self._lose_more(unit, 1)
        return without

    def let_off(self, unit: Unit) -> None:
        self._lose_more(unit, -1)

    def allow(self, units: Iterable[Unit]) -> bool:
        """Whether these may be ended, of whom each may after those that it stands behind."""
        self._count(units)
        return self._bears(self._lost)

    def _count(self, units: Iterable[Unit]) -> None:
        self._lost = {}
        for unit in units:
            self._lose_more(unit, 1)

    def _lose_more(self, unit: Unit, sign: int) -> None:
        if unit.queue not in self._lost:
            self._lost[unit.queue] = np.zeros(self.width, np.int64)
        self._lost[unit.queue] += sign * unit.amounts(self.width, unit.adds)

    def _bears(self, lost: Mapping[str, Ints]) -> bool:
        if all(queue == self.queue for queue in lost):
            return True
        return self.tree.may_take_all(self.queue, self.taking, lost, self.used, self.insists)

    def is_due(self, giver: str, used: Ints) -> bool:
        """Whether what the gang lacks is its queue's to take from the other's."""
        tree, queue = self.tree, self.queue
        return tree.outranks(queue, giver) == 1 or tree.may_take(queue, self.taking, giver, used)

    def lose(self, used: Ints, queue: str, amounts: Ints) -> None:
        used[self.tree.queue(queue).chain] -= amounts


class _Walk:
    """Along pieces, one after the other: who is ended, and what is left to end for."""

    def __init__(self, rights: Rights, pieces: Iterable[Sequence[Unit]]) -> None:
        self._rights = rights
        self._used = rights.used.copy()
        view = rights.view
        self._ledger = view.budgets.ledger(
            member for member in view.departing.values() if not member.facts.deleting
        )
        # By gang, its members that are units of their own: it does not end without them.
        self._spare: dict[int, dict[int, None]] = {}
        for piece in pieces:
            for unit in piece:
                if not unit.whole:
                    self._spare.setdefault(id(unit.gang), {})[id(unit)] = None
        # From whom the gang's queue may take, as far as known; and from whom it could not.
        self._due: dict[str, bool] = {}
        self._denied: set[str] = set()
        self.ended: dict[int, Unit] = {}

    def end(self, piece: Sequence[Unit]) -> bool:
        """Whether all of it may be ended; if so it is."""
        more = [unit for unit in piece if id(unit) not in self.ended]
        if len(more) == 1:
            return self._end(more[0])
        used, spent = self._used.copy(), dict(self._ledger.spent)
        for at, unit in enumerate(more):
            if not self._end(unit):
                self._used, self._ledger.spent = used, spent
                self._due.clear()
                for other in more[:at]:
                    del self.ended[id(other)]
                return False
        return True

    def owed_more(self) -> bool:
        """Whether somebody may be taken from now that could not before."""
        owe = [giver for giver in self._denied if self._may_take(giver)]
        self._denied.difference_update(owe)
        return bool(owe)

    def _end(self, unit: Unit) -> bool:
        rights = self._rights
        spare = self._spare.get(id(unit.gang), ()) if unit.whole else ()
        lost = unit.amounts(rights.width, unit.adds)
        giver, taker = unit.queue, rights.queue
        may = all(each in self.ended for each in spare) and (
            giver == taker
            or (
                self._may_take(giver)
                and rights.tree.may_give(
                    giver, lost, taker, rights.taking, self._used, rights.insists
                )
            )
        )
        if not may or not self._ledger.spend(unit.adds):
            return False
        rights.lose(self._used, giver, lost)
        self.ended[id(unit)] = unit
        if rights.tree.akin(taker, giver):
            self._due.clear()
        return True

    def _may_take(self, giver: str) -> bool:
        if giver not in self._due:
            self._due[giver] = self._rights.is_due(giver, self._used)
        if not self._due[giver]:
            self._denied.add(giver)
        return self._due[giver]
