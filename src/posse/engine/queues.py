"""Queues as a weighted tree: what each uses, may still use, deserves, and whose turn it is.

What a gang's seated members and kept seats take is charged to its queue and to every ancestor,
members on their way out too, until they are gone. Charges are recounted gang by gang, only for
gangs that changed, and asked for lazily. A tentative charge goes back at the end of its statement
even where the statement is kept: what was kept is counted by the gangs themselves.

Vectors have one place per column of the view's table. A queue that nobody described is there too,
without limits, while something is charged to it; `default` always is. A queue named `root`, where
there is one, is the parent of all that name none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from posse.engine.columns import Columns, Ints, Rows
from posse.engine.facts import DEFAULT_QUEUE, NodeFacts, QueueFacts, Requests
from posse.engine.gangs import NOWHERE, Gang
from posse.engine.resources import gravity
from posse.engine.seating import Seating
from posse.engine.sharing import fill

ROOT: Final = "root"
_TOP: Final = ""
UNLIMITED: Final = 1 << 62

Flags = NDArray[np.bool_]


@dataclass(slots=True, eq=False)
class Queue:
    """One place in the tree. `chain` are the rows of the queue and its ancestors, itself first.

    `above` and `within` are the same without the first, and without the last.
    """

    facts: QueueFacts
    row: int
    described: bool
    parent: Queue | None = None
    children: list[Queue] = field(default_factory=list)
    chain: Rows = field(default_factory=lambda: np.zeros(0, np.intp))
    above: Rows = field(default_factory=lambda: np.zeros(0, np.intp))
    within: Rows = field(default_factory=lambda: np.zeros(0, np.intp))
    # Why nothing may start in it: it has no place in the tree, or could not be read.
    problem: str = ""
    # Its use, or that of an ancestor, has an upper limit.
    bounded: bool = False
    # The rows and the weight of its children together.
    rows_below: Rows = field(default_factory=lambda: np.zeros(0, np.intp))
    weight_below: int = 0

    @property
    def name(self) -> str:
        return self.facts.name

    @property
    def weight(self) -> int:
        return max(1, self.facts.weight)

    @property
    def real(self) -> bool:
        return self.described or self.name == DEFAULT_QUEUE

    @property
    def takes_work(self) -> bool:
        return self.real and self.facts.open and not self.problem

    def lineage(self) -> Iterator[Queue]:
        """The queue and its ancestors, itself first."""
        at: Queue | None = self
        while at is not None:
            yield at
            at = at.parent


@dataclass(slots=True)
class Charge:
    """What a gang was last found to take, to ask for in all, and of which queue."""

    queue: str
    used: Ints
    asked: Ints


@dataclass(frozen=True, slots=True)
class Limit:
    """What keeps a gang from more: `resource`, of which `room` is left to it.

    `queue` is the one whose capability binds; None: what is kept for the `keepers` binds.
    """

    resource: str
    asked: int
    room: int
    queue: Queue | None = None
    most: int = 0
    used: int = 0
    free: int = 0
    keepers: tuple[str, ...] = ()


class QueueTree:
    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self.facts: dict[str, QueueFacts] = {}
        # A count of changes; when each queue last came to use less; when any was set or removed.
        self.clock = 0
        self._eased: dict[str, int] = {}
        self._altered_at = 0
        self._queues: dict[str, Queue] = {}
        self._top = Queue(QueueFacts(_TOP), 0, False)
        self._stale = True
        self._charges: dict[str, Charge] = {}
        self._unsettled: dict[str, Gang] = {}
        self._used: Ints = np.zeros((1, 8), np.int64)
        self._asked: Ints = np.zeros((1, 8), np.int64)
        self._most: Ints = np.zeros((1, 8), np.int64)
        self._left: Ints = np.zeros((1, 8), np.int64)
        self._kept: Ints = np.zeros((1, 8), np.int64)
        self._unmet: Ints = np.zeros((1, 8), np.int64)
        self._unmet_below: Ints = np.zeros((1, 8), np.int64)
        self._guarantees = False
        self._weights: Requests = ()
        # One over what the cluster has of each resource, weighed.
        self._scale: NDArray[np.float64] = np.zeros(8)
        self._scaled_at = (-1, 0)
        self._room = _Room(columns)
        self._deserved: dict[str, Ints] = {}
        self._deserved_at = (-1, -1)
        self._wanted_at = 0
        self._beyond: dict[int, Flags] = {}
        self._beyond_at = (-1, -1)
        self._branching: dict[tuple[str, str], tuple[list[Queue], list[Queue]]] = {}
        self._tentative: list[tuple[Rows, Ints]] = []

    # -- what is told ------------------------------------------------------------------------

    def set(self, facts: QueueFacts) -> dict[str, None]:
        """Answers with the queues that may be other ones to their gangs now."""
        old = self.facts.get(facts.name)
        self.facts[facts.name] = facts
        for resource, _ in (*facts.capability, *facts.guarantee, *facts.deserved):
            self._columns.column_of(resource)
        self._altered()
        return self._concerned(facts.name, facts.parent, "" if old is None else old.parent)

    def remove(self, name: str) -> dict[str, None]:
        old = self.facts.pop(name)
        self._altered()
        return self._concerned(name, old.parent)

    def _altered(self) -> None:
        self._stale = True
        self.clock += 1
        self._altered_at = self.clock

    def _concerned(self, *names: str) -> dict[str, None]:
        """These queues, and those that say they are part of them."""
        parts: dict[str, list[str]] = {}
        for facts in self.facts.values():
            parts.setdefault(facts.parent or ROOT, []).append(facts.name)
        concerned = dict.fromkeys([names[0]])
        for name in (found := [names[0]]):
            for part in parts.get(name, []):
                if part not in concerned:
                    concerned[part] = None
                    found.append(part)
        return concerned | dict.fromkeys(name for name in names if name)

    def count_again(self, gang: Gang) -> None:
        """What this gang takes may have changed."""
        self._unsettled[gang.key] = gang

    def dissolve(self, gang: Gang) -> None:
        """This gang is no more."""
        self._unsettled.pop(gang.key, None)
        charge = self._charges.pop(gang.key, None)
        if charge is not None:
            self._ensure()
            self._apply(charge.queue, -charge.used, -charge.asked)

    def charge(self, name: str, amounts: Ints) -> None:
        """Inside a tentative statement: as if the queue used so much more, or less."""
        queue = self.queue(name)
        self._use(queue.chain, amounts)
        self._tentative.append((queue.chain, amounts))

    def mark(self) -> int:
        return len(self._tentative)

    def undo(self, mark: int) -> None:
        while len(self._tentative) > mark:
            chain, amounts = self._tentative.pop()
            self._use(chain, -amounts)

    # -- what is there -----------------------------------------------------------------------

    def queue(self, name: str) -> Queue:
        self._settle()
        found = self._queues.get(name)
        if found is None:
            found = self._phantom(name)
        return found

    @property
    def top(self) -> Queue:
        """What all queues are part of; nobody's gangs are in it."""
        self._settle()
        return self._top

    def known(self, name: str) -> bool:
        return name == DEFAULT_QUEUE or name in self.facts

    def vector(self, amounts: Mapping[str, int] | Requests) -> Ints:
        """Named amounts by column."""
        pairs = amounts.items() if isinstance(amounts, Mapping) else amounts
        columns = [(self._columns.column_of(resource), amount) for resource, amount in pairs]
        vector = np.zeros(self._columns.used.shape[1], np.int64)
        for column, amount in columns:
            vector[column] += amount
        return vector

    def allocated(self, name: str) -> Ints:
        """What the queue and its descendants take, kept seats among it."""
        queue = self.queue(name)
        used: Ints = self._used[queue.row]
        return used

    def named(self, amounts: Ints) -> dict[str, int]:
        """The other way round, for people: zeros left out, sorted by name."""
        return {
            resource: int(amounts[column])
            for resource, column in sorted(self._columns.column.items())
            if column < len(amounts) and amounts[column]
        }

    def problems(self) -> dict[str, str]:
        """Why nothing may start in some queues."""
        self._settle()
        return {name: q.problem for name, q in sorted(self._queues.items()) if q.problem}

    def oddities(self) -> dict[str, str]:
        """What somebody should look at, though the queues can be used."""
        self._settle()
        found = {name: self._oddity(queue) for name, queue in sorted(self._queues.items())}
        return {name: why for name, why in found.items() if why}

    # -- limits ------------------------------------------------------------------------------

    def room(self, name: str) -> Ints:
        """How much more the queue may take of each resource, whether or not nodes have it."""
        queue = self.queue(name)
        room: Ints = self._left[queue.chain].min(axis=0)
        if self._guarantees and self._unmet[0].any():
            kept = self._others_unmet(queue)
            room = np.where(kept > 0, np.minimum(room, self._room.free() - kept), room)
        return room

    def total(self) -> Ints:
        """What the nodes that take pods have in all."""
        return self._room.total()

    def binds(self, name: str) -> bool:
        """Whether anything limits the queue at all."""
        return self.queue(name).bounded or self._guarantees

    def limit(self, name: str, over: Flags, asked: Ints, kept: Ints) -> Limit:
        """The limit that so much more exceeds, the gravest resource of those over it in front.

        `kept` of what is used is the asker's own.
        """
        queue = self.queue(name)
        resource, column = self._gravest(over)
        amount, own = int(asked[column]), int(kept[column])
        for each in reversed(list(queue.lineage())):
            most = int(self._most[each.row, column])
            used = int(self._used[each.row, column]) - own
            if used + amount > most:
                return Limit(resource, amount, most - used, each, most, used)
        free = int(self._room.free()[column]) + own
        room = free - int(self._others_unmet(queue)[column])
        keepers = self._keepers(queue, column)
        return Limit(resource, amount, room, free=free, keepers=keepers)

    def eased_since(self, name: str | None, clock: int) -> bool:
        """Whether since then the queue came to use less, or any came to have other limits."""
        self._settle()
        return self._altered_at > clock or self._eased.get(name or _TOP, 0) > clock

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
        if self._deserved_at != now:
            self._deserved = {}
            self._deserved_at = now
        return self._due(queue)

    def may_take(self, name: str, amounts: Ints, giver: str | None = None) -> bool:
        """Whether with so much more the queue stays within its due, and so do its ancestors.

        With a giver only those are asked that are not also the giver's.
        """
        queue = self.queue(name)
        common = self._meeting(queue, giver)
        for each in queue.lineage():
            if each is common or each is self._top:
                break
            after = self._used[each.row] + amounts
            if ((amounts > 0) & (after > self.deserved(each.name))).any():
                return False
        return True

    def may_give(self, name: str, amounts: Ints, taker: str, taking: Ints | None = None) -> bool:
        """Whether the queue must bear to lose so much to the taker's.

        Never below what is guaranteed. To a queue of higher priority down to that; to others only
        from what exceeds its due, and not so that it is left poorer than the taker.
        """
        path, rival = self._branches(name, taker)
        if not path or not rival:
            return True
        if not all(each.facts.reclaimable for each in path):
            return False
        top, against = path[-1], rival[-1]
        if against.facts.priority < top.facts.priority:
            return False
        lost = amounts > 0
        equals = against.facts.priority == top.facts.priority
        for each in path:
            if equals and not (lost & self._beyond_due(each)).any():
                return False
            after = self._used[each.row] - amounts
            if each.facts.guarantee and (lost & (after < self._kept[each.row])).any():
                return False
        if not equals:
            return True
        gain = np.zeros_like(amounts) if taking is None else taking
        left = self.share_of(top, self._used[top.row] - amounts)
        return left >= self.share_of(against, self._used[against.row] + gain)

    def outranks(self, name: str, other: str) -> int | None:
        """Whether the queue's branch of the tree counts more than the other's (1), or less (-1).

        None where one of them is part of the other.
        """
        mine, theirs = self._branches(name, other)
        if not mine or not theirs:
            return None
        by = mine[-1].facts.priority - theirs[-1].facts.priority
        return (by > 0) - (by < 0)

    def _branches(self, name: str, other: str) -> tuple[list[Queue], list[Queue]]:
        """Each of the two queues and who is above it, up to where they meet."""
        queue = self.queue(name)
        found = self._branching.get((name, other))
        if found is None:
            common = self._meeting(queue, other)
            mine = [each for each in queue.lineage() if _below(each, common)]
            theirs = [each for each in self.queue(other).lineage() if _below(each, common)]
            found = self._branching[name, other] = mine, theirs
        return found

    def _beyond_due(self, queue: Queue) -> Flags:
        """Of which resources it uses more than it deserves."""
        now = (self.clock, self._columns.last_altered)
        if self._beyond_at != now:
            self._beyond_at, self._beyond = now, {}
        found = self._beyond.get(queue.row)
        if found is None:
            found = self._beyond[queue.row] = self._used[queue.row] > self.deserved(queue.name)
        return found

    # -- the order of queues -----------------------------------------------------------------

    def standing(self, queue: Queue) -> tuple[int, bool, float]:
        """Its place beside its siblings: smaller is served earlier."""
        used = self._used[queue.row]
        met = True
        if queue.facts.guarantee:
            met = bool((used >= self._kept[queue.row]).all())
        return -queue.facts.priority, met, self.share_of(queue, used)

    # -- inside ------------------------------------------------------------------------------

    def _dominant(self, used: Ints) -> float:
        """The largest share of any resource that the cluster has."""
        offered = self._columns.offered
        if self._scaled_at != (self._columns.last_altered, len(offered)):
            self._scaled_at = (self._columns.last_altered, len(offered))
            self._scale = (offered > 0) / np.maximum(offered, 1)
            for resource, weight in self._weights:
                column = self._columns.column.get(resource)
                if column is not None:
                    self._scale[column] *= weight / 1000
        return float((used * self._scale).max())

    def _weight_of(self, resource: str) -> float:
        return next((weight / 1000 for name, weight in self._weights if name == resource), 1.0)

    def _gravest(self, over: Flags) -> tuple[str, int]:
        names = [r for r, column in self._columns.column.items() if over[column]]
        resource = min(names, key=gravity)
        return resource, self._columns.column[resource]

    def _keepers(self, queue: Queue, column: int) -> tuple[str, ...]:
        found: list[str] = []
        for each in queue.lineage():
            if each.parent is not None:
                found += [
                    sibling.name
                    for sibling in each.parent.children
                    if sibling is not each and self._unmet[sibling.row, column] > 0
                ]
        return tuple(sorted(found))

    def _others_unmet(self, queue: Queue) -> Ints:
        """What is kept for queues that are neither this one, nor above it, nor below it."""
        others: Ints = (self._unmet_below[queue.above] - self._unmet[queue.within]).sum(axis=0)
        return others

    def _use(self, chain: Rows, by: Ints) -> None:
        """A queue and its ancestors use so much more, or less."""
        self._used[chain] += by
        self._left[chain] -= by
        self.clock += 1
        if self._guarantees:
            self._meet(chain.tolist())

    def _meet(self, chain: list[int]) -> None:
        """Find anew what the first of these is short of its guarantee, then those above it.

        A queue is short of what it lacks itself or of what those below it lack together, whichever
        is more.
        """
        for at, row in enumerate(chain):
            short = np.maximum(self._kept[row] - self._used[row], self._unmet_below[row])
            np.maximum(short, 0, out=short)
            by = short - self._unmet[row]
            if by.any():
                self._unmet[row] = short
                if at + 1 < len(chain):
                    self._unmet_below[chain[at + 1]] += by

    def _due(self, queue: Queue) -> Ints:
        known = self._deserved.get(queue.name)
        if known is not None:
            return known
        if queue is self._top or queue.parent is None:
            due = self._deserved[queue.name] = self._room.total()
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
        left = np.maximum(pot - np.where(said & (dues < UNLIMITED), dues, 0).sum(axis=0), 0)
        floors = self._kept[rows]
        # Who waits where nothing may start has no claim to anything.
        claims = np.where([[child.takes_work] for child in children], self._asked[rows], used)
        wants = np.maximum(np.minimum(claims, self._most[rows]), floors)
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
        for at, child in enumerate(children):
            self._deserved[child.name] = dues[at]
        return self._deserved[queue.name]

    def _meeting(self, queue: Queue, other: str | None) -> Queue | None:
        """The nearest that is both queues' ancestor, or one of the two."""
        if other is None:
            return None
        theirs = {id(each) for each in self.queue(other).lineage()}
        return next((each for each in queue.lineage() if id(each) in theirs), None)

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
        over = self._kept[queue.row] > most
        if over.any():
            return f"its guarantee of {self._gravest(over)[0]} is more than its capability"
        over = self._kept[queue.rows_below].sum(axis=0) > most
        if over.any():
            return f"its queues are guaranteed more {self._gravest(over)[0]} than it may use"
        return ""

    # -- keeping count -----------------------------------------------------------------------

    def _settle(self) -> None:
        self._ensure()
        if not self._unsettled:
            return
        unsettled, self._unsettled = self._unsettled, {}
        for key, gang in unsettled.items():
            queue = gang.queue
            if not queue:
                continue
            old = self._charges.get(key)
            used, asked = self._recount(gang)
            if old is not None and old.queue == queue and len(old.used) == len(used):
                self._apply(queue, used - old.used, asked - old.asked)
            else:
                if old is not None:
                    self._apply(old.queue, -old.used, -old.asked)
                self._apply(queue, used, asked)
            self._charges[key] = Charge(queue, used, asked)

    def validate(self, gangs: Iterable[Gang]) -> None:
        """Recount everything and compare."""
        self._settle()
        used = np.zeros_like(self._used)
        for gang in gangs:
            if gang.queue:
                mine, _ = self._recount(gang)
                used[self.queue(gang.queue).chain] += mine
        assert not self._tentative, "a charge outlived its statement"
        assert (used == self._used).all(), "what queues use differs from a recount"

    def _recount(self, gang: Gang) -> tuple[Ints, Ints]:
        width = self._used.shape[1]
        used, asked = np.zeros(width, np.int64), np.zeros(width, np.int64)
        counts: dict[int, list[int]] = {}
        seatings: dict[int, Seating] = {}
        for member in gang.members.values():
            seating = member.seating
            tally = counts.get(id(seating))
            if tally is None:
                tally = counts[id(seating)] = [0, 0]
                seatings[id(seating)] = seating
            tally[member.row == NOWHERE] += 1
        for which, (seated, waiting) in counts.items():
            seating = seatings[which]
            if seated:
                used[seating.columns] += seated * seating.amounts
            if waiting and gang.facts is not None:
                asked[seating.columns] += waiting * seating.amounts
        for hold in gang.holds:
            used[hold.seating.columns] += hold.seating.amounts
        asked += used
        return used, asked

    def _apply(self, name: str, used: Ints, asked: Ints) -> None:
        queue = self._queues.get(name) or self._phantom(name)
        if len(used) < self._used.shape[1]:
            more = (0, self._used.shape[1] - len(used))
            used, asked = np.pad(used, more), np.pad(asked, more)
        if asked.any():
            self._asked[queue.chain] += asked
            self.clock += 1
            self._wanted_at = self.clock
        if used.any():
            self._use(queue.chain, used)
            if used.min() < 0:
                for each in queue.lineage():
                    self._eased[each.name] = self.clock

    def _phantom(self, name: str) -> Queue:
        """A queue that is charged, or asked about, and that nobody described."""
        self._build(self._columns.used.shape[1], name)
        return self._queues[name]

    def _ensure(self) -> None:
        width = self._columns.used.shape[1]
        if self._stale or self._used.shape[1] != width:
            self._build(width)

    def _build(self, width: int, *asked_about: str) -> None:
        """The tree as the facts have it, and every gang's charge in its place."""
        self._stale = False
        self._branching, self._beyond_at = {}, (-1, -1)
        charged = (charge.queue for charge in self._charges.values())
        names = {*self.facts, DEFAULT_QUEUE, *charged, *asked_about}
        queues = {
            name: Queue(self.facts.get(name) or QueueFacts(name), 0, name in self.facts)
            for name in sorted(names)
        }
        self._top = Queue(QueueFacts(_TOP), 0, False)
        for queue in queues.values():
            queue.problem = queue.facts.problem
            queue.parent = self._parent_of(queue, queues)
        for queue in queues.values():
            _break_cycle(queue, self._top)
        for queue in queues.values():
            assert queue.parent is not None
            queue.parent.children.append(queue)
        ordered = [self._top]
        for at in ordered:
            ordered += at.children
        for row, queue in enumerate(ordered):
            queue.row = row
            queue.chain = np.array([each.row for each in queue.lineage()], np.intp)
            queue.above, queue.within = queue.chain[1:], queue.chain[:-1]
            queue.bounded = any(each.facts.capability for each in queue.lineage())
        for queue in ordered:
            queue.rows_below = np.array([child.row for child in queue.children], np.intp)
            queue.weight_below = sum(child.weight for child in queue.children if child.real)
        self._queues = {queue.name: queue for queue in ordered[1:]}
        size = (len(ordered), width)
        self._used, self._asked = np.zeros(size, np.int64), np.zeros(size, np.int64)
        self._most, self._kept = np.full(size, UNLIMITED, np.int64), np.zeros(size, np.int64)
        for queue in ordered:
            for resource, amount in queue.facts.capability:
                self._most[queue.row, self._columns.column_of(resource)] = amount
            for resource, amount in queue.facts.guarantee:
                self._kept[queue.row, self._columns.column_of(resource)] = amount
        self._guarantees = bool(self._kept.any())
        for charge in self._charges.values():
            chain, had = self._queues[charge.queue].chain, len(charge.used)
            self._used[chain, :had] += charge.used
            self._asked[chain, :had] += charge.asked
        for chain, amounts in self._tentative:
            self._used[chain, : len(amounts)] += amounts
        self._left = self._most - self._used
        self._unmet, self._unmet_below = np.zeros(size, np.int64), np.zeros(size, np.int64)
        if self._guarantees:
            for queue in reversed(ordered):
                self._meet(queue.chain.tolist())
        self.clock += 1
        self._wanted_at = self.clock

    def _parent_of(self, queue: Queue, queues: Mapping[str, Queue]) -> Queue:
        name = queue.facts.parent or ROOT
        if queue.name == ROOT:
            return self._top
        parent = queues.get(name)
        if name == ROOT:
            return self._top if parent is None or not parent.described else parent
        if parent is None or not (parent.described or name == DEFAULT_QUEUE):
            queue.problem = queue.problem or f"is part of queue {name}, which does not exist"
            return self._top
        return parent


