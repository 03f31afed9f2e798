"""Seats for a gang: its whole minimum together with its announced members, or nothing.

One role is placed exactly. Several roles are placed hardest first; if that fails, in other orders;
and then by a bounded search (see `searching`), so that a small gang that fits is found to fit.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice, permutations

from posse.engine.columns import Rows
from posse.engine.decisions import HeldSeat, Seat, Start
from posse.engine.demands import Demand, demands_of, signature_of
from posse.engine.gangs import Gang, Hold, Member
from posse.engine.policy import Policy
from posse.engine.searching import search
from posse.engine.seating import NO_ROWS, Seating
from posse.engine.shortfalls import Shortfall
from posse.engine.view import View

_ORDERS = 24

# For each demand the rows of its seats, one per pod.
Rowses = list[list[int]]


@dataclass(frozen=True, slots=True)
class Placement:
    """Seats found and already counted in the columns; `start` makes them the gang's."""

    seats: list[tuple[Member, int]]
    holds: list[Hold]


def place(view: View, gang: Gang, policy: Policy) -> Placement | Shortfall:
    """A gang in its turn: its minimum or, once that is seated, members beyond it."""
    if gang.short:
        return seat(view, gang, policy, need=gang.need)
    return seat(view, gang, policy, need=0, beyond=len(gang.muster.waiting))


def seat(
    view: View, gang: Gang, policy: Policy, *, need: int, beyond: int = 0
) -> Placement | Shortfall:
    """Seat `need` waiting members and hold a seat for every absent one, or change nothing.

    Then up to `beyond` further members, as many as there is room for.
    """
    demands = demands_of(gang, need)
    signature = signature_of(gang, demands, need, beyond)
    known = view.shortfalls.recall(signature)
    if known is not None:
        return known
    seen = view.columns.last_freed
    own = view.rows_of(gang) if gang.muster.seated else NO_ROWS
    with view.tentatively() as attempt:
        # Its own held seats are free to the gang, and to nobody else.
        view.let_go(gang.holds)
        found, proven = _minimum(view, demands, need, own, policy)
        if found is not None:
            more = _beyond(view, demands, found, beyond, own)
            if more or need or _holds(demands, found) != gang.holds:
                attempt.keep()
                return _placement(demands, found)
    return Shortfall(signature, demands, proven, surplus=found is not None, seen=seen)


def start(view: View, gang: Gang, placement: Placement) -> Start:
    """Give the gang its seats and holds; from here on the view counts them as taken."""
    view.shortfalls.remove(gang)
    view.record_holds(gang, placement.holds)
    for member, row in placement.seats:
        view.assume(member, row)
    gang.forget_muster()
    gang.entitled = max(gang.entitled or 0, len(gang.muster.seated))
    gang.verdict = None
    names = view.columns.names
    return Start(
        gang.key,
        tuple(Seat(m.facts.uid, m.facts.name, names[row]) for m, row in placement.seats),
        held_seats(view, gang),
    )


def held_seats(view: View, gang: Gang) -> tuple[HeldSeat, ...]:
    names = view.columns.names
    held = sorted((hold.role, names[hold.row]) for hold in gang.holds if hold.announced)
    return tuple(HeldSeat(role, node) for role, node in held)


# -- the minimum, whole --------------------------------------------------------------------------


def _minimum(
    view: View, demands: list[Demand], need: int, own: Rows, policy: Policy
) -> tuple[Rowses | None, bool]:
    """Rows for every demand (counted in the columns), or None and whether that is proven."""
    asked = [d for d in demands if d.wanted or (need and d.most)]
    if not asked:
        return [[] for _ in demands], True
    if any(demand.at for demand in asked):
        found = _in_turn(view, asked, need, own, settle=True)
        if found is not None:
            return _spread(demands, asked, found), True
    elastic = sum(d.wanted for d in asked) < sum(d.most for d in asked)
    if not elastic and any(d.seating.total() < d.wanted for d in asked):
        return None, True
    orders = islice(permutations(_hardest_first(view, asked)), _ORDERS)
    for order in orders:
        found = _in_turn(view, list(order), need, own, settle=False)
        if found is not None:
            return _spread(demands, list(order), found), True
        if len(asked) == 1:
            return None, True
    if elastic:
        for order in islice(permutations(_hardest_first(view, asked)), _ORDERS):
            found = _as_fits(view, list(order), need, own)
            if found is not None:
                return _spread(demands, list(order), found), True
    found, proven = search(view, asked, need, policy.search_steps)
    return (None if found is None else _spread(demands, asked, found)), proven


