"""Gangs that did not fit: not looked at again until something that could help has changed.

Gangs that ask the same fail together and share one shortfall. What could help them is room that
came back, for good, on a node with a seat for one of their shapes; their own changes and their
queue's stir them anyway.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from posse.engine.columns import Columns, Rows
from posse.engine.decisions import Verdict
from posse.engine.gangs import Gang, Member
from posse.engine.seating import Seating

# What makes two gangs ask the same.
Signature = tuple[object, ...]


@dataclass(slots=True, eq=False)
class Demand:
    """Seats asked for pods of one role and shape: `wanted` of them, and never more than `most`."""

    role: str
    seating: Seating
    wanted: int
    most: int
    # Those who will sit there, in the order they are served; empty for announced members.
    members: list[Member] = field(default_factory=list)
    announced: bool = False
    # Rows already held for this role.
    at: list[int] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Shortfall:
    signature: Signature
    demands: list[Demand]
    # Every placement was ruled out; otherwise the search gave up.
    proven: bool
    # The minimum is seated; only members beyond it wait.
    surplus: bool
    # Room freed up to here was looked at.
    seen: int
    gangs: dict[str, Gang] = field(default_factory=dict)


class Shortfalls:
    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._known: dict[Signature, Shortfall] = {}
        self._of: dict[str, Shortfall] = {}
        # What each waiting gang is still to be told.
        self.untold: dict[str, Shortfall | Verdict] = {}

    def record(self, gang: Gang, blocked: Shortfall | Verdict) -> None:
        self.remove(gang)
        if isinstance(blocked, Shortfall):
            self._known[blocked.signature] = blocked
            self._of[gang.key] = blocked
            blocked.gangs[gang.key] = gang
        self.untold[gang.key] = blocked

    def remove(self, gang: Gang) -> None:
        self.untold.pop(gang.key, None)
        shortfall = self._of.pop(gang.key, None)
        if shortfall is not None:
            del shortfall.gangs[gang.key]
            if not shortfall.gangs and self._known.get(shortfall.signature) is shortfall:
                del self._known[shortfall.signature]

    def recall(self, signature: Signature) -> Shortfall | None:
        """The shortfall of gangs that ask the same, if it still stands."""
        shortfall = self._known.get(signature)
        if shortfall is None or self._helped(shortfall, {}, {}):
            return None
        return shortfall

    def awakened(self) -> list[Gang]:
        """Gangs that room freed since they were looked at could help."""
        rows: dict[int, Rows] = {}
        helped: dict[tuple[int, int], bool] = {}
        return [
            gang
            for shortfall in self._known.values()
            if self._helped(shortfall, rows, helped)
            for gang in shortfall.gangs.values()
        ]

    def _helped(
        self,
        shortfall: Shortfall,
        rows: dict[int, Rows],
        helped: dict[tuple[int, int], bool],
    ) -> bool:
        since = shortfall.seen
        if self._columns.last_freed <= since:
            return False
        if since not in rows:
            rows[since] = self._columns.freed_since(since)
        for demand in shortfall.demands:
            key = (id(demand.seating), since)
            if key not in helped:
                helped[key] = bool((demand.seating.seats()[rows[since]] > 0).any())
            if helped[key]:
                return True
        return False
