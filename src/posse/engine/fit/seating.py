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

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from posse.engine.columns import Columns, Ints, Rows
from posse.engine.facts import LARGEST, PODS, Shape
from posse.engine.fit.choosing import Sizes, fewest, fewest_of_few, widest
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
    def at(rows: Sequence[int] | Rows) -> Seats:
        """One seat on each of these rows, however often they are named."""
        counts = np.bincount(np.asarray(rows, np.intp))
        distinct: Rows = counts.nonzero()[0]
        return Seats(distinct, counts[distinct].astype(np.int64))

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
        # How many rows have so many seats, as of a clock, and which had how many then.
        self._tally: Sizes = {}
        self._tallied = -1
        self._former: Ints = np.zeros(0, np.int64)
        self._kinds: dict[tuple[str, str], tuple[str, str]] = {}
        self._table = columns
        self._seats: Ints = np.zeros(0, np.int64)
        self._grade: Ints = np.zeros(0, np.int64)
        self._total: int | None = None
        # Seats there would be if nobody sat anywhere, as nodes were then.
        self._if_empty = (-1, 0)
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

    def total_if_empty(self) -> int:
        """Seats on all nodes if nobody sat there."""
        altered, total = self._if_empty
        if altered != self._table.last_altered:
            rows = (self.eligibility.bars() == 0).nonzero()[0]
            offered = self._table.allocatable[rows[:, None], self.columns]
            total = int((offered // self.amounts).min(axis=1).sum())
            self._if_empty = (self._table.last_altered, total)
        return total

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
            self._tallied = -1
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
        if self.asks_devices and not (prefer or spread or self.eligibility.partial):
            # All of them are of one tier, as most often.
            if within is None:
                return self._anywhere(count, most)
            if len(within) <= _FEW and most >= count:
                return self._among(within, count)
        rows = self._table.by_name() if within is None else within
        rows = rows.take((self._seats.take(rows) > 0).nonzero()[0])
        chosen: list[Rows] = []
        counts: list[Ints] = []
        left = count
        for tier in self._tiers(rows, prefer, spread):
            seats = np.minimum(self._seats.take(tier), most)
            here = min(left, int(seats.sum()))
            if spread:
                picked, taken = widest(seats, here)
            else:
                picked, taken = fewest(seats, self._grade.take(tier), here, devices=self.devices)
            chosen.append(tier.take(picked))
            counts.append(taken)
            left -= here
            if not left:
                break
        if len(chosen) == 1:
            return Seats(chosen[0], counts[0])
        return Seats(np.concatenate(chosen), np.concatenate(counts))

    def _among(self, few: Rows, count: int) -> Seats:
        """The best seats of a few nodes, for such pods, too."""
        seats, grades = self._seats.take(few).tolist(), self._grade.take(few).tolist()
        picked, taken = fewest_of_few(seats, grades, count)
        return Seats(few[picked], np.array(taken, np.int64))

    def _anywhere(self, count: int, most: int) -> Seats:
        """The best seats of all nodes, for pods that ask for devices and prefer no node."""
        table = self._table
        seats, sizes = table.in_order(self._seats), None
        if most >= count:
            sizes = self.sizes()
        else:
            seats = np.minimum(seats, most)
        grades = table.in_order(self._grade)
        picked, taken = fewest(seats, grades, count, sizes, self.devices)
        return Seats(table.by_name().take(picked), taken)

    def sizes(self) -> Sizes:
        """How many rows have so many seats; only what has changed is counted again."""
        self._refresh()
        if self._tallied < 0:
            sizes, numbers = np.unique(self._seats, return_counts=True)
            self._tally = dict(zip(sizes.tolist(), numbers.tolist(), strict=True))
            self._former = self._seats.copy()
        elif self._tallied != self.clock:
            rows = self.touched_since(self._tallied)
            tally, seats = self._tally, self._seats.take(rows)
            for old, new in zip(self._former.take(rows).tolist(), seats.tolist(), strict=True):
                tally[new] = tally.get(new, 0) + 1
                tally[old] -= 1
                if not tally[old]:
                    del tally[old]
            self._former[rows] = seats
        self._tallied = self.clock
        return self._tally

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