def _hardest_first(view: View, demands: list[Demand]) -> list[Demand]:
    """By the largest share of the cluster that one pod asks; then by what the whole role asks."""
    offered = view.columns.offered

    def share(demand: Demand) -> float:
        seating = demand.seating
        return float((seating.amounts / offered[seating.columns].clip(min=1)).max())

    if len(demands) == 1:
        return demands
    return sorted(
        demands, key=lambda d: (-share(d), -share(d) * d.most, d.role, d.seating.shape.requests)
    )


def _in_turn(
    view: View, demands: list[Demand], need: int, own: Rows, *, settle: bool
) -> Rowses | None:
    """Each demand takes its best seats, one after the other; `settle`: held ones first of all."""
    rowses: Rowses = [[] for _ in demands]
    with view.tentatively() as attempt:
        if settle:
            for demand, rows in zip(demands, rowses, strict=True):
                rows += _take(view, demand, demand.wanted, held=True)
        for demand, rows in zip(demands, rowses, strict=True):
            left = demand.wanted - len(rows)
            if demand.seating.total() < left:
                return None
            rows += _take(view, demand, left, own)
        attempt.keep()
    return rowses


def _as_fits(view: View, demands: list[Demand], need: int, own: Rows) -> Rowses | None:
    """Any members of the roles that have room, where the oldest ones cannot all be seated."""
    rowses: Rowses = []
    with view.tentatively() as attempt:
        for at, demand in enumerate(demands):
            # Leave enough for what the roles after this one must have.
            spare = need - sum(d.least for d in demands[at + 1 :] if not d.announced)
            most = demand.wanted if demand.announced else min(demand.most, spare)
            number = min(most, demand.seating.total())
            if number < demand.least:
                return None
            rowses.append(_take(view, demand, number, own))
            need -= 0 if demand.announced else number
        if need:
            return None
        attempt.keep()
    return rowses


def _take(
    view: View, demand: Demand, number: int, own: Rows = NO_ROWS, *, held: bool = False
) -> list[int]:
    if not number:
        return []
    seating = demand.seating
    if held:
        seats = seating.at(demand.at, number)
    else:
        # Devices are worth being near; a pod without any is better off the device nodes.
        seats = seating.choose(number, own if seating.asks_devices else NO_ROWS)
    if demand.announced:
        view.hold(seating, seats)
    else:
        view.take(seating, seats)
    return seats.each()


def _spread(demands: list[Demand], order: Iterable[Demand], found: Rowses) -> Rowses:
    """Back to the order of the demands."""
    rows_of = {id(d): rows for d, rows in zip(order, found, strict=True)}
    return [rows_of.get(id(demand), []) for demand in demands]


# -- and beyond ----------------------------------------------------------------------------------


def _beyond(view: View, demands: list[Demand], found: Rowses, beyond: int, own: Rows) -> int:
    """Seat members beyond the minimum, in the order of the roles' oldest; how many were."""
    seated = 0
    for demand, rows in zip(demands, found, strict=True):
        if demand.announced or not beyond:
            continue
        number = min(demand.most - len(rows), beyond, demand.seating.total())
        rows += _take(view, demand, number, own)
        beyond -= number
        seated += number
    return seated


def _holds(demands: list[Demand], found: Rowses) -> list[Hold]:
    return [
        Hold(demand.role, demand.seating, row)
        for demand, rows in zip(demands, found, strict=True)
        if demand.announced
        for row in rows
    ]


def _placement(demands: list[Demand], found: Rowses) -> Placement:
    seats = [
        (member, row)
        for demand, rows in zip(demands, found, strict=True)
        for member, row in zip(demand.members, rows, strict=False)
    ]
    return Placement(seats, _holds(demands, found))


def fitting(view: View, gang: Gang, need: int) -> list[tuple[str, Seating, int]]:
    """As many of the missing seats as there is room for now: (role, shape, row) of each."""
    kept: list[tuple[str, Seating, int]] = []
    for demand in demands_of(gang, need):
        missing = demand.wanted - (len(demand.at) if demand.announced else 0)
        number = min(max(0, missing), demand.seating.total())
        if number:
            seats = demand.seating.choose(number)
            view.hold(demand.seating, seats)
            kept += [(demand.role, demand.seating, row) for row in seats.each()]
    return kept
