"""How many pods of one shape each node could seat now, and which seats to choose.

Pods of one shape can trade places, so placing n of them is one pass over the nodes, not n. The
counts are kept between passes; only rows touched since the last look are counted again.

Choosing is exact: n pods are seated whenever the nodes have n seats for them. Among all ways it
prefers, in this order: nodes the caller names; nodes the pods prefer; for pods that ask no device,
nodes that have none, then those with the fewest devices left; the fewest nodes; of these the
smallest that will do, so that whole nodes stay whole; the fewest free devices; the node's name, or
its place in the rows that the caller limits the choice to. Where members are to be spread, every
node gets one before any gets two, the emptiest first.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from posse.engine.columns import Columns, Ints, Rows
from posse.engine.facts import LARGEST, PODS, Shape
from posse.engine.fit.eligibility import Eligibility
from posse.engine.resources import is_device

# Up to so many nodes are looked at one by one.
_FEW = 48


class Seats:
    """Some rows, and how many pods go to each."""

    __slots__ = ("counts", "rows")

    def __init__(self, rows: Rows, counts: Ints) -> None:
        self.rows = rows
        self.counts = counts

    @staticmethod
    def one(row: int) -> Seats:
        return Seats(np.array([row], np.intp), np.ones(1, np.int64))

    @staticmethod
    def at(rows: Sequence[int]) -> Seats:
        """One seat on each of these rows, however often they are named."""
        distinct, counts = np.unique(np.array(rows, np.intp), return_counts=True)
        return Seats(distinct, counts.astype(np.int64))

    def each(self) -> list[int]:
        """One row per seat."""
        return self.rows.repeat(self.counts).tolist()


class Seating:
    def __init__(self, columns: Columns, shape: Shape, eligibility: Eligibility) -> None:
        self.shape = shape
        # Its pods say something of other pods.
        self.related = shape.relations is not None
        self.eligibility = eligibility
        # Asking for more than any node can have never fits, and must not overflow a column.
        self.asked = {r: min(a, LARGEST + 1) for r, a in shape.requests if a > 0} or {PODS: 1}
        self.columns: Rows = np.array([columns.column_of(r) for r in self.asked], np.intp)
        self.amounts: Ints = np.array(list(self.asked.values()), np.int64)
        self.pairs = tuple(zip(self.columns.tolist(), self.amounts.tolist(), strict=True))
        # How many devices, and where among the rest.
        self._devices = [at for at, resource in enumerate(self.asked) if is_device(resource)]
        self.devices = int(self.amounts[self._devices].sum())
        self.asks_devices = self.devices > 0
        self._kinds: dict[tuple[str, str], tuple[str, str]] = {}
        self._table = columns
        self._seats: Ints = np.zeros(0, np.int64)
        self._grade: Ints = np.zeros(0, np.int64)
        self._total: int | None = None
        self._vector: Ints = np.zeros(0, np.int64)
        # The table's when the seats were last counted, and the time before; what was counted then.
        self.clock = self._before = -1
        self._recounted: Rows = np.zeros(0, np.intp)

    # -- counting ----------------------------------------------------------------------------

    def total(self, within: Rows | None = None) -> int:
        """Seats on all nodes, or on these rows."""
        self._refresh()
        if within is not None:
            return int(np.add.reduce(self._seats.take(within)))
        if self._total is None:
            self._total = int(np.add.reduce(self._seats))
        return self._total

    def most(self) -> int:
        """Seats on the node that has most of them."""
        return int(np.maximum.reduce(self.seats(), initial=0))

    def seats(self) -> Ints:
        """Seats per row."""
        self._refresh()
        return self._seats

    def touched_since(self, clock: int) -> Rows:
        """The rows whose seats may be other ones than they were then."""
        self._refresh()
        if clock == self._before:
            return self._recounted
        return self._table.touched_since(clock)

    def by_resource(self) -> Ints:
        """The seats there would be on all nodes if only that were asked, for each of `columns`."""
        self._refresh()
        every = self._table.by_name()
        rows = every[self.eligibility.at(every)]
        free = np.maximum(self._table.free_at(rows, self.columns), 0)
        seats: Ints = (free // self.amounts).sum(axis=0)
        return seats

    def kind(self, role: str, part: str) -> tuple[str, str]:
        """Role and part of pods of this shape: the same object whenever they are the same."""
        kind = (role, part)
        return self._kinds.setdefault(kind, kind)

    def vector(self) -> Ints:
        """What one pod asks for, by column; nobody may change it."""
        width = self._table.width
        if len(self._vector) != width:
            self._vector = np.zeros(width, np.int64)
            self._vector[self.columns] = self.amounts
        return self._vector

    def room(self) -> Ints:
        """Per row what is free of the devices it asks for; else of its first resource."""
        self._refresh()
        if self.asks_devices:
            return self._grade
        every = np.arange(len(self._seats))
        free: Ints = self._table.free_at(every, self.columns[:1])[:, 0]
        return free

    def _refresh(self) -> None:
        table = self._table
        if self.clock == table.clock:
            return
        rows = self._recounted = table.touched_since(self.clock)
        self._before, self.clock = self.clock, table.clock
        if len(self._seats) < len(table.touched):
            room = len(table.touched) - len(self._seats)
            self._seats = np.pad(self._seats, (0, room))
            self._grade = np.pad(self._grade, (0, room))
        self.eligibility.refresh()
        free = table.free_at(rows, self.columns)
        seats = np.minimum.reduce(free // self.amounts, axis=1)
        np.maximum(seats, 0, out=seats)
        if self.eligibility.selective:
            seats *= self.eligibility.at(rows)
        self._total = None
        self._seats[rows] = seats
        self._grade[rows] = self._grades(rows, free)

    def _grades(self, rows: Rows, free: Ints) -> Ints:
        """Lower is better: free devices of the kinds asked for; or of any, where none is."""
        if self.asks_devices:
            left: Ints = free[:, self._devices[0]].copy()
            for device in self._devices[1:]:
                left += free[:, device]
            return left
        devices = np.array(
            [at for resource, at in self._table.column.items() if is_device(resource)], np.intp
        )
        offered = (self._table.allocatable[rows[:, None], devices] > 0).any(axis=1)
        left = np.maximum(self._table.free_at(rows, devices), 0).sum(axis=1)
        graded: Ints = np.where(offered, left + 1, 0)
        return graded

    # -- choosing ----------------------------------------------------------------------------

    def choose(
        self,
        count: int,
        prefer: Sequence[Rows] = (),
        within: Rows | None = None,
        *,
        spread: bool = False,
        most: int = LARGEST,
    ) -> Seats:
        """The best seats for `count` pods, of which there must be as many (see `total`).

        `prefer`: rows to be filled first, the first of them first of all. `within`: all the rows
        there are to choose from, in the order in which ties are broken. `most`: no more of them
        on one node; then there must be as many seats as that leaves.
        """
        self._refresh()
        pick = _widest if spread else _fewest
        if self.asks_devices and not prefer and not self.eligibility.partial:
            # All of them are of one tier, as most often.
            rows, seats, grades = self._choice(within)
            if len(rows) <= _FEW and not spread:
                return _few(rows, _at_most(seats, most).tolist(), grades.tolist(), count)
            picked, taken = pick(_at_most(seats, most), grades, count)
            return Seats(rows.take(picked), taken)
        rows = self._table.by_name() if within is None else within
        rows = rows.take((self._seats.take(rows) > 0).nonzero()[0])
        chosen: list[Rows] = []
        counts: list[Ints] = []
        left = count
        for tier in self._tiers(rows, prefer, spread):
            seats = _at_most(self._seats.take(tier), most)
            here = min(left, int(seats.sum()))
            picked, taken = pick(seats, self._grade.take(tier), here)
            chosen.append(tier.take(picked))
            counts.append(taken)
            left -= here
            if not left:
                break
        if len(chosen) == 1:
            return Seats(chosen[0], counts[0])
        return Seats(np.concatenate(chosen), np.concatenate(counts))

    def _choice(self, within: Rows | None) -> tuple[Rows, Ints, Ints]:
        """The rows there are to choose from, and their seats and grades in the same order."""
        if within is not None:
            return within, self._seats.take(within), self._grade.take(within)
        table = self._table
        return table.by_name(), table.in_order(self._seats), table.in_order(self._grade)

    def rows_of(self, nodes: Iterable[str]) -> list[int]:
        """Where these nodes are, as far as they are known."""
        return [self._table.row[node] for node in nodes if node in self._table.row]

    def at(self, rows: list[int], count: int) -> Seats:
        """Seats on exactly these rows, in their order: up to `count`, fewer where room lacks."""
        self._refresh()
        taken: dict[int, int] = {}
        for row in rows:
            if count and taken.get(row, 0) < self._seats[row]:
                taken[row] = taken.get(row, 0) + 1
                count -= 1
        return Seats(np.array(list(taken), np.intp), np.array(list(taken.values()), np.int64))

    def _tiers(self, rows: Rows, prefer: Sequence[Rows], spread: bool) -> Iterator[Rows]:
        """Nodes to be filled before the next ones are looked at."""
        for wanted in prefer:
            own = np.isin(rows, wanted)
            if own.any():
                yield rows[own]
                rows = rows[~own]
        if self.eligibility.partial:
            liked = self.eligibility.likings(rows)
            for liking in np.unique(liked)[::-1]:
                yield from self._graded(rows[liked == liking], spread)
        else:
            yield from self._graded(rows, spread)

    def _graded(self, rows: Rows, spread: bool) -> Iterator[Rows]:
        if self.asks_devices:
            yield rows
            return
        grades = np.minimum(self._grade[rows], 1) if spread else self._grade[rows]
        while len(rows):
            best = grades == grades.min()
            yield rows[best]
            rows, grades = rows[~best], grades[~best]


def _at_most(seats: Ints, most: int) -> Ints:
    return seats if most == LARGEST else np.minimum(seats, most)


def _widest(seats: Ints, grades: Ints, count: int) -> tuple[Rows, Ints]:
    """Positions of as many nodes as seat `count` pods evenly, and how many sit on each."""
    ordered = np.sort(seats)
    # What all nodes seat if none takes more than the level: the lowest level that will do.
    below = np.concatenate(([0], np.cumsum(ordered)))
    reached = below[:-1] + ordered * np.arange(len(seats), 0, -1)
    at = int(np.searchsorted(reached, count))
    level = -(-(count - int(below[at])) // (len(seats) - at))
    taken = np.minimum(seats, level)
    surplus = int(taken.sum()) - count
    if surplus:
        full = np.flatnonzero(taken == level)
        fullest_first = full[np.lexsort((-full, seats[full]))]
        taken[fullest_first[:surplus]] -= 1
    positions: Rows = np.flatnonzero(taken)
    return positions, taken[positions]


def _fewest(seats: Ints, grades: Ints, count: int) -> tuple[Rows, Ints]:
    """Positions of the fewest nodes that seat `count` pods together, and how many sit on each."""
    useful = np.minimum(seats, count)
    histogram = np.bincount(useful)
    available = {size: number for size, number in enumerate(histogram.tolist()) if size and number}
    wanted = _sizes(available, count)
    picked = [
        _tightest((useful == size).nonzero()[0], grades, number) for size, number in wanted.items()
    ]
    positions: Rows = picked[0] if len(picked) == 1 else np.concatenate(picked)
    taken = useful[positions].tolist()
    _trim(taken, count)
    return positions, np.array(taken, np.int64)


def _few(rows: Rows, seats: list[int], grades: list[int], count: int) -> Seats:
    """As `_fewest`, one node after another: of few nodes that is done sooner."""
    places: dict[int, list[int]] = {}
    for at, size in enumerate(seats):
        if size:
            places.setdefault(size if size < count else count, []).append(at)
    picked: list[int] = []
    taken: list[int] = []
    sizes = _sizes({size: len(equal) for size, equal in places.items()}, count)
    for size, number in sizes.items():
        equal = places[size]
        if len(equal) > number:
            equal = sorted(equal, key=grades.__getitem__)[:number]
        picked += equal
        taken += [size] * number
    _trim(taken, count)
    return Seats(rows[picked], np.array(taken, np.int64))


def _trim(taken: list[int], count: int) -> None:
    """The sizes add up to the count or, in the largest ones, to a little more."""
    surplus = sum(taken) - count
    at = len(taken) - 1
    while surplus:
        less = min(surplus, taken[at] - 1)
        taken[at] -= less
        surplus -= less
        at -= 1


def _sizes(available: dict[int, int], count: int) -> dict[int, int]:
    """How many nodes of each size to take: as few as can be, and of those the smallest.

    At each step it takes the smallest size that still lets the largest ones do the rest.
    """
    sizes = sorted(available)
    most: dict[int, int] = {}
    left = count
    for size in reversed(sizes):
        if left <= 0:
            break
        number = most[size] = min(available[size], -(-left // size))
        left -= number * size
    if not left:
        return most
    largest = [size for size, number in most.items() for _ in range(number)]
    return _smallest(available, sizes, largest, count)


def _smallest(
    available: dict[int, int], sizes: list[int], largest: list[int], count: int
) -> dict[int, int]:
    """As many as the largest, where these are more than enough."""
    left = dict(available)
    taken: dict[int, int] = {}
    # What the nodes other than the one being chosen can take at most.
    rest = sum(largest[:-1])
    for others in range(len(largest) - 1, -1, -1):
        at = bisect_left(sizes, count - rest)
        while not left[sizes[at]]:
            at += 1
        size = sizes[at]
        left[size] -= 1
        taken[size] = taken.get(size, 0) + 1
        count -= size
        if others:
            rest -= largest[others - 1]
    return taken


def _tightest(positions: Rows, grades: Ints, number: int) -> Rows:
    """The `number` positions of lowest grade; among equals the first, which is first by name."""
    if len(positions) == number:
        return positions
    own = grades.take(positions)
    chosen: list[Rows] = []
    while number:
        best = own.min()
        equal = positions.take((own == best).nonzero()[0][:number])
        chosen.append(equal)
        number -= len(equal)
        if number:
            keep: NDArray[np.bool_] = own != best
            positions, own = positions[keep], own[keep]
    return chosen[0] if len(chosen) == 1 else np.concatenate(chosen)
