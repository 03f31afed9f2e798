"""What every queue uses, counted gang by gang.

What a gang's seated members and kept seats take is charged to its queue and to every ancestor,
members on their way out too, until they are gone. Charges are recounted only for gangs that
changed, and lazily. A tentative charge goes back at the end of its statement even where the
statement is kept: what was kept is counted by the gangs themselves.

Vectors have one place per column of the view's table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from posse.engine.columns import Columns, Ints
from posse.engine.facts import DEFAULT_QUEUE, QueueFacts, Requests
from posse.engine.fit.seating import Seating
from posse.engine.gangs import Gang, apart, by_seating
from posse.engine.queues.lineages import ROOT, TOP, Queue, arrange

UNLIMITED: Final = 1 << 62


@dataclass(slots=True)
class Charge:
    """What a gang was last found to take, to ask for in all, and of which queue."""

    queue: str
    used: Ints
    asked: Ints


class Ledger:
    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self.facts: dict[str, QueueFacts] = {}
        # A count of changes; when each queue last came to use less; when any was set or removed;
        # when what they ask for changed.
        self.clock = 0
        self._eased: dict[str, int] = {}
        self._altered_at = 0
        self._wanted_at = 0
        self._built_at = 0
        self._queues: dict[str, Queue] = {}
        self._top = Queue(QueueFacts(TOP), 0, False)
        self._stale = True
        self._width = 8
        self._charges: dict[str, Charge] = {}
        self._unsettled: dict[str, Gang] = {}
        self._tentative: list[tuple[str, Ints]] = []
        # Row by row, as `Queue.row` says: what each uses, asks for in all, may use at most; what
        # is kept for it of its guarantee, what it is short of that, and those below it.
        self._used: Ints = np.zeros((1, 8), np.int64)
        self._asked: Ints = np.zeros((1, 8), np.int64)
        self._most: Ints = np.zeros((1, 8), np.int64)
        self._kept: Ints = np.zeros((1, 8), np.int64)
        self._unmet: Ints = np.zeros((1, 8), np.int64)
        self._unmet_below: Ints = np.zeros((1, 8), np.int64)
        # What would be kept for it and those below it if nobody used any, and for those below it.
        self._floor: Ints = np.zeros((1, 8), np.int64)
        self._floor_below: Ints = np.zeros((1, 8), np.int64)
        # Which columns anything is guaranteed of.
        self._guaranteed: list[int] = []

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

    def seat(self, gang: Gang, seatings: Mapping[Seating, int]) -> None:
        """So many members of the gang are about to sit: it takes so much more, and asks for no more
        in all than it did."""
        queue, charge = self.queue(gang.queue), self._charges[gang.key]
        if len(charge.used) != self._columns.width:
            self.count_again(gang)
            return
        by = self._sum(seatings)
        charge.used = charge.used + by
        self._use(queue, by)

    def dissolve(self, gang: Gang) -> None:
        """This gang is no more."""
        self._unsettled.pop(gang.key, None)
        charge = self._charges.pop(gang.key, None)
        if charge is not None:
            self._ensure()
            self._apply(charge.queue, -charge.used, -charge.asked)

    def charge(self, name: str, amounts: Ints) -> None:
        """Inside a tentative statement: as if the queue used so much more, or less."""
        self._use(self.queue(name), amounts)
        self._tentative.append((name, amounts))

    def mark(self) -> int:
        return len(self._tentative)

    def undo(self, mark: int) -> None:
        while len(self._tentative) > mark:
            name, amounts = self._tentative.pop()
            self._use(self.queue(name), -amounts)

    # -- what is there -----------------------------------------------------------------------

    def queue(self, name: str) -> Queue:
        if self._unsettled or self._stale or self._width != self._columns.width:
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
        vector = np.zeros(self._columns.width, np.int64)
        for column, amount in columns:
            vector[column] += amount
        return vector

    def allocated(self, name: str) -> Ints:
        """What the queue and its descendants take, kept seats among it."""
        queue = self.queue(name)
        used: Ints = self._used[queue.row]
        return used

    def use(self) -> Ints:
        """What each queue takes, by `Queue.row`, as it is now and stays while others change."""
        self._settle()
        return self._used.copy()

    def named(self, amounts: Ints) -> dict[str, int]:
        """The other way round, for people: zeros left out, sorted by name."""
        return {
            resource: int(amounts[column])
            for resource, column in sorted(self._columns.column.items())
            if column < len(amounts) and amounts[column]
        }

    def eased_since(self, name: str | None, clock: int) -> bool:
        """Whether since then the queue came to use less, or any came to have other limits."""
        if self._unsettled or self._stale:
            self._settle()
        return self._altered_at > clock or self._eased.get(name or TOP, 0) > clock

    def altered_since(self, clock: int) -> bool:
        """Whether since then any queue came to have other limits."""
        self._settle()
        return self._altered_at > clock

    # -- keeping count -----------------------------------------------------------------------

    def _settle(self) -> None:
        self._ensure()
        if not self._unsettled:
            return
        unsettled, self._unsettled = self._unsettled, {}
        unheard = {gang.queue for gang in unsettled.values()} - self._queues.keys() - {""}
        if unheard:
            # Now: a tree that is built later would count charges that are yet to be applied.
            self._build(self._columns.width, *sorted(unheard))
        new: dict[str, list[Charge]] = {}
        for key, gang in unsettled.items():
            queue = gang.queue
            if not queue:
                continue
            old = self._charges.get(key)
            charge = self._charges[key] = Charge(queue, *self._recount(gang))
            if old is None:
                new.setdefault(queue, []).append(charge)
            elif old.queue == queue and len(old.used) == len(charge.used):
                self._apply(queue, charge.used - old.used, charge.asked - old.asked)
            else:
                self._apply(old.queue, -old.used, -old.asked)
                self._apply(queue, charge.used, charge.asked)
        for queue, charges in new.items():
            used = np.add.reduce([charge.used for charge in charges])
            self._apply(queue, used, np.add.reduce([charge.asked for charge in charges]))

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
        muster = gang.muster
        if muster.squads is None and muster.there == len(gang.members):
            seated, waiting = by_seating(muster.seated), muster.seatings()
        else:
            # Those who go take room, too, until they are gone.
            sitting, others = apart(list(gang.members.values()))
            seated, waiting = by_seating(sitting), by_seating(others)
        used, asked = self._sum(seated), self._sum(waiting if gang.facts is not None else {})
        for hold in gang.holds:
            used[hold.seating.columns] += hold.seating.amounts
        if gang.facts is not None and gang.facts.expects:
            self._announce(gang, asked)
        asked += used
        return used, asked

    def _sum(self, seatings: Mapping[Seating, int]) -> Ints:
        """What so many pods of each shape ask for together."""
        amounts = [number * seating.vector() for seating, number in seatings.items()]
        if len(amounts) == 1:
            return amounts[0]
        return sum(amounts, np.zeros(self._columns.width, np.int64))

    def _announce(self, gang: Gang, asked: Ints) -> None:
        """Members that have no pod yet are asked for, too, where no seat is held for them."""
        for absent in gang.muster.absent:
            held = sum(1 for hold in gang.holds if hold.announced and hold.role == absent.role)
            asked[absent.seating.columns] += max(0, absent.count - held) * absent.seating.amounts

    def _apply(self, name: str, used: Ints, asked: Ints) -> None:
        queue = self._queues.get(name) or self._phantom(name)
        if len(used) < self._used.shape[1]:
            more = (0, self._used.shape[1] - len(used))
            used, asked = np.pad(used, more), np.pad(asked, more)
        if np.count_nonzero(asked):
            self._asked[queue.chain] += asked
            self.clock += 1
            self._wanted_at = self.clock
        if np.count_nonzero(used):
            self._use(queue, used)
            if np.count_nonzero(used < 0):
                for each in queue.lineage():
                    self._eased[each.name] = self.clock

    def _phantom(self, name: str) -> Queue:
        """A queue that is charged, or asked about, and that nobody described."""
        self._build(self._columns.width, name)
        return self._queues[name]

    def _ensure(self) -> None:
        width = self._columns.width
        if self._stale or self._width != width:
            self._build(width)

    def _use(self, queue: Queue, by: Ints) -> None:
        """A queue and its ancestors use so much more, or less."""
        for row in queue.path:
            self._used[row] += by
        self.clock += 1
        if queue.assured:
            self._meet(queue.path)

    def _meet(self, path: list[int]) -> None:
        """Find anew what the first of these is short of its guarantee, then those above it.

        A queue is short of what it lacks itself or of what those below it lack together, whichever
        is more.
        """
        kept, used, unmet, below = self._kept, self._used, self._unmet, self._unmet_below
        for column in self._guaranteed:
            for at, row in enumerate(path):
                lacks = kept.item(row, column) - used.item(row, column)
                short = max(lacks, below.item(row, column), 0)
                by = short - unmet.item(row, column)
                if by:
                    unmet[row, column] = short
                    if at + 1 < len(path):
                        below[path[at + 1], column] += by

    def _build(self, width: int, *asked_about: str) -> None:
        """The tree as the facts have it, and every gang's charge in its place."""
        self._stale, self._width = False, width
        charged = [charge.queue for charge in self._charges.values()]
        tentative = [name for name, _ in self._tentative]
        ordered = arrange(self.facts, [*self.facts, *charged, *tentative, *asked_about])
        self._top = ordered[0]
        self._queues = {queue.name: queue for queue in ordered[1:]}
        size = (len(ordered), width)
        self._used, self._asked = np.zeros(size, np.int64), np.zeros(size, np.int64)
        self._most, self._kept = np.full(size, UNLIMITED, np.int64), np.zeros(size, np.int64)
        for queue in ordered:
            for resource, amount in queue.facts.capability:
                self._most[queue.row, self._columns.column_of(resource)] = amount
            for resource, amount in queue.facts.guarantee:
                column = self._columns.column_of(resource)
                # What it, or a queue above it, may not use would be kept for nobody.
                usable = self._most[queue.chain, column].min()
                self._kept[queue.row, column] = min(amount, usable)
        self._guaranteed = np.flatnonzero(self._kept.any(axis=0)).tolist()
        for charge in self._charges.values():
            chain, had = self._queues[charge.queue].chain, len(charge.used)
            self._used[chain, :had] += charge.used
            self._asked[chain, :had] += charge.asked
        for name, amounts in self._tentative:
            self._used[self._queues[name].chain, : len(amounts)] += amounts
        self._unmet, self._unmet_below = np.zeros(size, np.int64), np.zeros(size, np.int64)
        if self._guaranteed:
            for queue in reversed(ordered):
                self._meet(queue.path)
        self._floor, self._floor_below = self._kept.copy(), np.zeros(size, np.int64)
        for queue in reversed(ordered if self._guaranteed else ()):
            row = queue.row
            self._floor[row] = np.maximum(self._kept[row], self._floor_below[row])
            if queue.parent is not None:
                self._floor_below[queue.parent.row] += self._floor[row]
        self.clock += 1
        self._wanted_at = self._built_at = self.clock
