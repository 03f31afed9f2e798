"""Queues as a weighted tree: what each may still use, what it deserves, and whose turn it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from operator import mul

import numpy as np
from numpy.typing import NDArray

from posse.engine.columns import Columns, Ints
from posse.engine.facts import Requests
from posse.engine.gangs import Amounts
from posse.engine.queues.ceilings import Ceilings, Flags
from posse.engine.queues.ledgers import UNLIMITED
from posse.engine.queues.limits import Bounds, Limit
from posse.engine.queues.lineages import Queue, branches
from posse.engine.queues.moments import Moment
from posse.engine.queues.sharing import fill


@dataclass(frozen=True, slots=True)
class Entitlement:
    """A queue's part of what it has to share with its siblings, whether or not it wants it all.

    `whole` over `parts` of each resource: kept apart so that equal parts compare equal.
    """

    whole: NDArray[np.float64]
    parts: int = 1

    def filled(self, used: Ints, of: Flags) -> NDArray[np.float64]:
        """How much of it so much is, of each of these resources; any of nothing is infinitely."""
        has, whole = used[of], self.whole[of]
        none = np.where(has > 0, np.inf, 1.0)
        return np.where(whole > 0, has * self.parts / np.maximum(whole, 1), none)


class QueueTree(Ceilings):
    def __init__(self, columns: Columns) -> None:
        super().__init__(columns)
        self._weights: Requests = ()
        # One over what the cluster has of each resource, weighed.
        self._scale: list[float] = []
        self._scaled_at = (-1, 0)
        self._deserved: Moment[str, Ints] = Moment()
        # What it may still take within its due, by column.
        self._slack: Moment[int, list[int]] = Moment()
        self._entitled: Moment[str, Entitlement] = Moment()
        self._rooms: Moment[int, Ints] = Moment()
        self._bounds: Moment[tuple[int, int], Bounds] = Moment()
        self._standing: Moment[int, tuple[int, bool, float]] = Moment()
        self._branching: Moment[tuple[str, str], tuple[list[Queue], list[Queue]]] = Moment()

    # -- limits ------------------------------------------------------------------------------

    def room(self, name: str) -> Ints:
        """How much more the queue may take of each resource, whether or not nodes have it; nobody
        may change it."""
        queue = self.queue(name)
        rooms = self._rooms.known((self.clock, self._columns.clock))
        room = rooms.get(queue.row)
        if room is None:
            room = rooms[queue.row] = self._room_of(queue)
        return room

    def _room_of(self, queue: Queue) -> Ints:
        first, *others = queue.limited or [queue.row]
        room: Ints = self._most[first] - self._used[first]
        for row in others:
            np.minimum(room, self._most[row] - self._used[row], out=room)
        # Of few resources anything is guaranteed: counted one by one, each costs little.
        for column in self._guaranteed:
            if self._unmet.item(0, column) > 0:
                room[column] = min(room.item(column), self._room_beside(queue, column))
        return room

    def _room_beside(self, queue: Queue, column: int) -> int:
        """How much more of it the queue may take without what is kept for others."""
        kept, room = 0, UNLIMITED
        for inner, outer in pairwise(queue.path):
            kept += self._unmet_below.item(outer, column) - self._unmet.item(inner, column)
            left = self._most.item(outer, column) - self._used.item(outer, column)
            room = min(room, left - kept)
        return min(room, self._totals.free().item(column) - kept) if kept > 0 else room

    def binds(self, name: str) -> bool:
        """Whether anything limits the queue at all."""
        return bool(self.queue(name).limited or self._guaranteed)

    def limit(self, name: str, over: Flags, asked: Ints, kept: Ints | None) -> Limit:
        """The limit that so much more exceeds, the gravest resource of those over it in front.

        `kept` of what is used is the asker's own.
        """
        queue = self.queue(name)
        resource, column = self._gravest(over)
        known = self._bounds.known((self.clock, self._columns.clock))
        bounds = known.get((queue.row, column))
        if bounds is None:
            bounds = known[queue.row, column] = self._bounds_of(queue, column)
        own = 0 if kept is None else int(kept[column])
        return bounds.limit(resource, int(asked[column]), own)

    def _bounds_of(self, queue: Queue, column: int) -> Bounds:
        bounds = Bounds()
        inside = self._kept_inside(queue)[:, column].tolist()
        keepers: list[str] = []
        for each, kept in zip(queue.lineage(), [0, *inside], strict=True):
            most, used = int(self._most[each.row, column]), int(self._used[each.row, column])
            bounds.capabilities.insert(0, (each, most, used))
            if each is not queue:
                left = self._totals.free()[column] if each is self._top else most - used
                bounds.guarantees.append((each, int(left), kept, tuple(sorted(keepers))))
            if each.parent is not None:
                unmet = self._unmet[each.parent.rows_below, column].tolist()
                keepers += [
                    sibling.name
                    for sibling, lacks in zip(each.parent.children, unmet, strict=True)
                    if sibling is not each and lacks > 0
                ]
        return bounds

    def _kept_inside(self, queue: Queue) -> Ints:
        """What is kept, inside of each queue above this one, for others than it and its own."""
        below = self._unmet_below.take(queue.above, axis=0)
        kept: Ints = (below - self._unmet.take(queue.within, axis=0)).cumsum(axis=0)
        return kept

    # -- what is wrong with them -------------------------------------------------------------

    def problems(self) -> dict[str, str]:
        """Why nothing may start in some queues."""
        self._settle()
        return {name: q.problem for name, q in sorted(self._queues.items()) if q.problem}

    def oddities(self) -> dict[str, str]:
        """What somebody should look at, though the queues can be used."""
        self._settle()
        found = {name: self._oddity(queue) for name, queue in sorted(self._queues.items())}
        return {name: why for name, why in found.items() if why}

    def _oddity(self, queue: Queue) -> str:
        most = self._most[queue.row]
        for above in queue.lineage():
            if above is queue or above is self._top:
                continue
            over = (most < UNLIMITED) & (most > self._most[above.row])
            if over.any():
                return (
                    f"its capability of {self._gravest(over)[0]} is more than that of queue"
                    f" {above.name}, of which it is part; the smaller one counts"
                )
        over = self.vector(queue.facts.guarantee) > most
        if over.any():
            return (
                f"its guarantee of {self._gravest(over)[0]} is more than its capability;"
                " the smaller one counts"
            )
        promised = [self.vector(child.facts.guarantee) for child in queue.children]
        over = np.sum(promised, axis=0) > most
        if over.any():
            return f"its queues are guaranteed more {self._gravest(over)[0]} than it may use"
        return ""

    # -- shares ------------------------------------------------------------------------------

    def count_by(self, weights: Requests) -> None:
        """How much each resource counts in shares, in thousandths."""
        if weights != self._weights:
            self._weights = weights
            self._scaled_at = (-1, 0)

    def share(self, name: str) -> float:
        """How much of what is due to it the queue has: 1 is just its due beside its siblings."""
        queue = self.queue(name)
        return self.share_of(queue, self._used[queue.row])

    def share_of(self, queue: Queue, used: Ints) -> float:
        if queue.facts.deserved:
            most = 0.0
            for resource, due in queue.facts.deserved:
                has = int(used[self._columns.column_of(resource)])
                ratio = has / due if due else (np.inf if has else 1.0)
                most = max(most, float(ratio) * self._weight_of(resource))
            return most
        weights = queue.weight if queue.parent is None else queue.parent.weight_below
        return self._dominant(used) * max(1, weights) / queue.weight

    def deserved(self, name: str) -> Ints:
        """What is due to the queue of each resource: said, else by weight of what is left."""
        queue = self.queue(name)
        now = (self._wanted_at, self._columns.last_altered)
        self._deserved.known(now)
        self._entitled.known(now)
        return self._due(queue)

    def _due(self, queue: Queue) -> Ints:
        known = self._deserved.get(queue.name)
        if known is not None:
            return known
        if queue is self._top or queue.parent is None:
            due = self._deserved[queue.name] = self._totals.total()
            return due
        parent = queue.parent
        pot = self._due(parent)
        width = len(pot)
        children = parent.children
        dues = np.zeros((len(children), width), np.int64)
        said = np.zeros((len(children), width), bool)
        for at, child in enumerate(children):
            if child.facts.deserved:
                said[at] = True
                dues[at] = UNLIMITED
                for resource, amount in child.facts.deserved:
                    dues[at, self._columns.column_of(resource)] = amount
        rows = parent.rows_below
        used = self._used[rows]
        floors = self._kept[rows]
        # Who waits where nothing may start has no claim to anything.
        claims = np.where([[child.takes_work] for child in children], self._asked[rows], used)
        wants = np.maximum(np.minimum(claims, self._most[rows]), floors)
        # What a queue is said to deserve and does not want is there for the others meanwhile.
        taken = np.where(said & (dues < UNLIMITED), np.minimum(dues, wants), 0)
        left = np.maximum(pot - taken.sum(axis=0), 0)
        weights = [child.weight for child in children]
        for column in range(width):
            rest = [at for at in range(len(children)) if not said[at, column]]
            shares = fill(
                int(left[column]),
                [weights[at] for at in rest],
                floors[rest, column].tolist(),
                wants[rest, column].tolist(),
            )
            for at, share in zip(rest, shares, strict=True):
                dues[at, column] = share
        shared = np.minimum(left, self._totals.total()).astype(np.float64)
        parts = sum(child.weight for child in children if child.real and not child.facts.deserved)
        for at, child in enumerate(children):
            self._deserved[child.name] = dues[at]
            if child.facts.deserved:
                self._entitled[child.name] = Entitlement(dues[at].astype(np.float64))
            else:
                self._entitled[child.name] = Entitlement(shared * child.weight, max(1, parts))
        return self._deserved[queue.name]

    def _dominant(self, used: Ints) -> float:
        """The largest share of any resource that the cluster has."""
        offered = self._columns.offered
        if self._scaled_at != (self._columns.last_altered, len(offered)):
            self._scaled_at = (self._columns.last_altered, len(offered))
            self._scale = ((offered > 0) / np.maximum(offered, 1)).tolist()
            for resource, weight in self._weights:
                column = self._columns.column.get(resource)
                if column is not None:
                    self._scale[column] *= weight / 1000
        share: float = max(map(mul, used.tolist(), self._scale))
        return share

    def _weight_of(self, resource: str) -> float:
        return next((weight / 1000 for name, weight in self._weights if name == resource), 1.0)

    # -- the order of queues -----------------------------------------------------------------

    def standing(self, queue: Queue) -> tuple[int, bool, float]:
        """Its place beside its siblings: smaller is served earlier."""
        known = self._standing.known((self.clock, self._columns.last_altered, self._weights))
        standing = known.get(queue.row)
        if standing is None:
            standing = known[queue.row] = self._standing_of(queue)
        return standing

    def _standing_of(self, queue: Queue) -> tuple[int, bool, float]:
        used = self._used[queue.row]
        columns = [self._columns.column_of(resource) for resource, _ in queue.facts.guarantee]
        met = all(used.item(column) >= self._kept.item(queue.row, column) for column in columns)
        return -queue.facts.priority, met, self.share_of(queue, used)

    def scarce(self) -> bool:
        """Whether anybody asks for more than its due; most often all is there for everybody."""
        self._settle()
        asked = self._asked[self._top.row]
        return bool(
            (asked > self._totals.total()).any()
            or any(
                self._asked.item(queue.row, self._columns.column_of(resource)) > amount
                for queue in self._queues.values()
                for resource, amount in queue.facts.deserved
            )
        )

    def exceeds(self, queue: Queue, asked: Amounts) -> bool:
        """Whether with so much more it uses more than its due of anything."""
        known = self._slack.known((self.clock, self._columns.last_altered))
        slack = known.get(queue.row)
        if slack is None:
            left = self.deserved(queue.name) - self._used[queue.row]
            slack = known[queue.row] = left.tolist()
        for column, amount in asked:  # noqa: SIM110  asked for every gang that is looked at
            if amount > slack[column]:
                return True
        return False

    # -- who may take from whom --------------------------------------------------------------

    def may_take(
        self, name: str, amounts: Ints, giver: str | None = None, used: Ints | None = None
    ) -> bool:
        """Whether with so much more the queue stays within its due, and so do its ancestors, if
        all `used` so much before.

        With a giver only those are asked that are not also the giver's.
        """
        path = list(self.queue(name).lineage())[:-1]
        if giver is not None:
            path, _ = self._branches(name, giver)
        used = self._used if used is None else used
        asked = amounts > 0
        return not any(
            (asked & (used[each.row] + amounts > self.deserved(each.name))).any() for each in path
        )

    def may_take_all(
        self, name: str, amounts: Ints, lost: Mapping[str, Ints], used: Ints, insists: bool = False
    ) -> bool:
        """Whether the queue may have so much more once others, itself among them, have lost so
        much, of what all `used` before; and whether none of these is left poorer than it, unless
        it `insists`.

        Queues that count less are not asked: from them it takes beyond its due, too.
        """
        givers = [each for each in lost if self.outranks(name, each) == 0]
        if not givers:
            return True
        used = used.copy()
        for each, less in lost.items():
            used[self.queue(each).chain] -= less
        for giver in givers:
            if not self.may_take(name, amounts, giver, used):
                return False
            theirs, mine = self._branches(giver, name)
            contested = (lost[giver] > 0) & (amounts > 0)
            top, against = theirs[-1], mine[-1]
            with_it = used[against.row] + amounts
            if insists and self._promised(against, with_it, contested):
                continue
            if self._is_poorer(top, used[top.row], against, with_it, contested):
                return False
        return True

    def may_give(
        self,
        name: str,
        amounts: Ints,
        taker: str,
        taking: Ints | None = None,
        used: Ints | None = None,
        insists: bool = False,
    ) -> bool:
        """Whether the queue must bear to lose so much to the taker's, if all `used` so much before.

        Never below what is guaranteed. To a queue of higher priority down to that; to others only
        where it uses more than its due of what is asked for, and not so that it is left poorer of
        that than the taker, unless that one `insists` on what is promised to it.
        """
        path, rival = self._branches(name, taker)
        if not path or not rival:
            return True
        used = self._used if used is None else used
        if not all(each.facts.reclaimable for each in path):
            return False
        top, against = path[-1], rival[-1]
        if against.facts.priority < top.facts.priority:
            return False
        lost = amounts > 0
        contested = lost if taking is None else lost & (taking > 0)
        equals = against.facts.priority == top.facts.priority
        for each in path:
            if equals and not (contested & (used[each.row] > self.deserved(each.name))).any():
                return False
            after = used[each.row] - amounts
            if each.facts.guarantee and (lost & (after < self._kept[each.row])).any():
                return False
        if not equals or taking is None:
            return True
        left, with_it = used[top.row] - amounts, used[against.row] + taking
        if insists and self._promised(against, with_it, contested):
            return True
        return not self._is_poorer(top, left, against, with_it, contested)

    def may_insist(self, name: str, giver: str) -> bool:
        """Whether anything is promised to the queue beside the other."""
        mine, theirs = self._branches(name, giver)
        if not mine or not theirs:
            return False
        return bool(mine[-1].facts.deserved or mine[-1].facts.guarantee)

    def _promised(self, queue: Queue, with_it: Ints, contested: Flags) -> bool:
        """Whether it is said what the queue deserves of any of these resources, or so much of one
        is guaranteed to it."""
        column_of = self._columns.column_of
        if any(contested[column_of(name)] for name, _ in queue.facts.deserved):
            return True
        said = [(column_of(name), amount) for name, amount in queue.facts.guarantee]
        return any(contested[column] and with_it[column] <= amount for column, amount in said)

    def akin(self, name: str, other: str) -> bool:
        """Whether both are part of one queue, or one and the same."""
        mine, _ = self._branches(name, other)
        return not mine or mine[-1].parent is not self._top

    def _is_poorer(self, queue: Queue, left: Ints, other: Queue, with_it: Ints, of: Flags) -> bool:
        """Whether with so much left of these resources the queue has less than is due to it, and
        less of that than the other has of its own."""
        if not (of & (left < self.deserved(queue.name))).any():
            return False
        return self._fullness(queue, left, of) < self._fullness(other, with_it, of)

    def _fullness(self, queue: Queue, used: Ints, of: Flags) -> float:
        """The largest part of its entitlement that so much is, of any of these resources."""
        self.deserved(queue.name)
        filled = self._entitled[queue.name].filled(used, of)
        for resource, weight in self._weights:
            column = self._columns.column.get(resource)
            if column is not None and of[column]:
                filled[int(np.count_nonzero(of[:column]))] *= weight / 1000
        return float(filled.max(initial=0.0))

    def outranks(self, name: str, other: str) -> int | None:
        """Whether the queue's branch of the tree counts more than the other's (1), or less (-1).

        None where one of them is part of the other.
        """
        mine, theirs = self._branches(name, other)
        if not mine or not theirs:
            return None
        by = mine[-1].facts.priority - theirs[-1].facts.priority
        return (by > 0) - (by < 0)

    def ranked(self) -> bool:
        """Whether some queues count more than others."""
        self._settle()
        return len({queue.facts.priority for queue in self._queues.values()}) > 1

    def borrows(self, name: str) -> bool:
        """Whether the queue uses more than its due of anything."""
        queue = self.queue(name)
        return bool(np.count_nonzero(self._used[queue.row] > self.deserved(name)))

    def _branches(self, name: str, other: str) -> tuple[list[Queue], list[Queue]]:
        one, another = self.queue(name), self.queue(other)
        known = self._branching.known(self._built_at)
        found = known.get((name, other))
        if found is None:
            found = known[name, other] = branches(one, another)
        return found
