"""Who may be ended by whom, and how much room that would make at most."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from posse.engine.fit.seating import Seating
from posse.engine.gangs import Gang
from posse.engine.placement.demands import Demand
from posse.engine.policy import Policy
from posse.engine.preemption.trials import Pile, Trials
from posse.engine.preemption.victims import Unit, fresh_until, spared, units_of
from posse.engine.view import View

# The gangs of a queue that have seats, by priority.
Levels = dict[int, dict[str, Gang]]


class Quarry:
    """Worked out once for all that look for victims in one cycle."""

    def __init__(self, view: View, policy: Policy, now: float) -> None:
        self._view = view
        self._policy = policy
        self._now = now
        self._pieces: dict[str, list[Unit]] = {}
        self._within: dict[tuple[str, int], list[Unit]] = {}
        self._across: dict[str, dict[str, list[Unit]]] = {}
        self._giving: list[tuple[str, Levels]] | None = None
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
                if unit.priority < priority
            ]
        return self._within[key]

    def across(self, queue: str) -> dict[str, list[Unit]]:
        """Units of the queues that this one may take from at all."""
        if not self._policy.reclaim:
            return {}
        if queue not in self._across:
            tree = self._view.tree
            found: dict[str, list[Unit]] = {}
            for giver, levels in self._givers():
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

    def _givers(self) -> list[tuple[str, Levels]]:
        """Queues that anybody could take from: that borrow or, where some count more than others,
        all of them."""
        if self._giving is None:
            tree, seated = self._view.tree, self._view.hunting.seated
            every = tree.ranked()
            self._giving = [
                (name, levels)
                for name, levels in sorted(seated.items())
                if every or tree.borrows(name)
            ]
        return self._giving

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
            trials = Trials(self._view, gang, self._policy)
            with trials.begun():
                pile = Pile(units)
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

    def moved(self) -> None:
        """Somebody started: who may take from whom is found anew, and what that comes to."""
        self._giving = None
        for known in (self._across, self._any, self._most):
            known.clear()

    def changed(self) -> None:
        """Somebody was ended, or is there to be: all of it is worked out anew."""
        self._pieces.clear()
        self._within.clear()
        self.moved()

    def _units_of(self, gang: Gang) -> list[Unit]:
        units = self._pieces.get(gang.key)
        if units is None:
            units = []
            if gang.facts is not None and not spared(gang, self._policy):
                fresh = fresh_until(gang, self._policy, self._now)
                if fresh is None:
                    units = units_of(gang, self._now, self._view.budgets)
                elif fresh < float("inf"):
                    self._view.hunting.fresh[gang.key] = fresh
            self._pieces[gang.key] = units
        return units
