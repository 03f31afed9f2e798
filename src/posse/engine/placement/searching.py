"""The last resort for a gang of several roles: look at every placement, up to a bound.

Nodes with equal room and equal bars are one class, and a state is how many nodes are in each class,
so symmetric placements are looked at once. A state that failed is not entered again.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from posse.engine.columns import Rows
from posse.engine.fit.seating import Seats
from posse.engine.placement.demands import Demand
from posse.engine.view import View

_MOST_PODS = 200
_MOST_CLASSES = 64

# Free amounts, then whether each demand may use the node.
Class = tuple[tuple[int, ...], tuple[bool, ...]]
State = tuple[tuple[Class, int], ...]
Step = tuple[int, Class]


class _OutOfSteps(Exception):
    pass


# For each demand the rows of its seats, one per pod.
Found = dict[Demand, list[int]]


def search(view: View, demands: list[Demand], need: int, steps: int) -> tuple[Found | None, bool]:
    """Seats for every demand, counted in the columns; or None, and whether that is proven."""
    pods = need + sum(d.wanted for d in demands if d.announced)
    if pods > _MOST_PODS or not steps:
        return None, False
    nodes = _classes(view, demands)
    if len(nodes) > _MOST_CLASSES:
        return None, False
    hunt = _Hunt(view, demands, need, steps)
    try:
        path = hunt.find({each: len(rows) for each, rows in nodes.items()})
    except _OutOfSteps:
        return None, False
    if path is None:
        return None, True
    found: Found = {demand: [] for demand in demands}
    for at, each in path:
        row = nodes[each].pop(0)
        found[demands[at]].append(row)
        nodes.setdefault(hunt.after(at, each), []).append(row)
    for demand, rows in found.items():
        take = view.hold if demand.announced else view.take
        take(demand.seating, Seats.at(rows))
    return found, True


def _classes(view: View, demands: list[Demand]) -> dict[Class, list[int]]:
    """Rows with a seat for any demand, by class; in each class in the order of their names."""
    useful = np.zeros(len(view.columns.touched), bool)
    for demand in demands:
        useful |= demand.seating.seats() > 0
    rows = view.columns.by_name()
    if all(demand.within is not None for demand in demands):
        rows = rows[
            np.isin(rows, np.concatenate([d.within for d in demands if d.within is not None]))
        ]
    rows = rows[useful[rows]]
    columns = np.array(_columns(demands), np.intp)
    free = view.columns.free_at(rows, columns).tolist()
    usable = np.stack([_usable(demand, rows) for demand in demands], axis=1).tolist()
    nodes: dict[Class, list[int]] = {}
    for row, room, open_to in zip(rows.tolist(), free, usable, strict=True):
        nodes.setdefault((tuple(room), tuple(open_to)), []).append(row)
    return nodes


def _usable(demand: Demand, rows: Rows) -> NDArray[np.bool_]:
    usable = demand.seating.eligibility.at(rows)
    return usable if demand.within is None else usable & np.isin(rows, demand.within)


def _columns(demands: list[Demand]) -> list[int]:
    return sorted({column for demand in demands for column in demand.seating.columns.tolist()})


@dataclass
class _Hunt:
    view: View
    demands: list[Demand]
    need: int
    steps: int
    failed: set[tuple[int, int, int, State]] = field(default_factory=set)

    def __post_init__(self) -> None:
        columns = _columns(self.demands)
        self.asks: list[tuple[int, ...]] = []
        for demand in self.demands:
            amounts = dict(demand.seating.pairs)
            self.asks.append(tuple(amounts.get(column, 0) for column in columns))
        # Waiting members the demands after each one could still seat.
        self.later = [
            sum(d.most for d in self.demands[at + 1 :] if not d.announced)
            for at in range(len(self.demands))
        ]

    def find(self, nodes: dict[Class, int]) -> list[Step] | None:
        return self._demand(0, self.need, nodes)

    def after(self, at: int, each: Class) -> Class:
        room, usable = each
        return tuple(has - asks for has, asks in zip(room, self.asks[at], strict=True)), usable

    def _demand(self, at: int, need: int, nodes: dict[Class, int]) -> list[Step] | None:
        """Place the demands from `at` on; `need` waiting members are still to be seated."""
        if at == len(self.demands):
            return [] if need == 0 else None
        demand = self.demands[at]
        if demand.announced:
            return self._pods(at, demand.wanted, need, nodes)
        least = max(demand.least, need - self.later[at])
        for number in range(min(demand.most, need), least - 1, -1):
            path = self._pods(at, number, need - number, nodes)
            if path is not None:
                return path
        return None

    def _pods(self, at: int, left: int, need: int, nodes: dict[Class, int]) -> list[Step] | None:
        if left == 0:
            return self._demand(at + 1, need, nodes)
        state = (at, left, need, tuple(sorted(nodes.items())))
        if state in self.failed:
            return None
        if self.steps == 0:
            raise _OutOfSteps
        self.steps -= 1
        for each in sorted(each for each in nodes if self._seats(at, each)):
            then = dict(nodes)
            then[each] -= 1
            if not then[each]:
                del then[each]
            fuller = self.after(at, each)
            then[fuller] = then.get(fuller, 0) + 1
            path = self._pods(at, left - 1, need, then)
            if path is not None:
                return [(at, each), *path]
        self.failed.add(state)
        return None

    def _seats(self, at: int, each: Class) -> bool:
        room, usable = each
        return usable[at] and all(
            has >= asks for has, asks in zip(room, self.asks[at], strict=True) if asks
        )
