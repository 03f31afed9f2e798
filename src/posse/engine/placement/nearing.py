"""How near to each other a gang's members are to sit: which rows its placement may use, in turn.

Where the gang must sit in one domain, the nearest tiers come first, in each the domain that has
room for most of those who wait, needs the fewest nodes and has the least room to spare; members
that come later stay in the domain in use.
Where it merely should, the rest of the cluster comes last. A gang that says nothing, but asks for
devices, sits on the fewest nodes; among the ways to do that, in the nearest domain.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from posse.engine.columns import Ints, Rows
from posse.engine.facts import Topology
from posse.engine.fit.seating import Seating
from posse.engine.fit.topology import Level
from posse.engine.gangs import Gang
from posse.engine.placement.demands import Demand
from posse.engine.policy import Policy
from posse.engine.view import View

# Domains of one gang that are tried, and those of them that are searched for every placement.
_MOST_DOMAINS = 128
_SEARCHED = 8

Flags = NDArray[np.bool_]


class Limit(Struct, frozen=True, gc=False):
    """The rows that a placement may use; None: all."""

    rows: Rows | None = None
    # They are all there are: who does not fit here does not fit.
    whole: bool = False
    # Members that ask for no device may sit anywhere.
    devices_only: bool = False
    # It is worth a search for every placement.
    thorough: bool = True

    def apply(self, demands: list[Demand]) -> None:
        for demand in demands:
            free = self.devices_only and not demand.seating.asks_devices
            demand.within = None if free else self.rows

    def heed(self, policy: Policy) -> Policy:
        return policy if self.thorough else replace(policy, search_steps=0)


ANYWHERE = Limit(whole=True)


def limits(
    view: View, gang: Gang, demands: list[Demand], need: int, policy: Policy
) -> Iterator[Limit]:
    """What to try, one after the other, until the gang is placed."""
    assert gang.facts is not None
    request = gang.facts.topology
    if gang.bereft and request is None and (former := _former(view, demands)) is not None:
        yield Limit(former, devices_only=True, thorough=False)
    if request is not None and demands:
        own = view.rows_of(gang)
        kept = {hold.row for hold in gang.holds}
        if gang.bereft:
            kept.update(row for demand in demands for row in demand.at)
        held = np.array(sorted(kept), np.intp)
        yield from together(view, own, held, demands, need, request, policy)
    elif policy.spread or gang.muster.seated or not any(d.seating.asks_devices for d in demands):
        yield ANYWHERE
    else:
        yield from _unasked(view, demands, policy)


def _former(view: View, demands: list[Demand]) -> Rows | None:
    """The rows that are kept for these demands, or were theirs."""
    rows = sorted({row for demand in demands for row in demand.at})
    every = view.columns.by_name()
    return every[np.isin(every, rows)] if rows else None


def near(view: View, own: Rows, policy: Policy) -> tuple[Rows, ...]:
    """Where one more member of a gang that sits there is best: on its nodes, or in its domains."""
    if not len(own):
        return ()
    domains = [
        level.domain(int(at))
        for level in view.tiers.levels(policy.tiers)
        for at in np.flatnonzero(level.containing(own) == len(own))[:1]
    ]
    return own, *domains


def confines(view: View, gang: Gang, own: Rows, policy: Policy) -> Rows | None:
    """The rows that members of a gang which sits there may use at all; None: any."""
    assert gang.facts is not None
    request = gang.facts.topology
    if request is None or not request.required or not len(own):
        return None
    levels, anywhere = view.tiers.allowed(request, policy.tiers)
    if anywhere:
        return None
    for level in reversed(levels):
        in_use = np.flatnonzero(_in_use(levels, level, own))
        if len(in_use):
            return level.union(in_use)
    return np.zeros(0, np.intp)


def together(
    view: View,
    own: Rows,
    held: Rows,
    demands: list[Demand],
    need: int,
    request: Topology,
    policy: Policy,
) -> Iterator[Limit]:
    """The domains in which all of them could sit, with those who sit on rows of their `own`."""
    levels, anywhere = view.tiers.allowed(request, policy.tiers)
    tried = 0
    for level in levels:
        enough = _sufficient(level, demands, need)
        if len(own):
            enough &= _in_use(levels, level, own)
        for at in _best_first(level, enough.nonzero()[0], demands, held):
            if tried == _MOST_DOMAINS:
                break
            yield Limit(level.domain(at), thorough=not anywhere and tried < _SEARCHED)
            tried += 1
    if anywhere:
        if levels and not len(own):
            few = _few_domains(levels[-1], demands)
            if few is not None:
                yield Limit(few, thorough=False)
        yield ANYWHERE


def _in_use(levels: list[Level], level: Level, own: Rows) -> Flags:
    """The domains that have all of the gang's members; where none has, those with the most."""
    counts = level.containing(own)
    whole = any((each.containing(own) == len(own)).any() for each in levels)
    most = len(own) if whole else max(1, int(counts.max(initial=0)))
    in_use: Flags = counts == most
    return in_use


