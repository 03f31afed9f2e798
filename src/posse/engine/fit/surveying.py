"""What the nodes offer to pods of one shape, and have left: counted once for all who ask."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from posse.engine.columns import Columns, Ints, Rows
from posse.engine.fit.eligibility import Eligibility
from posse.engine.fit.seating import Seating


@dataclass(frozen=True, slots=True)
class Pieces:
    """What is free of one resource on so many nodes, in the pieces in which it is."""

    nodes: int
    free: int
    # On the node that has most of it free.
    most: int
    # How many pods it is enough for, whatever else they ask for.
    seats: int
    # What is free towards one more of them, towards two more, ... where most is.
    begun: Ints


class Survey:
    """Holds for one moment: whatever changes in the columns, everything is counted anew."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._clock = -1
        self._usable: dict[Eligibility, Rows] = {}
        self._if_empty: dict[Seating, Ints] = {}
        self._sums: dict[tuple[Eligibility, str], tuple[int, int]] = {}
        self._pieces: dict[tuple[Eligibility, str, int], Pieces] = {}

    def usable(self, seating: Seating) -> Rows:
        """The rows of nodes that such pods may use at all."""
        self._forget()
        found = self._usable.get(seating.eligibility)
        if found is None:
            found = (seating.eligibility.bars() == 0).nonzero()[0]
            self._usable[seating.eligibility] = found
        return found

    def offered(self, seating: Seating) -> Ints:
        """What these have of each resource that is asked for."""
        rows = self.usable(seating)
        offered: Ints = self._columns.allocatable[rows[:, None], seating.columns]
        return offered

    def if_empty(self, seating: Seating) -> Ints:
        """What each of them would seat if it were empty."""
        self._forget()
        found = self._if_empty.get(seating)
        if found is None:
            found = (self.offered(seating) // seating.amounts).min(axis=1)
            self._if_empty[seating] = found
        return found

    def free_and_total(self, seatings: list[Seating], resource: str) -> tuple[int, int]:
        """Of one resource, on all nodes that any of these may use."""
        self._forget()
        first = seatings[0].eligibility
        if any(seating.eligibility is not first for seating in seatings):
            return self._sum(
                np.unique(np.concatenate([self.usable(each) for each in seatings])), resource
            )
        found = self._sums.get((first, resource))
        if found is None:
            found = self._sums[first, resource] = self._sum(self.usable(seatings[0]), resource)
        return found

    def pieces(self, seating: Seating, resource: str) -> Pieces:
        """Of one resource that such pods ask for, on the nodes that they may use."""
        self._forget()
        one = seating.asked[resource]
        found = self._pieces.get((seating.eligibility, resource, one))
        if found is None:
            free, offered = self._of(self.usable(seating), resource)
            seats = free // one
            begun = (free % one)[offered // one > seats]
            found = self._pieces[seating.eligibility, resource, one] = Pieces(
                len(free),
                int(free.sum()),
                int(free.max(initial=0)),
                int(seats.sum()),
                np.concatenate(([0], np.sort(begun)[::-1].cumsum())),
            )
        return found

    def _sum(self, rows: Rows, resource: str) -> tuple[int, int]:
        free, total = self._of(rows, resource)
        return int(free.sum()), int(total.sum())

    def _of(self, rows: Rows, resource: str) -> tuple[Ints, Ints]:
        columns = self._columns
        at = columns.column[resource]
        total: Ints = columns.allocatable[rows, at]
        return np.maximum(columns.free[rows, at], 0), total

    def _forget(self) -> None:
        if self._clock != self._columns.clock:
            self._clock = self._columns.clock
            self._usable, self._if_empty, self._sums, self._pieces = {}, {}, {}, {}
