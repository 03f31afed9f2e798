"""Who is served first: queues by priority and share, gangs inside a queue as `Gang.rank` says.

The tree is walked from the top: of the queues that have somebody to serve, the one of higher
priority, then one below its guarantee, then one that stays within its due with the minimum of its
first gang, then the one that has least of what is due to it; where all of that is equal, the one
whose first gang comes first. So nobody borrows what another wants of its own, to give it back a
moment later. The order is asked for gang by gang, after each has been served, because what was
served changes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heappop, heappush

from posse.engine.gangs import Gang, Rank
from posse.engine.placement.shortfalls import Shortfall
from posse.engine.policy import Policy
from posse.engine.queues.lineages import Queue
from posse.engine.queues.quotas import still_stopped
from posse.engine.view import View

Entry = tuple[Rank, str]
# Priority, guarantee, due, share, then whose first gang comes first, then the name.
Turn = tuple[int, bool, bool, float, Entry, str]


def in_order(
    view: View, policy: Policy, hunts: Callable[[Gang], bool]
) -> Iterator[tuple[Gang, bool]]:
    """The gangs worth looking at: those that changed, and those that a change could help.

    Whom its quota stops as before is not looked at, unless it `hunts`: others could end for it.
    With one that wants members beyond its minimum comes whether other queues have somebody to
    serve, too. Of gangs that ask the same only the first is looked at, and the next one only if it
    was served.
    """
    view.tree.count_by(policy.share_weights)
    line = _Line(view)
    for stirred in view.stirred.values():
        if stirred.key not in view.ailing and stirred.facts is not None:
            line.join(stirred)
    helped: dict[str, Shortfall] = {}

    def enter(shortfall: Shortfall) -> None:
        gang = shortfall.first()
        if gang is not None and gang.key not in view.ailing:
            if not hunts(gang) and still_stopped(view, shortfall):
                return
            helped[gang.key] = shortfall
            line.join(gang)

    for shortfall in view.shortfalls.awakened():
        enter(shortfall)
    while (key := line.next()) is not None:
        gang = view.gangs.get(key)
        if gang is None or gang.facts is None or key in view.ailing:
            continue
        view.stirred.pop(key, None)
        if gang.at_rest:
            continue
        waiting = len(gang.muster.waiting)
        yield gang, not gang.short and line.others
        if 0 < len(gang.muster.waiting) < waiting and key not in view.stirred:
            line.join(gang)
        if key in helped and view.shortfalls.of(gang) is not helped[key]:
            enter(helped.pop(key))


class _Line:
    """Who waits to be served, by queue. Where only one queue has any, no share is looked at."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._tree = view.tree
        self._scarce = view.tree.scarce()
        self._gangs: dict[str, list[Entry]] = {}
        # Of each queue that has some: those of its children with somebody to serve, as a heap in
        # which only what is `_current` counts.
        self._turns: dict[str, list[Turn]] = {}
        self._current: dict[str, Turn] = {}
        self._arranged = False
        self._served = ""

    def join(self, gang: Gang) -> None:
        assert gang.facts is not None
        name = gang.facts.queue
        entries = self._gangs.get(name)
        if entries is None:
            entries = self._gangs[name] = []
            self._arranged = False
        heappush(entries, (gang.rank, gang.key))
        if self._arranged:
            self._arrange(self._tree.queue(name))

    @property
    def others(self) -> bool:
        """Whether somebody of another queue than the one just served is still to be served."""
        return len(self._gangs) > 1 and any(
            entries and name != self._served for name, entries in self._gangs.items()
        )

    def next(self) -> str | None:
        """The key of the next gang."""
        if len(self._gangs) < 2:
            return next((heappop(entries)[1] for entries in self._gangs.values() if entries), None)
        if not self._arranged:
            self._turns, self._current = {}, {}
            for name in self._gangs:
                self._arrange(self._tree.queue(name))
            self._arranged = True
        elif self._served:
            self._arrange(self._tree.queue(self._served))
        at = self._tree.top
        while not (entries := self._gangs.get(at.name)):
            below = self._first(at)
            if below is None:
                return None
            at = self._tree.queue(below[-1])
        self._served = at.name
        return heappop(entries)[1]

    def _arrange(self, queue: Queue) -> None:
        """Find the turn of the queue and its ancestors anew, from below."""
        while (parent := queue.parent) is not None:
            turn = self._turn(queue)
            if turn is None:
                self._current.pop(queue.name, None)
            elif self._current.get(queue.name) != turn:
                self._current[queue.name] = turn
                heappush(self._turns.setdefault(parent.name, []), turn)
            queue = parent

    def _turn(self, queue: Queue) -> Turn | None:
        if entries := self._gangs.get(queue.name):
            head = entries[0]
        elif below := self._first(queue):
            head = below[4]
        else:
            return None
        priority, met, share = self._tree.standing(queue)
        return priority, met, self._borrows(queue, head), share, head, queue.name

    def _borrows(self, queue: Queue, head: Entry) -> bool:
        """Whether its first gang takes the queue beyond its due, or has its minimum already."""
        if not self._scarce:
            return False
        rank, key = head
        gang = self._view.gangs.get(key)
        return rank[0] or (gang is not None and self._tree.exceeds(queue, gang.asks()))

    def _first(self, queue: Queue) -> Turn | None:
        """The turn of the child that is to be served first."""
        turns = self._turns.get(queue.name)
        while turns:
            if self._current.get(turns[0][-1]) == turns[0]:
                return turns[0]
            heappop(turns)
        return None