def _sufficient(level: Level, demands: list[Demand], need: int) -> Flags:
    """The domains that could seat everyone, each role looked at by itself."""
    enough = np.ones(len(level), np.bool_)
    elastic = _elastic(demands)
    waiting = np.zeros(len(level), np.int64)
    for demand in demands:
        if not demand.most:
            continue
        seats = level.seats(demand.seating)
        if demand.announced or not elastic:
            enough &= seats >= demand.wanted
        else:
            enough &= seats >= demand.least
        if not demand.announced:
            waiting += np.minimum(seats, demand.most)
    return enough & (waiting >= (need or min(1, sum(d.most for d in demands if not d.announced))))


def _elastic(demands: list[Demand]) -> bool:
    """More of them wait than have to be seated together."""
    return sum(d.wanted for d in demands) < sum(d.most for d in demands)


def _best_first(level: Level, which: Rows, demands: list[Demand], held: Rows) -> list[int]:
    """Where most is kept for it already, where most of it can sit, the fewest nodes, the least to
    spare; then by name.

    Who is not seated at once is bound to the same domain: one that is just large enough for the
    minimum would keep the others waiting for good.
    """
    if len(which) < 2:
        only: list[int] = which.tolist()
        return only
    seating, count = _main(demands)
    nodes = level.nodes_for(seating, count, which)
    # An elastic gang may need fewer of that role than it would like.
    nodes[nodes == 0] = np.iinfo(np.int64).max
    # What is too little for a seat is room to spare, too. The last key counts most.
    keys = [level.sums(seating.room())[which], level.seats(seating)[which], nodes]
    if _elastic(demands):
        keys.append(_left_out(level, demands)[which])
    if len(held):
        keys.append(-level.containing(held)[which])
    best: list[int] = which[np.lexsort(keys)].tolist()
    return best


def _left_out(level: Level, demands: list[Demand]) -> Ints:
    """How many of those who wait each domain has no seat for, each role looked at by itself."""
    left = np.zeros(len(level), np.int64)
    for demand in demands:
        left += np.maximum(demand.most - level.seats(demand.seating), 0)
    return left


def _few_domains(level: Level, demands: list[Demand]) -> Rows | None:
    """As few domains as can seat everyone together, the largest first; None if all are needed."""
    seating, count = _main(demands)
    seats = level.seats(seating)
    order = np.lexsort((np.arange(len(level)), -seats))
    number = int(np.searchsorted(np.cumsum(seats[order]), count)) + 1
    if number >= len(level):
        return None
    return level.union(order[:number])


def _unasked(view: View, demands: list[Demand], policy: Policy) -> Iterator[Limit]:
    levels = view.tiers.levels(policy.tiers)
    if levels:
        seating, count = _main(demands)
        most = seating.most()
        if most < count:
            domain = _nearest(levels, demands, seating, count, most)
            if domain is not None:
                yield Limit(domain, devices_only=True, thorough=False)
            yield Limit(view.tiers.everywhere(policy.tiers), whole=True, devices_only=True)
            return
    yield ANYWHERE


def _nearest(
    levels: list[Level], demands: list[Demand], seating: Seating, count: int, most: int
) -> Rows | None:
    """The nearest domain that does with the fewest nodes; of those the one with least to spare.

    `most`: what one node seats at most.
    """
    fewest: int | None = None
    for level in levels:
        good = level.seats_on_full(seating, count, max(1, most))
        if fewest is not None or not np.count_nonzero(good):
            nodes = level.nodes_for(seating, count)
            if fewest is None and np.count_nonzero(nodes):
                fewest = _fewest(seating.seats(), count)
            good = nodes == (fewest or -1)
        if not np.count_nonzero(good):
            continue
        for demand in demands:
            if demand.seating is not seating and demand.seating.asks_devices:
                good &= level.seats(demand.seating) >= demand.wanted
        which = good.nonzero()[0]
        if len(which):
            spare = level.seats(seating).take(which)
            return level.domain(int(which[spare.argmin()]))
    return None


def _main(demands: list[Demand]) -> tuple[Seating, int]:
    """The shape that most is asked of, devices before all else, and how many of it are wanted."""
    if len(demands) == 1:
        return demands[0].seating, max(1, demands[0].wanted)
    counts: dict[int, int] = {}
    seatings: dict[int, Seating] = {}
    for demand in demands:
        number = demand.wanted or min(1, demand.most)
        seatings[id(demand.seating)] = demand.seating
        counts[id(demand.seating)] = counts.get(id(demand.seating), 0) + number
    main = max(seatings.values(), key=lambda s: (s.asks_devices, counts[id(s)]))
    return main, max(1, counts[id(main)])


def _fewest(seats: Ints, count: int) -> int:
    """How many nodes it takes to seat so many; 0: more than there are."""
    histogram = np.bincount(np.minimum(seats, count), minlength=count + 1)
    nodes, left = 0, count
    for size in np.flatnonzero(histogram)[::-1].tolist():
        if size and left > 0:
            taken = min(int(histogram[size]), -(-left // size))
            nodes += taken
            left -= taken * size
    return 0 if left > 0 else nodes