class _Room:
    """What the nodes that take pods have, and have free, in all."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._clock = -1
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
        takes = np.array([_takes_pods(columns.nodes[row]) for row in rows.tolist()], bool)
        has = columns.allocatable[rows] * takes[:, None]
        free = np.maximum(has - columns.used[rows] - columns.held[rows], 0) * takes[:, None]
        self._sum_has += has.sum(axis=0) - self._has[rows].sum(axis=0)
        self._sum_free += free.sum(axis=0) - self._free[rows].sum(axis=0)
        self._has[rows], self._free[rows] = has, free


def _takes_pods(node: NodeFacts | None) -> bool:
    return node is not None and node.ready and node.schedulable


def _below(queue: Queue, ancestor: Queue | None) -> bool:
    return ancestor is not None and queue is not ancestor and ancestor in queue.lineage()


def _break_cycle(queue: Queue, top: Queue) -> None:
    """A queue that is its own ancestor has no place: it hangs from the top until it is mended."""
    seen: list[str] = []
    at: Queue | None = queue
    while at is not None:
        seen.append(at.name)
        at = at.parent
        if at is queue:
            circle = ", ".join([*seen, queue.name])
            queue.problem = queue.problem or f"is its own ancestor ({circle})"
            queue.parent = top
            return
        if at is not None and at.name in seen:
            return
