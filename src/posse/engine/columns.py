"""Nodes as rows, resources as columns: what each node has, gives and keeps back.

`free = allocatable - used - held + resting`, in whole base units; what is used is what the others
leave. `leaving` is the part of it that is on its way out: a seat may be held on it, and is taken up
when it is gone. Seats that somebody was ended for (`made`) rest on that first: only as far as they
are more than what is leaving do they take of what is free now.

A row belongs to a name, not to a node: a pod may be counted on a node before that node is known,
and still be counted after it is gone. A row is given to another name only when nothing refers to
it any more.

Readers that keep something computed per row ask which rows were touched since they last looked.
Room that came back for good is marked apart (`freed`): it is the only reason to look again at a
gang that did not fit. Tentative changes mark nothing freed until they are kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from operator import le
from types import TracebackType
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from posse.engine.facts import LARGEST, NodeFacts

Ints = NDArray[np.int64]
Rows = NDArray[np.intp]


class Use(Enum):
    """What an amount is: taken by a pod; by one that is leaving; held for a pod; held for one where
    others were ended for it."""

    TAKEN = 1
    LEAVING = 2
    HELD = 3
    MADE = 4


class Columns:
    def __init__(self) -> None:
        self.column: dict[str, int] = {}
        self.row: dict[str, int] = {}
        self.names: list[str] = []
        self.nodes: list[NodeFacts | None] = []
        # Of each node as it was last known, gone or not.
        self.labels: list[dict[str, str]] = []
        self.allocatable: Ints = np.zeros((16, 8), np.int64)
        self.held: Ints = np.zeros((16, 8), np.int64)
        self.leaving: Ints = np.zeros((16, 8), np.int64)
        # Of what is held, that for which others were ended; what of `leaving` it may not rest on
        # (see `set_apart`); and how much of it does.
        self.made: Ints = np.zeros((16, 8), np.int64)
        self._apart: Ints = np.zeros((16, 8), np.int64)
        self._resting: Ints = np.zeros((16, 8), np.int64)
        self.free: Ints = np.zeros((16, 8), np.int64)
        # How many columns there is room for; those beyond `column` are of nothing.
        self.width = 8
        self.touched: Ints = np.zeros(16, np.int64)
        self.freed: Ints = np.zeros(16, np.int64)
        # What is free and out of sight (see `Shadows`); None while nothing ever was.
        self._shade: Ints | None = None
        # A count of changes, not of seconds.
        self.clock = 0
        self.last_freed = 0
        self.last_altered = 0
        # How many pods are on their way out.
        self._departures = 0
        # How often a pod came to a node or left one.
        self.moves = 0
        # What all nodes offer together.
        self.offered: Ints = np.zeros(8, np.int64)
        self._references: list[int] = []
        self._spare: list[int] = []
        self._by_name: Rows | None = None
        self._sorted = False
        self._undo: list[tuple[Rows, Ints, int, Use]] = []
        self._depth = 0

    # -- who is where ------------------------------------------------------------------------

    def column_of(self, resource: str) -> int:
        """The column of a resource; one that no node offers is a column of zeros."""
        column = self.column.get(resource)
        if column is None:
            column = self.column[resource] = len(self.column)
            if column == self.width:
                self._grow(self.free.shape[0], 2 * column)
        return column

    def refer(self, name: str) -> int:
        """The row of a node name, kept for that name until `unrefer`."""
        row = self.row.get(name)
        if row is None:
            row = self.row[name] = self._new_row(name)
        self._references[row] += 1
        return row

    def refer_to(self, rows: list[int]) -> None:
        """Once more to each of these, however often it is among them."""
        references = self._references
        for row in rows:
            references[row] += 1

    def unrefer(self, row: int) -> None:
        self._references[row] -= 1
        if self._references[row] == 0:
            del self.row[self.names[row]]
            self.names[row] = ""
            self._spare.append(row)

    def by_name(self) -> Rows:
        """The rows of all known nodes in the order of their names: the last tie is broken here."""
        if self._by_name is None:
            # As they are listed at first, nodes come by name.
            self._sorted = None not in self.nodes and all(map(le, self.names, self.names[1:]))
            if self._sorted:
                self._by_name = np.arange(len(self.names))
            else:
                known = sorted(n for n, row in self.row.items() if self.nodes[row] is not None)
                self._by_name = np.array([self.row[n] for n in known], np.intp)
        return self._by_name

    def in_order(self, amounts: Ints) -> Ints:
        """What is counted per row, in the order of the nodes' names; nobody may change it."""
        rows = self.by_name()
        return amounts[: len(rows)] if self._sorted else amounts.take(rows)

    def set_node(self, facts: NodeFacts) -> None:
        row = self.row.get(facts.name)
        old = None if row is None else self.nodes[row]
        if old == facts:
            return
        if row is None or old is None:
            row = self.refer(facts.name)
            self._by_name = None
        self.nodes[row], self.labels[row] = facts, facts.labels
        self._offer(row, facts.allocatable)

    def remove_node(self, name: str) -> None:
        row = self.row.get(name)
        if row is None or self.nodes[row] is None:
            return
        self.nodes[row] = None
        self._by_name = None
        self._offer(row, {})
        self.unrefer(row)

    def _offer(self, row: int, allocatable: Mapping[str, int]) -> None:
        columns = [self.column_of(resource) for resource in allocatable]
        before = self.allocatable[row].copy()
        self.allocatable[row] = 0
        self.allocatable[row, columns] = [min(max(0, a), LARGEST) for a in allocatable.values()]
        more = self.allocatable[row] - before
        self.offered += more
        self.free[row] += more
        self.clock += 1
        self.touched[row] = self.freed[row] = self.last_freed = self.last_altered = self.clock

    def alter(self) -> None:
        """Something about the nodes has changed that nobody asks them for."""
        self.clock += 1
        self.last_freed = self.last_altered = self.clock

    def offers(self, resource: str) -> int:
        """What all nodes have of it together."""
        column = self.column.get(resource)
        return 0 if column is None else int(self.offered[column])

    # -- amounts -----------------------------------------------------------------------------

    @property
    def used(self) -> Ints:
        """Worked out anew each time: nobody needs it often."""
        return self.allocatable - self.free - self.held + self._resting

    def free_at(self, rows: Rows, columns: Rows) -> Ints:
        """What is free there and in sight."""
        room = self.free.take(rows, axis=0)
        if self._shade is not None:
            room -= self._shade.take(rows, axis=0)
        return room.take(columns, axis=1)

    def at_last(self, rows: Rows) -> Ints:
        """What is free there, in every column, once all that leaves is gone."""
        free: Ints = self.free[rows] - self._resting[rows] + self.leaving[rows]
        return free[:, : len(self.column)]

    def depart(self, row: int, by: Ints, sign: int) -> None:
        """So much more (or, with -1, less) of what is used on this row is on its way out."""
        self._departures += sign
        self.leaving[row] += sign * by
        self._rest(np.array([row], np.intp))
        self.clock += 1
        self.touched[row] = self.clock

    def set_apart(self, rows: Rows, by: Ints) -> None:
        """So much more (or less) of what is leaving these rows is one gang's to count on: no seats
        of others rest on it. Whoever sets it apart puts it back."""
        self._apart[rows] += by
        self._rest(rows)
        self.clock += 1
        self.touched[rows] = self.clock

    def shift(self, rows: Rows, by: Ints, sign: int = 1, use: Use = Use.TAKEN) -> None:
        """Use, or hold, so much more (or, with -1, less) at distinct rows: `by[row, column]`, none
        of it negative."""
        if by.shape[1] < self.width:
            # A column that nobody knew of when it was counted.
            by = np.pad(by, ((0, 0), (0, self.width - by.shape[1])))
        self._add(rows, by, sign, use)
        if self._depth:
            self._undo.append((rows, by, sign, use))
        elif sign < 0:
            self.freed[rows] = self.last_freed = self.clock

    def _add(self, rows: Rows, by: Ints, sign: int, use: Use) -> None:
        if sign < 0:
            by = -by
        self.free[rows] -= by
        if use is Use.HELD or use is Use.MADE:
            self.held[rows] += by
        if use is Use.MADE:
            self.made[rows] += by
        elif use is Use.LEAVING:
            self.leaving[rows] += by
        if use is Use.MADE or use is Use.LEAVING:
            self._rest(rows)
        self.clock += 1
        self.touched[rows] = self.clock

    def _rest(self, rows: Rows) -> None:
        """Find anew what of the seats there rests on what is leaving."""
        backing = np.maximum(self.leaving[rows] - self._apart[rows], 0)
        resting = np.minimum(self.made[rows], backing)
        self.free[rows] += resting - self._resting[rows]
        self._resting[rows] = resting

    def see_off(self, where: NDArray[np.bool_] | None = None) -> None:
        """Inside a tentative statement: what is on its way out, there or anywhere, is gone."""
        if not self._departures:
            return
        rows: Rows = np.flatnonzero(np.logical_or.reduce(self.leaving > 0, axis=1))
        if where is not None:
            rows = rows[where[rows]]
        if len(rows):
            self.shift(rows, self.leaving[rows], -1, Use.LEAVING)

    def shift_one(self, row: int, by: Ints, sign: int) -> None:
        """As `shift`, of what is used on one row, outside of any statement."""
        assert not self._depth, "facts do not change inside a tentative statement"
        self.free[row] -= sign * by
        self.clock += 1
        self.touched[row] = self.clock
        if sign < 0:
            self.freed[row] = self.last_freed = self.clock

    def shade(self, rows: Rows, by: Ints) -> None:
        """Keep so much more (or less) of what is free on these rows out of sight."""
        if self._shade is None:
            self._shade = np.zeros_like(self.free)
        self._shade[rows, : by.shape[1]] += by
        self.clock += 1
        self.touched[rows] = self.clock

    def mark_freed(self, rows: Rows) -> None:
        """There is more room on these rows, for good, than was seen before."""
        self.clock += 1
        self.freed[rows] = self.last_freed = self.clock

    def touched_since(self, clock: int) -> Rows:
        rows: Rows = (self.touched[: len(self.names)] > clock).nonzero()[0]
        return rows

    def freed_since(self, clock: int) -> Rows:
        rows: Rows = (self.freed[: len(self.names)] > clock).nonzero()[0]
        return rows

    # -- growing -----------------------------------------------------------------------------

    def _new_row(self, name: str) -> int:
        if self._spare:
            row = self._spare.pop()
            self.names[row], self.labels[row] = name, {}
            return row
        row = len(self.names)
        if row == self.free.shape[0]:
            self._grow(2 * row, self.width)
        self.names.append(name)
        self.nodes.append(None)
        self.labels.append({})
        self._references.append(0)
        return row

    def _grow(self, rows: int, columns: int) -> None:
        assert not self._depth, "facts do not change inside a tentative statement"
        old_rows, old_columns = self.free.shape
        wider = ((0, rows - old_rows), (0, columns - old_columns))
        self.allocatable = np.pad(self.allocatable, wider)
        self.held = np.pad(self.held, wider)
        self.leaving = np.pad(self.leaving, wider)
        self.free = np.pad(self.free, wider)
        self.made = np.pad(self.made, wider)
        self._apart = np.pad(self._apart, wider)
        self._resting = np.pad(self._resting, wider)
        self.width = columns
        if self._shade is not None:
            self._shade = np.pad(self._shade, wider)
        self.offered = np.pad(self.offered, wider[1])
        self.touched = np.pad(self.touched, wider[0])
        self.freed = np.pad(self.freed, wider[0])


