"""Gangs that did not fit: not looked at again until something that could help has changed.

Gangs that ask the same share one shortfall: when the first of them in order does not fit, none
does. What could help is room that came back for good on a node with a seat for one of their
shapes, or a node that changed; where a quota stopped them, that less of it is in use or that it was
raised. Their own changes and their queue's stir them anyway.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from posse.engine.columns import Columns, Ints, Rows
from posse.engine.decisions import NEVER, Cause, Reason, Verdict
from posse.engine.gangs import Gang, Rank
from posse.engine.placement.demands import Demand, Signature
from posse.engine.placement.lines import Lines
from posse.engine.queues.tree import QueueTree
from posse.engine.reservation.shadows import Shadows


@dataclass(frozen=True, slots=True)
class Quota:
    """A quota stands against it, that of `queue`; None: what is kept free for other queues.

    `seen` is the tree's clock at the look. Not `alone`: some members lack room only. `never`: it
    stands against it whoever ends, as long as queues and nodes stay as they are. `asked` is what
    was too much; `alike`: the same is too much for all who share the shortfall.
    """

    verdict: Verdict
    queue: str | None
    seen: int
    asked: Ints
    alike: bool
    alone: bool = True
    never: bool = False


@dataclass(slots=True, eq=False)
class Shortfall:
    signature: Signature
    demands: list[Demand]
    # Every placement was ruled out; otherwise the search gave up.
    proven: bool
    # The minimum is seated; only members beyond it wait.
    surplus: bool
    # What had changed for the better, up to here, was looked at.
    seen: int
    quota: Quota | None = None
    # Who sat where was looked at up to here; None where company does not matter.
    moves: int | None = None
    # Of a surplus in parts: who would be the next to start together.
    upcoming: list[Demand] = field(default_factory=list)
    # Whose reservations were kept back from it, and those without which it would fit.
    cast: tuple[str, ...] = ()
    behind: tuple[str, ...] = ()
    # Its gangs could not start even if nobody ran, as long as this stays as it is.
    hopeless: object = None
    # What is to be told of it, where that is not for its demands to tell.
    verdict: Verdict | None = None
    # Whether today's nodes stand against its gangs for good, and when that was looked at.
    never: tuple[object, bool] = (None, False)
    # What kind of reason its gangs were told.
    told: tuple[Reason, Cause | None] | None = None
    # Victims were looked for since it was last looked at, or had news.
    sought: bool = False
    gangs: dict[str, Gang] = field(default_factory=dict)
    _ranked: list[tuple[Rank, str]] = field(default_factory=list)

    @property
    def waits(self) -> bool:
        """Its gangs wait for their minimum, and waiting may help them."""
        return not self.surplus and (self.quota is None or not self.quota.never)

    def add(self, gang: Gang) -> None:
        self.gangs[gang.key] = gang
        entry = (gang.rank, gang.key)
        at = bisect_left(self._ranked, entry)
        if self._ranked[at : at + 1] != [entry]:
            self._ranked.insert(at, entry)
        if len(self._ranked) > 16 + 2 * len(self.gangs):
            self.order()

    def order(self) -> None:
        self._ranked = sorted(
            (each.rank, key) for key, each in self.gangs.items() if each.facts is not None
        )

    def absorb(self, other: Shortfall) -> None:
        self._ranked = sorted([*self._ranked, *other._ranked])

    def first(self) -> Gang | None:
        """The first of its gangs in order. Those that left are dropped on the way."""
        while self._ranked:
            rank, key = self._ranked[0]
            gang = self.gangs.get(key)
            if gang is not None and gang.facts is not None and gang.rank == rank:
                return gang
            del self._ranked[0]
        return None

    def ranked(self) -> Iterator[Gang]:
        """All of its gangs in order; none may join or leave meanwhile."""
        for rank, key in self._ranked:
            gang = self.gangs.get(key)
            if gang is not None and gang.facts is not None and gang.rank == rank:
                yield gang


class Shortfalls:
    def __init__(self, columns: Columns, tree: QueueTree, shadows: Shadows) -> None:
        self._columns = columns
        self._tree = tree
        self._shadows = shadows
        self.lines = Lines(self._short_of_minimum, self._hopeless)
        self._known: dict[Signature, Shortfall] = {}
        self._of: dict[str, Shortfall] = {}
        # What each waiting gang is still to be told.
        self.untold: dict[str, Shortfall | Verdict] = {}

    def record(self, gang: Gang, blocked: Shortfall | Verdict) -> None:
        """This gang waits. Those that ask the same stay with the newest look at it."""
        if isinstance(blocked, Verdict):
            self._leave(gang)
            self.untold[gang.key] = blocked
            return
        known = self._known.setdefault(blocked.signature, blocked)
        waited = known.waits
        known.demands, known.proven = blocked.demands, blocked.proven
        known.surplus, known.seen = blocked.surplus, blocked.seen
        known.moves, known.upcoming = blocked.moves, blocked.upcoming
        known.behind = blocked.behind
        known.sought = False
        known.verdict = blocked.verdict
        known.quota = blocked.quota
        if waited != known.waits:
            for other in known.gangs.values():
                self.untold[other.key] = known
                self.lines.leave(other.key)
                if known.waits:
                    self.lines.join(other)
        before = self._of.get(gang.key)
        if before is not known:
            self.remove(gang)
            self._of[gang.key] = known
        known.add(gang)
        if before is not None and before is not known and self._outlived(before):
            # Those that ask the same stand behind whom this one stands behind now.
            self._merge(before, known)
        self.untold[gang.key] = known
        if not known.surplus:
            self.lines.join(gang)

    def _outlived(self, shortfall: Shortfall) -> bool:
        """Something was kept back from its gangs that is kept no more."""
        return any(owner not in self._shadows for owner in shortfall.cast)

    def _merge(self, old: Shortfall, new: Shortfall) -> None:
        if not old.gangs:
            return
        new.told = new.told or old.told
        new.gangs.update(old.gangs)
        new.absorb(old)
        for key in old.gangs:
            self._of[key] = new
            if key in self.untold:
                self.untold[key] = new
        old.gangs = {}
        del self._known[old.signature]

    def renew(self, shortfall: Shortfall, quota: Quota) -> None:
        """The same quota stands against its gangs, in other numbers: the first is told them."""
        shortfall.quota = quota
        shortfall.seen = self._columns.last_freed
        shortfall.sought = False
        first = shortfall.first()
        if first is not None:
            self.untold[first.key] = shortfall

    def tell(self, gang: Gang) -> None:
        """There is something new to be said to this gang, though it was not looked at."""
        shortfall = self._of.get(gang.key)
        if shortfall is not None:
            self.untold.setdefault(gang.key, shortfall)
            shortfall.sought = False

    def reconsider(self, gang: Gang) -> None:
        """A pod of the gang is new or has other labels: company may be otherwise to it."""
        shortfall = self._of.get(gang.key)
        if shortfall is not None and shortfall.moves is not None:
            shortfall.moves, shortfall.hopeless = -1, None

    def remove(self, gang: Gang) -> None:
        self.untold.pop(gang.key, None)
        self._leave(gang)

    def _leave(self, gang: Gang) -> None:
        shortfall = self._of.pop(gang.key, None)
        if shortfall is not None:
            self.lines.leave(gang.key)
            del shortfall.gangs[gang.key]
            if not shortfall.gangs:
                del self._known[shortfall.signature]

    def of(self, gang: Gang) -> Shortfall | None:
        return self._of.get(gang.key)

    def each(self) -> Iterable[Shortfall]:
        return self._known.values()

    def recall(self, signature: Signature) -> Shortfall | None:
        """The shortfall of gangs that ask the same, if it still stands."""
        shortfall = self._known.get(signature)
        if shortfall is None or self._helped(shortfall, {}, {}):
            return None
        return shortfall

    def awakened(self) -> list[Shortfall]:
        """Those that a change since their last look could help."""
        rows: dict[int, Rows] = {}
        by_cast: dict[tuple[str, ...], list[Shortfall]] = {}
        if self._shadows:
            for each in self._known.values():
                by_cast.setdefault(each.cast, []).append(each)
        else:
            by_cast[()] = list(self._known.values())
        found: list[Shortfall] = []
        for cast, known in by_cast.items():
            # Each is looked at without what was kept back from it.
            self._shadows.show(tuple(owner for owner in cast if owner in self._shadows))
            helped: dict[tuple[int, int], bool] = {}
            found += [each for each in known if self._helped(each, rows, helped)]
        self._shadows.show(())
        return found

    def _hopeless(self, gang: Gang) -> bool:
        """It was told that no waiting helps it."""
        shortfall = self._of[gang.key]
        return shortfall.told is not None and shortfall.told[1] in NEVER

    def _short_of_minimum(self, key: str) -> Gang | None:
        """Unless no waiting helps it."""
        shortfall = self._of.get(key)
        return None if shortfall is None or not shortfall.waits else shortfall.gangs[key]

    def _eased(self, quota: Quota, since: int) -> bool:
        """Whether more of the quota may be left than was, of the nodes since this change."""
        if quota.never and quota.alike:
            # Whoever ends is no help.
            return self._tree.altered_since(quota.seen) or self._columns.last_altered > since
        if quota.queue is None and self._columns.last_freed > since:
            return True
        return self._tree.eased_since(quota.queue, quota.seen)

    def _helped(
        self,
        shortfall: Shortfall,
        rows: dict[int, Rows],
        helped: dict[tuple[int, int], bool],
    ) -> bool:
        since = shortfall.seen
        quota = shortfall.quota
        if quota is not None:
            if self._eased(quota, since):
                return True
            if quota.alone:
                return False
        if self._columns.last_altered > since or self._outlived(shortfall):
            return True
        if shortfall.moves is not None and self._columns.moves > shortfall.moves:
            return True
        if self._columns.last_freed <= since:
            return False
        if since not in rows:
            rows[since] = self._columns.freed_since(since)
        for gang in islice(shortfall.gangs.values(), 1):
            # Whoever holds seats shares its shortfall with nobody, and they are free to it alone.
            if gang.holds and np.isin([hold.row for hold in gang.holds], rows[since]).any():
                return True
        for demand in shortfall.demands:
            key = (id(demand.seating), since)
            if key not in helped:
                helped[key] = bool((demand.seating.seats()[rows[since]] > 0).any())
            if helped[key]:
                return True
        return False
