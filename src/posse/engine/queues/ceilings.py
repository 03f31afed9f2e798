"""What a queue could have at most, if nobody ran: no waiting helps a gang that asks for more.

Capabilities stand against it for good, and so does what is guaranteed to the queues beside it,
whether or not these use it now: as long as the queues and the nodes are what they are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from posse.engine.columns import Columns, Ints
from posse.engine.fit.totals import Totals
from posse.engine.queues.ledgers import Ledger
from posse.engine.queues.lineages import Queue
from posse.engine.queues.moments import Moment
from posse.engine.resources import gravity

Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The most that there is of `resource` for a queue, which is less than was `asked` for.

    `queue` may use `has` of it at most; None: that is what today's nodes have. `kept` of that is
    for the `keepers`.
    """

    resource: str
    asked: int
    has: int
    kept: int = 0
    queue: Queue | None = None
    keepers: tuple[str, ...] = ()

    @property
    def most(self) -> int:
        return self.has - self.kept


class Ceilings(Ledger):
    def __init__(self, columns: Columns) -> None:
        super().__init__(columns)
        self._totals = Totals(columns)
        self._ceilings: Moment[int, tuple[Ints, Ints]] = Moment()

    def ceiling(self, name: str, asked: Ints) -> Ceiling | None:
        """What so much in all exceeds even if nobody else ran, the gravest resource in front."""
        queue = self.queue(name)
        ceilings = self._ceilings.known((self._built_at, self._columns.last_altered))
        if queue.row not in ceilings:
            ceilings[queue.row] = self._most_of(queue)
        most, kept = ceilings[queue.row]
        over = (asked > 0) & (asked > most)
        if not np.count_nonzero(over):
            return None
        total = self._totals.total()
        resource, column = self._gravest(over)
        wanted, there = int(asked[column]), [0, *kept[:, column].tolist()]
        found = [
            Ceiling(resource, wanted, int(self._most[each.row, column]), aside, each)
            for each, aside in zip(queue.lineage(), there, strict=True)
            if each is not self._top
        ]
        if there[-1]:
            found.append(Ceiling(resource, wanted, int(total[column]), there[-1]))
        # Of equals the nearest one is to be spoken of.
        lowest = min(found, key=lambda each: each.most)
        return self._with_keepers(queue, lowest, column) if lowest.kept else lowest

    def _gravest(self, over: Flags) -> tuple[str, int]:
        """Of these resources the one that people should hear of first, and its column."""
        names = [name for name, column in self._columns.column.items() if over[column]]
        resource = min(names, key=gravity)
        return resource, self._columns.column[resource]

    def _most_of(self, queue: Queue) -> tuple[Ints, Ints]:
        """The ceiling; and inside of each queue above, what is kept there for others."""
        kept: Ints = (self._floor_below[queue.above] - self._floor[queue.within]).cumsum(axis=0)
        most = np.minimum((self._most[queue.above] - kept).min(axis=0), self._most[queue.row])
        in_all = kept[-1]
        return np.where(in_all > 0, np.minimum(most, self._totals.total() - in_all), most), kept

    def _with_keepers(self, queue: Queue, found: Ceiling, column: int) -> Ceiling:
        keepers: list[str] = []
        for each in queue.lineage():
            if each is found.queue or each.parent is None:
                break
            keepers += [
                sibling.name
                for sibling in each.parent.children
                if sibling is not each and self._floor[sibling.row, column] > 0
            ]
        return Ceiling(
            found.resource, found.asked, found.has, found.kept, found.queue, tuple(sorted(keepers))
        )