class Charges(Protocol):
    """What is charged inside a statement, and goes back at its end."""

    def mark(self) -> int: ...

    def undo(self, mark: int) -> None: ...


class Attempt:
    """A statement: what happens to the columns inside is undone unless kept. Statements nest."""

    __slots__ = ("_charged", "_charges", "_columns", "_kept", "_mark")

    def __init__(self, columns: Columns, charges: Charges) -> None:
        self._columns = columns
        self._charges = charges
        self._kept = False

    def __enter__(self) -> Attempt:
        self._mark = self.mark()
        self._charged = self._charges.mark()
        self._columns._depth += 1
        return self

    def keep(self) -> None:
        self._kept = True

    def mark(self) -> int:
        """Where `back_to` goes back to."""
        return len(self._columns._undo)

    def back_to(self, mark: int) -> None:
        """What happened to the columns since then did not."""
        columns = self._columns
        while len(columns._undo) > mark:
            rows, by, sign, use = columns._undo.pop()
            columns._add(rows, by, -sign, use)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        columns = self._columns
        columns._depth -= 1
        self._charges.undo(self._charged)
        if error is not None or not self._kept:
            self.back_to(self._mark)
        if columns._depth == 0:
            for rows, _, sign, _ in columns._undo:
                if sign < 0:
                    columns.freed[rows] = columns.last_freed = columns.clock
            columns._undo.clear()
