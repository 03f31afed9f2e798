"""Gangs that have their nodes and are still to run, in the order in which their time is over.

Thousands of them cost nothing while nobody's time is over: only the head of a line is looked at.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container, Iterator

from posse.engine.gangs import Gang

NEVER = float("inf")

# A date and the key of a gang.
Entry = tuple[float, str]


class Starting:
    def __init__(self) -> None:
        self._gangs: dict[str, Gang] = {}
        # In the one line those that say how long they may take, by when that is over; in the other
        # the rest, by when they sat down. An entry that is not true any more does not count.
        self._lines: dict[bool, list[Entry]] = {True: [], False: []}

    def __contains__(self, gang: Gang) -> bool:
        return self._gangs.get(gang.key) is gang

    def add(self, gang: Gang) -> None:
        """It has its nodes; or had them already, and may say something else by now."""
        self._gangs[gang.key] = gang
        says, date = _place_of(gang)
        line, entry = self._lines[says], (date, gang.key)
        at = bisect_left(line, entry)
        if line[at : at + 1] != [entry]:
            line.insert(at, entry)
        if len(line) > 16 + 2 * len(self._gangs):
            line[:] = [each for each in line if self._whose(says, each) is not None]

    def remove(self, gang: Gang) -> None:
        self._gangs.pop(gang.key, None)

    def late(self, timeout: float, now: float) -> list[Gang]:
        """Those whose time is over; `timeout`: that of gangs that say nothing."""
        return [gang for says in (True, False) for _, gang in self._due(says, timeout, now)]

    def next_date(self, timeout: float) -> float | None:
        """When the next one's time is over."""
        heads = (next(self._due(says, timeout, NEVER), None) for says in (True, False))
        return min((head[0] for head in heads if head is not None), default=None)

    def validate(self, stirred: Container[str]) -> None:
        """For tests. Who has changed is added again before anyone asks."""
        for key, gang in self._gangs.items():
            says, date = _place_of(gang)
            there = (date, key) in self._lines[says]
            assert there or gang.overdue or key in stirred, f"{key} is in no line"
        for line in self._lines.values():
            assert line == sorted(line), "a line is out of order"

    def _due(self, says: bool, timeout: float, by: float) -> Iterator[tuple[float, Gang]]:
        """The gangs of a line whose time is over by then, and when it is.

        What does not count any more is dropped from the head of the line.
        """
        line = self._lines[says]
        while line and self._whose(says, line[0]) is None:
            del line[0]
        allowed = 0.0 if says else timeout
        for entry in line if says or timeout > 0 else ():
            date = entry[0] + allowed
            if date > by or date == NEVER:
                return
            gang = self._whose(says, entry)
            if gang is not None:
                yield date, gang

    def _whose(self, says: bool, entry: Entry) -> Gang | None:
        date, key = entry
        gang = self._gangs.get(key)
        if gang is None or gang.overdue or _place_of(gang) != (says, date):
            return None
        return gang


def _place_of(gang: Gang) -> tuple[bool, float]:
    """Whether it says how long it may take; when that is over, or when it sat down."""
    assert gang.facts is not None and gang.seated_since is not None
    timeout = gang.facts.start_timeout
    if timeout is None:
        return False, gang.seated_since
    return True, gang.seated_since + timeout if timeout > 0 else NEVER
