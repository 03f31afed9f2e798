"""Who waits in each queue for its minimum, in order; and the places of those in front.

A place in line is told to the first few only: whoever starts moves all behind it, and to tell
thousands of them so would be no news to anybody.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush

from posse.engine.gangs import Gang, Rank

# Who is told its place, from the front.
TOLD = 10
# So many that left may stand among the first before the line is closed up; and so many more than
# half of the line, wherever they stand.
_GAPS = 64

Entry = tuple[Rank, str]


class Lines:
    """`waiting` answers with the gang of that key if it waits for its minimum; whoever is
    `hopeless` is in nobody's way."""

    def __init__(
        self, waiting: Callable[[str], Gang | None], hopeless: Callable[[Gang], bool]
    ) -> None:
        self._waiting = waiting
        self._hopeless = hopeless
        # By queue, as heaps: who stands in line, those that left among them; and those that were
        # passed over, until the ground they stand on changes.
        self._lines: dict[str, list[Entry]] = {}
        # How many may have left each line since it was closed up.
        self._left: dict[str, int] = {}
        self._passed: dict[str, dict[str, Rank]] = {}
        self._ground: dict[str, object] = {}
        self._in_line: dict[str, tuple[str, Rank]] = {}
        # Queues in which somebody came or left since places were given.
        self._moved: dict[str, None] = {}
        self._front: dict[str, list[str]] = {}
        self._places: dict[str, tuple[str, int]] = {}
        # Whose place is another one now, and who was not told yet.
        self.untold: dict[str, None] = {}

    def __len__(self) -> int:
        """How many entries there are, those that left among them."""
        return sum(len(line) for line in self._lines.values())

    def join(self, gang: Gang) -> None:
        assert gang.facts is not None
        stands = (gang.facts.queue, gang.rank)
        if self._in_line.get(gang.key) != stands:
            self.leave(gang.key)
            self._in_line[gang.key] = stands
            heappush(self._lines.setdefault(stands[0], []), (stands[1], gang.key))
            self._moved[stands[0]] = None

    def leave(self, key: str) -> None:
        """It left, or may count again. Its entry stays until it comes to the front, or until so
        many may have left that closing up costs each of them no more than leaving did."""
        stood = self._in_line.get(key)
        if stood is not None:
            queue, _ = stood
            self._moved[queue] = None
            self._left[queue] = self._left.get(queue, 0) + 1
            if self._left[queue] > _GAPS + len(self._lines[queue]) // 2:
                self._close_up(queue)

    def queues(self) -> list[str]:
        """The queues in which somebody is blocked, or was."""
        return [queue for queue, line in self._lines.items() if line]

    def first(self, queue: str) -> Gang | None:
        """The first gang of the queue, of those not passed over."""
        line = self._lines.get(queue, [])
        while line:
            gang = self._stands(queue, line[0])
            if gang is not None:
                return gang
            self._drop(queue, heappop(line))
        return None

    def head(self, queue: str) -> Gang | None:
        """The first gang of the queue, passed over or not."""
        head = self.first(queue)
        for key, rank in self._passed.get(queue, {}).items():
            if head is None or rank < head.rank:
                head = self._stands(queue, (rank, key)) or head
        return head

    def first_few(self, queue: str, number: int) -> list[Gang]:
        """The first gangs of the queue that waiting helps, in order: the heap is walked no further
        than it must be.

        Who left its place and came back to it stands there twice, one entry behind the other.
        """
        line = self._lines.get(queue, [])
        found: list[Gang] = []
        gaps = 0
        next_ones = [(line[0], 0)] if line else []
        while next_ones and len(found) < number:
            entry, at = heappop(next_ones)
            gang = self._stands(queue, entry)
            if gang is None or gang in found[-1:]:
                gaps += 1
            elif not self._hopeless(gang):
                found.append(gang)
            for below in range(2 * at + 1, min(2 * at + 3, len(line))):
                heappush(next_ones, (line[below], below))
        if gaps > _GAPS:
            self._close_up(queue)
        return found

    def pass_over(self, queue: str) -> None:
        """The first of the queue is not to count until its ground changes, or it itself does."""
        rank, key = heappop(self._lines[queue])
        self._passed.setdefault(queue, {})[key] = rank
        self._in_line.pop(key, None)
        self._moved[queue] = None

    def recollect(self, queue: str, ground: object) -> None:
        """Whoever was passed over on other ground counts again."""
        if self._ground.get(queue) != ground:
            self._ground[queue] = ground
            for key, rank in self._passed.pop(queue, {}).items():
                if key not in self._in_line and self._stands(queue, (rank, key)) is not None:
                    self._in_line[key] = (queue, rank)
                    heappush(self._lines.setdefault(queue, []), (rank, key))
                    self._moved[queue] = None

    # -- places ------------------------------------------------------------------------------

    def place(self, gang: Gang) -> int:
        """Its place in line, from 1; 0: none, or behind those who are told."""
        return self._places.get(gang.key, ("", 0))[1]

    def give_places(self) -> None:
        """Find out who stands where now, in the queues where anybody came or left."""
        moved, self._moved = self._moved, {}
        for queue in moved:
            before = self._front.pop(queue, [])
            now = [gang.key for gang in self.first_few(queue, TOLD)]
            if now:
                self._front[queue] = now
            if now == before:
                continue
            for at, key in enumerate(before, start=1):
                if now[at - 1 : at] != [key]:
                    self.untold[key] = None
                if self._places.get(key) == (queue, at):
                    del self._places[key]
            for at, key in enumerate(now, start=1):
                self._places[key] = (queue, at)
                self.untold[key] = None

    # -- keeping it --------------------------------------------------------------------------

    def _stands(self, queue: str, entry: Entry) -> Gang | None:
        rank, key = entry
        gang = self._waiting(key)
        if gang is None or gang.facts is None or gang.facts.queue != queue or gang.rank != rank:
            return None
        return gang

    def _drop(self, queue: str, entry: Entry) -> None:
        rank, key = entry
        if self._in_line.get(key) == (queue, rank):
            del self._in_line[key]

    def _close_up(self, queue: str) -> None:
        kept: list[Entry] = []
        for entry in dict.fromkeys(self._lines[queue]):
            if self._stands(queue, entry) is not None:
                kept.append(entry)
            else:
                self._drop(queue, entry)
        heapify(kept)
        self._lines[queue] = kept
        self._left[queue] = 0
