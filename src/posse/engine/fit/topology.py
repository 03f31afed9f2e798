"""Which nodes are near each other: tiers of domains, the nearest first.

The tiers are those of the HyperNodes, where there are any, else those of node labels: tier 1 is
the first key. A domain of a label tier is a path, as `zone a, block 2, rack 7`: racks of one name
in two zones are two. What is kept here changes only when nodes come, go or change their labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain, repeat
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from posse.engine.columns import Columns, Ints, Rows
from posse.engine.facts import NodeFacts, Topology
from posse.engine.fit.hypernodes import HyperNodeFacts, HyperNodes
from posse.engine.fit.seating import Seating

# Up to so many seats are told apart one by one.
_WIDE = 64

Flags = NDArray[np.bool_]


class Level:
    """The domains of one tier, or of one node label, that have any nodes."""

    def __init__(
        self,
        tier: int,
        titles: tuple[str, ...],
        noun: str,
        domains: Sequence[tuple[str, Sequence[int]]],
    ) -> None:
        self.tier = tier
        # What a request may call it.
        self.titles = titles
        # What a sentence calls one of its domains.
        self.noun = noun
        self.names = [name for name, _ in domains]
        counts = [len(rows) for _, rows in domains]
        rows = list(chain.from_iterable(rows for _, rows in domains))
        self.rows: Rows = np.array(rows, np.intp)
        self.ids: Rows = np.repeat(np.arange(len(domains)), counts)
        self._starts = [0, *accumulate(counts)]
        # The domain of each row, or one more than there are; None where one is in several.
        self._domain_of: Rows | None = None
        if np.bincount(self.rows).max(initial=0) <= 1:
            self._domain_of = np.full(int(self.rows.max(initial=-1)) + 1, len(domains), np.intp)
            self._domain_of[self.rows] = self.ids
        self._counts: WeakKeyDictionary[Seating, _Counts] = WeakKeyDictionary()

    def __len__(self) -> int:
        return len(self.names)

    def domain(self, at: int) -> Rows:
        rows: Rows = self.rows[self._starts[at] : self._starts[at + 1]]
        return rows

    def union(self, which: Rows) -> Rows:
        """The rows of these domains, one after the other; one that is in several comes once."""
        rows = np.concatenate([self.domain(at) for at in which.tolist()])
        if self._domain_of is None:
            rows = rows[np.sort(np.unique(rows, return_index=True)[1])]
        return rows

    def places_of(self, rows: Rows) -> tuple[Rows | None, Rows]:
        """The domain of each of these ascending rows, or one more than there are; where a row may
        be in several, first which of the rows is meant."""
        if self._domain_of is None:
            places = np.isin(self.rows, rows).nonzero()[0]
            return np.searchsorted(rows, self.rows.take(places)), self.ids.take(places)
        if rows[-1] >= len(self._domain_of):
            more = np.full(int(rows[-1]) + 1 - len(self._domain_of), len(self), np.intp)
            self._domain_of = np.concatenate((self._domain_of, more))
        return None, self._domain_of.take(rows)

    def sums(self, amounts: Ints) -> Ints:
        """What each domain has of something counted per row."""
        if not len(self):
            return np.zeros(0, np.int64)
        sums: Ints = np.add.reduceat(amounts.take(self.rows), self._starts[:-1])
        return sums

    def seats(self, seating: Seating) -> Ints:
        """What each domain has for pods of this shape."""
        return self._counted(seating).sums

    def nodes_for(self, seating: Seating, count: int, which: Rows | None = None) -> Ints:
        """The fewest nodes of each domain that seat so many together; 0 where they cannot.

        `which`: of these domains only.
        """
        domains = len(self) if which is None else len(which)
        left = np.full(domains, count, np.int64)
        nodes = np.zeros(domains, np.int64)
        for size, number in self._by_size(seating, count):
            there = number if which is None else number.take(which)
            taken = np.minimum(there, -(-left // size))
            nodes += taken
            left -= taken * size
            np.maximum(left, 0, out=left)
            if not np.count_nonzero(left):
                return nodes
        nodes[left > 0] = 0
        return nodes

    def seats_on_full(self, seating: Seating, count: int, most: int) -> Flags:
        """The domains that seat so many on as few nodes as there could be, if no node anywhere
        seats more than `most`."""
        enough: Flags
        if most >= _WIDE - 1:
            enough = self.nodes_for(seating, count) == -(-count // most)
            return enough
        table = self._counted(seating).table
        full, rest = divmod(count, most)
        enough = table[most] >= full
        if rest:
            enough &= np.add.reduce(table[rest : most + 1]) > full
        return enough

    def _by_size(self, seating: Seating, count: int) -> Iterator[tuple[int, Ints]]:
        """How many nodes of each domain have so many seats, the most first; those with more than
        the count have that many."""
        counted = self._counted(seating)
        most = int(counted.seats.max(initial=0))
        if most < _WIDE - 1:
            if most >= count:
                yield count, np.add.reduce(counted.table[count : most + 1])
            for size in range(min(most, count - 1), 0, -1):
                yield size, counted.table[size]
            return
        useful = np.minimum(counted.seats.take(self.rows), count)
        distinct, which = np.unique(useful, return_inverse=True)
        cells = np.bincount(which * len(self) + self.ids, minlength=len(self) * len(distinct))
        for at in range(len(distinct) - 1, -1, -1):
            if distinct[at]:
                yield int(distinct[at]), cells[at * len(self) : (at + 1) * len(self)]

    def _counted(self, seating: Seating) -> _Counts:
        counted = self._counts.get(seating)
        if counted is None:
            counted = self._counts[seating] = _Counts(self)
        counted.follow(seating)
        return counted

    def containing(self, rows: Rows) -> Ints:
        """How many of these distinct rows each domain has."""
        there = np.isin(self.rows, rows)
        counts: Ints = np.bincount(self.ids[there], minlength=len(self)).astype(np.int64)
        return counts

    def validate(self) -> None:
        """For tests: count the seats of every shape that was asked for, and compare."""
        for seating in list(self._counts):
            counted, fresh = self._counted(seating), _Counts(self)
            fresh.follow(seating)
            assert (counted.sums == self.sums(seating.seats())).all(), "stale seats of a domain"
            assert (counted.table == fresh.table).all(), "stale sizes of a domain"


class _Counts:
    """Seats of one shape in the domains of one level; only what has changed is counted again."""

    def __init__(self, level: Level) -> None:
        self._level = level
        self._clock = -1
        # Of each row, and where the table has rows of so many; then of each domain. The last one
        # is of the nodes that are in none.
        self.seats: Ints = np.zeros(0, np.int64)
        self._lines: Ints = np.zeros(0, np.int64)
        self._sums: Ints = np.zeros(len(level) + 1, np.int64)
        self.sums = self._sums[:-1]
        # How many nodes of each domain there are of each number of seats.
        self._table: Ints = np.zeros((_WIDE, len(level) + 1), np.int64)
        self.table = self._table[:, :-1]
        self.table[0] = np.bincount(level.ids, minlength=len(level))
        self._cells = self._table.reshape(-1)

    def follow(self, seating: Seating) -> None:
        seats = seating.seats()
        if self._clock == seating.clock:
            return
        if len(self.seats) < len(seats):
            self.seats = np.pad(self.seats, (0, len(seats) - len(self.seats)))
            self._lines = np.pad(self._lines, (0, len(seats) - len(self._lines)))
        rows = seating.touched_since(self._clock)
        self._clock = seating.clock
        if not len(rows):
            return
        new = seats.take(rows)
        more, before = new - self.seats.take(rows), self._lines.take(rows)
        after = np.minimum(new, _WIDE - 1) * len(self._sums)
        self.seats[rows], self._lines[rows] = new, after
        which, ids = self._level.places_of(rows)
        if which is not None:
            more, before, after = more.take(which), before.take(which), after.take(which)
        np.add.at(self._sums, ids, more)
        np.subtract.at(self._cells, before + ids, 1)
        np.add.at(self._cells, after + ids, 1)


class Tiers:
    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._drawn = HyperNodes()
        # How often HyperNodes have changed.
        self.redrawn = 0
        self._clock = -1
        self._seen: list[NodeFacts | None] = []
        # By their label keys; and by one key alone.
        self._levels: dict[tuple[str, ...], list[Level]] = {}
        self._labels: dict[str, Level] = {}
        self._orders: dict[tuple[str, ...], Rows] = {}

    # -- what is drawn by hand ---------------------------------------------------------------

    def set_hypernode(self, facts: HyperNodeFacts) -> None:
        if self._drawn.facts.get(facts.name) != facts:
            self._drawn.facts[facts.name] = facts
            self._redraw()

    def remove_hypernode(self, name: str) -> None:
        if self._drawn.facts.pop(name, None) is not None:
            self._redraw()

    def _redraw(self) -> None:
        self.redrawn += 1
        self._forget()
        self._columns.alter()

    # -- what there is -----------------------------------------------------------------------

    def levels(self, keys: tuple[str, ...]) -> list[Level]:
        """All tiers that have a domain, the nearest first; `keys`: node labels, the same way."""
        self._refresh()
        levels = self._levels.get(keys)
        if levels is None:
            levels = self._hypernode_levels() if self._drawn else self._label_levels(keys)
            levels = self._levels[keys] = [level for level in levels if len(level)]
            self._orders[keys] = self._order(levels)
            if levels:
                self._arrange(levels, self._orders[keys])
        return levels

    def everywhere(self, keys: tuple[str, ...]) -> Rows:
        """All rows, neighbours side by side."""
        self.levels(keys)
        return self._orders[keys]

    def by_label(self, key: str) -> Level:
        """The domains of one node label, whatever the tiers are."""
        self._refresh()
        level = self._labels.get(key)
        if level is None:
            rows: dict[str, list[int]] = {}
            for row, node in self._nodes():
                if key in node.labels:
                    rows.setdefault(node.labels[key], []).append(row)
            level = self._labels[key] = Level(0, (key,), _noun(key), sorted(rows.items()))
        return level

    def allowed(self, request: Topology, keys: tuple[str, ...]) -> tuple[list[Level], bool]:
        """The tiers one of whose domains will do, the nearest first; whether any node will do."""
        if request.key:
            level = self.by_label(request.key)
            return [level] if len(level) else [], not request.required
        levels = self.levels(keys)
        if not request.required:
            return levels, True
        if request.tier_name:
            last = [at for at, level in enumerate(levels) if request.tier_name in level.titles]
            return levels[: max(last, default=-1) + 1], False
        if request.tier is None:
            return levels, True
        near = [level for level in levels if level.tier <= (request.tier or 0)]
        # The whole cluster is the domain above all others.
        return near, bool(levels) and request.tier > self._highest(levels, keys)

    def _highest(self, levels: list[Level], keys: tuple[str, ...]) -> int:
        return levels[-1].tier if self._drawn else len(keys)

    def validate(self) -> None:
        self._refresh()
        for level in (*chain.from_iterable(self._levels.values()), *self._labels.values()):
            level.validate()

    # -- keeping up --------------------------------------------------------------------------

    def _refresh(self) -> None:
        columns = self._columns
        if columns.last_altered <= self._clock:
            return
        rows = columns.touched_since(self._clock).tolist()
        self._clock = columns.clock
        nodes, seen = columns.nodes, self._seen
        seen.extend([None] * (len(nodes) - len(seen)))
        self._seen = list(nodes)
        if (self._levels or self._labels) and any(_moved(seen[row], nodes[row]) for row in rows):
            self._forget()

    def _forget(self) -> None:
        self._levels.clear()
        self._labels.clear()
        self._orders.clear()

    def _nodes(self) -> Iterable[tuple[int, NodeFacts]]:
        """In the order of their names."""
        for row in self._columns.by_name().tolist():
            node = self._columns.nodes[row]
            if node is not None:
                yield row, node

    def _label_levels(self, keys: tuple[str, ...]) -> list[Level]:
        if not keys:
            return []
        whole: dict[tuple[str, ...], list[int]] = {}
        known = self._columns.by_name().tolist()
        labels = [self._columns.labels[row] for row in known]
        outward = [map(dict.get, labels, repeat(key), repeat("")) for key in keys[::-1]]
        for row, path in zip(known, zip(*outward, strict=True), strict=True):
            whole.setdefault(path, []).append(row)
        paths: list[dict[tuple[str, ...], list[int]]] = [{} for _ in keys]
        for path, rows in whole.items():
            for at in range(len(keys)):
                outer = path[: len(keys) - at]
                if outer[-1]:
                    paths[at].setdefault(outer, []).extend(rows)
        return [
            Level(
                at + 1,
                (key, _noun(key)),
                _noun(key),
                [("/".join(filter(None, path)), rows) for path, rows in sorted(domains.items())],
            )
            for at, (key, domains) in enumerate(zip(keys, paths, strict=True))
        ]

    def _hypernode_levels(self) -> list[Level]:
        row = self._columns.row
        members = self._drawn.domains({node.name: node for _, node in self._nodes()})
        by_tier: dict[int, list[HyperNodeFacts]] = {}
        for name in sorted(members):
            if members[name]:
                facts = self._drawn.facts[name]
                by_tier.setdefault(facts.tier, []).append(facts)
        levels = []
        for tier in sorted(by_tier):
            titles = tuple(dict.fromkeys(f.tier_name for f in by_tier[tier] if f.tier_name))
            noun = titles[0] if len(titles) == 1 else f"HyperNode of tier {tier}"
            domains = [(f.name, [row[node] for node in members[f.name]]) for f in by_tier[tier]]
            levels.append(Level(tier, titles, noun, domains))
        return levels

    def _order(self, levels: list[Level]) -> Rows:
        by_name = self._columns.by_name()
        if not levels or not len(by_name):
            return by_name
        keys = [np.arange(len(by_name))]
        for level in levels:
            place = np.full(len(self._columns.touched), len(level), np.intp)
            # Where domains overlap, the first by name counts.
            place[level.rows[::-1]] = level.ids[::-1]
            keys.append(place[by_name])
        order: Rows = by_name[np.lexsort(keys)]
        return order

    def _arrange(self, levels: list[Level], order: Rows) -> None:
        """Neighbours side by side in every domain, too."""
        place = np.zeros(len(self._columns.touched), np.intp)
        place[order] = np.arange(len(order))
        for level in levels[1:]:
            level.rows = level.rows[np.lexsort((place[level.rows], level.ids))]


def _moved(old: NodeFacts | None, new: NodeFacts | None) -> bool:
    """Whether it may be in other domains now."""
    if old is None or new is None:
        return old is not new
    return old is not new and (old.name, old.labels) != (new.name, new.labels)


def _noun(key: str) -> str:
    return key.rpartition("/")[2]
