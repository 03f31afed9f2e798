"""The last resort for a gang whose pods care about their company: look at every placement.

Up to a bound. Rows that nothing tells apart, neither room nor company, are looked at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from posse.engine.columns import Rows
from posse.engine.fit.company import Company
from posse.engine.fit.seating import Seats
from posse.engine.placement import packing
from posse.engine.placement.demands import Demand
from posse.engine.placement.searching import Found
from posse.engine.policy import Policy
from posse.engine.view import View

_MOST_PODS = 40


class _OutOfSteps(Exception):
    pass


def scout(
    view: View, demands: list[Demand], need: int, policy: Policy
) -> tuple[Found | None, bool]:
    """Seats for every demand, counted in the columns; or None, and whether that is proven."""
    pods = need + sum(demand.wanted for demand in demands if demand.announced)
    if pods > _MOST_PODS or not policy.search_steps:
        return None, False
    steps = policy.search_steps
    for order in packing.orders(view, demands):
        hunt = _Hunt(view, Company(view), order, steps)
        with view.tentatively() as attempt:
            try:
                if hunt.demand(0, need):
                    attempt.keep()
                    return hunt.found, True
            except _OutOfSteps:
                return None, False
        steps = hunt.steps
    return None, True


@dataclass
class _Hunt:
    view: View
    company: Company
    demands: list[Demand]
    steps: int
    found: Found = field(default_factory=dict)

    def __post_init__(self) -> None:
        # Every tally is there from the start: what tells two rows apart must not grow later.
        for demand in self.demands:
            self.found[demand] = []
            for member in demand.members:
                for _ in self.company.rules(member):
                    pass
        columns = {at for demand in self.demands for at in demand.seating.columns.tolist()}
        self.columns: Rows = np.array(sorted(columns), np.intp)
        self.later = [
            sum(d.most for d in self.demands[at + 1 :] if not d.announced)
            for at in range(len(self.demands))
        ]

    def demand(self, at: int, need: int) -> bool:
        """Seat the demands from `at` on; `need` waiting members are still to be seated."""
        if at == len(self.demands):
            return need == 0
        demand = self.demands[at]
        if demand.announced:
            return self._pods(at, demand.wanted, need)
        least = max(demand.least, need - self.later[at])
        return any(
            self._pods(at, number, need - number)
            for number in range(min(demand.most, need), least - 1, -1)
        )

    def _pods(self, at: int, left: int, need: int) -> bool:
        if left == 0:
            return self.demand(at + 1, need)
        demand = self.demands[at]
        member = demand.members[len(self.found[demand])] if demand.members else None
        rows = demand.rows(self.view.columns)
        rows = rows[demand.seating.seats()[rows] > 0]
        if member is not None:
            rows = rows[self.company.left(member)[rows]]
        tried: set[object] = set()
        for row in rows.tolist():
            kind = self._kind(row)
            if kind in tried:
                continue
            tried.add(kind)
            if self.steps == 0:
                raise _OutOfSteps
            self.steps -= 1
            mark = self.company.mark()
            with self.view.tentatively() as attempt:
                packing.count(self.view, demand, Seats.one(row))
                self.found[demand].append(row)
                if member is not None:
                    self.company.seat(member, row)
                if self._pods(at, left - 1, need):
                    attempt.keep()
                    return True
            self.found[demand].pop()
            self.company.back_to(mark)
        return False

    def _kind(self, row: int) -> object:
        free = self.view.columns.free_at(np.array([row], np.intp), self.columns)
        usable = tuple(
            bool(demand.seating.eligibility.bars()[row] == 0)
            and (demand.within is None or row in demand.within)
            for demand in self.demands
        )
        return tuple(free[0].tolist()), usable, self.company.kind(row)
