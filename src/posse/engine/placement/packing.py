"""Seats for several demands at once: all of them, or none.

One role is packed exactly. Several are packed hardest first; if that fails, in other orders; and
then by a bounded search, so that a small gang that fits is found to fit. What is returned is
already counted in the columns; whoever asked does so inside a tentative statement.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, permutations
from typing import Protocol

from posse.engine.columns import Rows
from posse.engine.fit.seating import Seats
from posse.engine.placement.demands import Demand
from posse.engine.placement.searching import Found, search
from posse.engine.policy import Policy
from posse.engine.view import View

_ORDERS = 24


class Allowance(Protocol):
    """How many more seats a quota allows for."""

    def seats(self, demand: Demand) -> int: ...

    def take(self, demand: Demand, number: int) -> None: ...


def pack(
    view: View, demands: list[Demand], need: int, near: Sequence[Rows], policy: Policy
) -> tuple[Found | None, bool]:
    """Seats for `need` waiting members and every announced one; or None, and if that is proven.

    `near`: rows to be preferred for pods that ask devices, the first of them first of all.
    """
    asked = [demand for demand in demands if demand.wanted or (need and demand.most)]
    if len(asked) == 1 and not asked[0].at:
        return _alone(view, asked[0], near, policy.spread), True
    if any(demand.at for demand in asked):
        found = _in_turn(view, asked, near, policy.spread, settle=True)
        if found is not None:
            return found, True
    elastic = sum(demand.wanted for demand in asked) < sum(demand.most for demand in asked)
    if len(asked) > 1 and not elastic and any(d.total() < d.wanted for d in asked):
        return None, True
    for order in orders(view, asked):
        found = _in_turn(view, order, near, policy.spread)
        if found is not None:
            return found, True
    if len(asked) == 1:
        return None, True
    if elastic:
        for order in orders(view, asked):
            found = _as_fits(view, order, need, near, policy.spread)
            if found is not None:
                return found, True
    return search(view, asked, need, policy.search_steps)


def pack_more(
    view: View,
    demands: list[Demand],
    found: Found,
    most: int,
    near: Sequence[Rows],
    policy: Policy,
    quota: Allowance | None = None,
) -> int:
    """Seats for up to `most` further waiting members, role by role; how many there were."""
    seated = 0
    for demand in demands if most else ():
        if not demand.announced:
            rows = found.setdefault(demand, [])
            number = min(demand.most - len(rows), most - seated, demand.total())
            if quota is not None and number:
                number = min(number, quota.seats(demand))
                quota.take(demand, number)
            rows += _take(view, demand, number, near, policy.spread)
            seated += number
    return seated


def orders(view: View, demands: list[Demand]) -> Iterator[list[Demand]]:
    """Hardest first: by the share of the cluster that one pod asks, then that the role asks."""
    offered = view.columns.offered

    def hardness(demand: Demand) -> tuple[float, float, str, object]:
        seating = demand.seating
        share = float((seating.amounts / offered[seating.columns].clip(min=1)).max())
        return -share, -share * demand.most, demand.role, seating.shape.requests

    if len(demands) > 1:
        demands = sorted(demands, key=hardness)
    return map(list, islice(permutations(demands), _ORDERS))


def _alone(view: View, demand: Demand, near: Sequence[Rows], spread: bool) -> Found | None:
    """One role finds its seats whenever there are as many."""
    if demand.total() < demand.wanted:
        return None
    return {demand: _take(view, demand, demand.wanted, near, spread)}


def _in_turn(
    view: View,
    demands: list[Demand],
    near: Sequence[Rows],
    spread: bool,
    *,
    settle: bool = False,
) -> Found | None:
    """Each demand takes its best seats, one after the other; `settle`: held ones first of all."""
    found: Found = {demand: [] for demand in demands}
    with view.tentatively() as attempt:
        if settle:
            for demand in demands:
                held = demand.seating.at(demand.held(), demand.wanted)
                found[demand] += count(view, demand, held)
        for demand in demands:
            left = demand.wanted - len(found[demand])
            if demand.total() < left:
                return None
            found[demand] += _take(view, demand, left, near, spread)
        attempt.keep()
    return found


def _as_fits(
    view: View, demands: list[Demand], need: int, near: Sequence[Rows], spread: bool
) -> Found | None:
    """Any members of the roles that have room, where the oldest ones cannot all be seated."""
    found: Found = {}
    with view.tentatively() as attempt:
        for at, demand in enumerate(demands):
            if demand.announced:
                number = demand.wanted
            else:
                # Leave enough for what the roles after this one must have.
                spare = need - sum(d.least for d in demands[at + 1 :] if not d.announced)
                number = min(demand.most, spare, demand.total())
                need -= number
            if not demand.least <= number <= demand.total():
                return None
            found[demand] = _take(view, demand, number, near, spread)
        if need:
            return None
        attempt.keep()
    return found


def _take(view: View, demand: Demand, number: int, near: Sequence[Rows], spread: bool) -> list[int]:
    if not number:
        return []
    # Devices are worth being near; a pod without any is better off the device nodes.
    prefer = near if demand.seating.asks_devices and not spread else ()
    seats = demand.seating.choose(number, prefer, demand.within, spread=spread)
    return count(view, demand, seats)


def count(view: View, demand: Demand, seats: Seats) -> list[int]:
    if demand.announced:
        view.hold(demand.seating, seats)
    else:
        view.take(demand.seating, seats)
    return seats.each()
