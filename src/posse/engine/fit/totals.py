"""What the nodes that take pods have, and have free, in all."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from posse.engine.columns import Columns, Ints
from posse.engine.facts import NodeFacts


class Totals:
    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._clock = self._altered = -1
        # Of each row, whether its node takes pods.
        self._takes: NDArray[np.bool_] = np.zeros(0, bool)
        self._free: Ints = np.zeros((0, 0), np.int64)
        self._has: Ints = np.zeros((0, 0), np.int64)
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
        if self._free.shape != columns.used.shape:
            self._free, self._has = np.zeros_like(columns.used), np.zeros_like(columns.used)
            self._sum_free = np.zeros(columns.used.shape[1], np.int64)
            self._sum_has = np.zeros(columns.used.shape[1], np.int64)
            self._clock = -1
        if self._clock == columns.clock:
            return
        rows = columns.touched_since(self._clock)
        self._clock = columns.clock
        if self._altered != columns.last_altered or len(self._takes) < len(columns.nodes):
            self._altered = columns.last_altered
            self._takes = np.array([_takes_pods(node) for node in columns.nodes], bool)
        takes = self._takes[rows]
        has = columns.allocatable[rows] * takes[:, None]
        free = np.maximum(has - columns.used[rows] - columns.held[rows], 0) * takes[:, None]
        self._sum_has += has.sum(axis=0) - self._has[rows].sum(axis=0)
        self._sum_free += free.sum(axis=0) - self._free[rows].sum(axis=0)
        self._has[rows], self._free[rows] = has, free


def _takes_pods(node: NodeFacts | None) -> bool:
    return node is not None and node.ready and node.schedulable
