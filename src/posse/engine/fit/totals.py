"""What the nodes that take pods have, and have free, in all."""

from __future__ import annotations

import numpy as np

from posse.engine.columns import Columns, Ints


class Totals:
    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._clock = self._altered = -1
        self._free: Ints = np.zeros((0, 0), np.int64)
        # 1 where a node takes pods, row by row.
        self._takes: Ints = np.zeros((0, 1), np.int64)
        self._sum_free: Ints = np.zeros(0, np.int64)
        self._sum_has: Ints = np.zeros(0, np.int64)

    def free(self) -> Ints:
        self._refresh()
        return self._sum_free

    def total(self) -> Ints:
        self._refresh()
        return self._sum_has

    def _refresh(self) -> None:
        columns = self._columns
        if self._free.shape != columns.free.shape:
            self._free = np.zeros_like(columns.free)
            self._sum_free = np.zeros(columns.width, np.int64)
            self._clock = self._altered = -1
        if self._clock == columns.clock:
            return
        rows = columns.touched_since(self._clock)
        self._clock = columns.clock
        if self._altered != columns.last_altered:
            self._altered = columns.last_altered
            takes = [
                row for row, node in enumerate(columns.nodes) if node is not None and node.open
            ]
            self._takes = np.zeros((len(columns.touched), 1), np.int64)
            self._takes[takes] = 1
            self._sum_has = columns.allocatable[takes].sum(axis=0)
        free = columns.free.take(rows, axis=0)
        free *= self._takes.take(rows, axis=0)
        np.maximum(free, 0, out=free)
        self._sum_free += (free - self._free.take(rows, axis=0)).sum(axis=0)
        self._free[rows] = free
