"""The cluster as the engine sees it: changed in place by events, never copied.

Events may come in any order: a pod before its node or its group is kept and counted. What the
engine decided is counted at once (assumed) and stands against events that have not heard of it,
until it is confirmed, refuted or gone. Equal facts give an equal view whatever order they came in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from weakref import WeakValueDictionary

import numpy as np

from posse.engine.columns import Attempt, Columns, Ints, Rows, Use
from posse.engine.facts import (
    LARGEST,
    BudgetFacts,
    Constraints,
    GroupFacts,
    NamespaceFacts,
    NodeFacts,
    PodFacts,
    QueueFacts,
    Shape,
)
from posse.engine.fit.eligibility import Eligibility
from posse.engine.fit.hypernodes import HyperNodeFacts
from posse.engine.fit.neighbours import Neighbours
from posse.engine.fit.seating import Seating, Seats
from posse.engine.fit.topology import Tiers
from posse.engine.gangs import NOWHERE, Gang, Hold, Member, Vacancy
from posse.engine.placement.shortfalls import Shortfalls
from posse.engine.preemption.budgets import Budgets
from posse.engine.preemption.hunting import Hunting
from posse.engine.queues.moments import Moment
from posse.engine.queues.tree import QueueTree
from posse.engine.repair.starting import Starting
from posse.engine.reservation.reservations import Reservations
from posse.engine.reservation.shadows import Shadows

_NO_ROWS: Rows = np.zeros(0, np.intp)


class View:
    def __init__(self) -> None:
        self.columns = Columns()
        self.tiers = Tiers(self.columns)
        self.gangs: dict[str, Gang] = {}
        self.members: dict[str, Member] = {}
        self.neighbours = Neighbours(self.columns, self.members)
        self.tree = QueueTree(self.columns)
        self.queues = self.tree.facts
        # The time of the cycle under way, or of the last one; and the gang it is looking at.
        self.now = 0.0
        self.in_turn = ""
        # The last cycle left nobody who would have to be looked at again.
        self.settled = True
        # Gangs that changed since the cycle looked at them.
        self.stirred: dict[str, Gang] = {}
        # Gangs that have begun and miss something.
        self.ailing: dict[str, Gang] = {}
        # Gangs whose minimum is seated and that did not run whole yet.
        self.starting = Starting()
        # Gangs on whose groups it is written what is kept for their repair.
        self.keeping: dict[str, Gang] = {}
        # Gangs that have holds.
        self.holding: dict[str, Gang] = {}
        # Members on their way out whose room is counted on.
        self.departing: dict[str, Member] = {}
        self.hunting = Hunting()
        self.budgets = Budgets()
        self.shadows = Shadows(self.columns)
        # Gangs that did not fit, and those whose verdict is still to be told.
        self.shortfalls = Shortfalls(self.columns, self.tree, self.shadows)
        self.reservations = Reservations()
        # By queue that keeps its order, who stands behind one that does not fit: behind whom, as it
        # was told, and whether that one outgrows today's nodes.
        self.lined_up: dict[str, dict[str, tuple[str, bool]]] = {}
        # Counts how often anybody said something else about when they began, or how long they run.
        self.estimates = 0
        # The columns' clock when the ailing were last looked at, and the holds last checked.
        self.healed = -1
        self.inspected = -1
        self._going: Moment[str, Ints] = Moment()
        self._seatings: WeakValueDictionary[Shape, Seating] = WeakValueDictionary()
        self._eligibilities: WeakValueDictionary[Constraints, Eligibility] = WeakValueDictionary()

    # -- nodes and queues --------------------------------------------------------------------

    def set_node(self, facts: NodeFacts) -> None:
        self.columns.set_node(facts)

    def remove_node(self, name: str) -> None:
        self.columns.remove_node(name)

    def set_namespace(self, facts: NamespaceFacts) -> None:
        self.neighbours.set_namespace(facts.name, facts.labels)

    def remove_namespace(self, name: str) -> None:
        self.neighbours.remove_namespace(name)

    def set_hypernode(self, facts: HyperNodeFacts) -> None:
        self.tiers.set_hypernode(facts)

    def remove_hypernode(self, name: str) -> None:
        self.tiers.remove_hypernode(name)

    def set_queue(self, facts: QueueFacts) -> None:
        if self.queues.get(facts.name) != facts:
            self._stir_queues(self.tree.set(facts))

    def remove_queue(self, name: str) -> None:
        if name in self.queues:
            self._stir_queues(self.tree.remove(name))

    def set_queue_of(self, key: str, queue: str) -> None:
        """The gang's seats are this queue's, though nothing else may be told of its group."""
        gang = self.gangs.get(key)
        if gang is not None and gang.queue != queue:
            gang.queue = queue
            self.tree.count_again(gang)

    def _stir_queues(self, names: dict[str, None]) -> None:
        for gang in self.gangs.values():
            if gang.facts is not None and gang.facts.queue in names:
                self.stir(gang)

    def set_budget(self, facts: BudgetFacts) -> None:
        self.budgets.set(facts)

    def remove_budget(self, namespace: str, name: str) -> None:
        self.budgets.remove(namespace, name)

    # -- groups ------------------------------------------------------------------------------

    def set_group(self, facts: GroupFacts) -> None:
        gang = self._gang(facts.key)
        if gang.facts == facts:
            return
        if gang.facts is not None and gang.facts.uid != facts.uid:
            self._end_group(gang)
            gang = self._gang(facts.key)
        if gang.facts is not None and gang.entitled is not None:
            # Who ended well, or is not wanted any more, is not owed a seat.
            fewer = max(0, gang.facts.min_member - facts.min_member)
            gang.entitled = max(0, gang.entitled - fewer)
        before = gang.facts
        if before is None or (before.began, before.runs_for) != (facts.began, facts.runs_for):
            self.estimates += 1
        gang.facts, gang.queue = facts, facts.queue
        for resource, _ in facts.min_resources:
            self.columns.column_of(resource)
        gang.expected = [self.seating(expected.shape) for expected in facts.expects]
        self.stir(gang)

    def remove_group(self, key: str) -> None:
        gang = self.gangs.get(key)
        if gang is not None and gang.facts is not None:
            self._end_group(gang)

    def _end_group(self, gang: Gang) -> None:
        """The group is gone; its pods may outlive it, or belong to the next of that name."""
        self.set_holds(gang, [])
        self._forget(gang)
        if gang.members:
            successor = self.gangs[gang.key] = Gang(
                gang.key, members=gang.members, queue=gang.queue
            )
            self.stir(successor)

    def _forget(self, gang: Gang) -> None:
        self.shortfalls.remove(gang)
        self.hunting.forget(gang)
        self.stirred.pop(gang.key, None)
        self.ailing.pop(gang.key, None)
        self.starting.remove(gang)
        self.keeping.pop(gang.key, None)
        self.tree.dissolve(gang)
        del self.gangs[gang.key]

    # -- pods --------------------------------------------------------------------------------

    def set_pod(self, facts: PodFacts) -> None:
        old = self.members.get(facts.uid)
        if old is not None and old.facts == facts:
            return
        new = Member(facts, self.seating(facts.shape), NOWHERE)
        moved = True
        if facts.node is not None:
            new.row = self.columns.refer(facts.node)
        if old is not None:
            new.let_go(old.leaving)
            new.stuck = old.stuck
            if facts.node is None and old.assumed:
                new.row, new.assumed = old.row, True
                self.columns.refer_to([old.row])
            moved = _sits_otherwise(old, new)
            if not moved and _decided_alike(old, new):
                self._replace_quietly(new)
                return
            self._detach(old, moved=moved)
        self._attach(new, count=moved)

    def remove_pod(self, uid: str, *, shunned: bool = False) -> None:
        """It is gone or has ended. `shunned`: its node would not have it."""
        member = self.members.get(uid)
        if member is None:
            return
        gang = None if member.facts.gang is None else self.gangs[member.facts.gang]
        if gang is not None and member.row != NOWHERE and not member.leaving:
            node, labels = self.columns.names[member.row], self.columns.labels[member.row]
            shunned = shunned or self._drained(member)
            gang.vacancies.append(Vacancy(member, node, labels, shunned))
        self._detach(member, moved=True)

    def _drained(self, member: Member) -> bool:
        """Whether its node is cordoned, which it tolerates: its successor could go back there, and
        nobody would ever be done with draining the node."""
        node = self.columns.nodes[member.row]
        if node is None or node.schedulable:
            return False
        return not member.seating.eligibility.bars()[member.row]

    def refute(self, uid: str) -> None:
        """An assumed bind or release of this pod did not happen."""
        member = self.members.get(uid)
        if member is None or not (member.assumed or member.leaving):
            return
        self._count_leaving(member, -1)
        if member.leaving and member.facts.gang in self.gangs:
            gang = self.gangs[member.facts.gang]
            gang.dismissed, gang.ended_for, gang.evicted = False, "", 0
        member.let_go(False)
        member.stuck = False
        self._count_leaving(member, 1)
        if member.assumed:
            self._count(member, -1)
            self.neighbours.unseat(member)
            self.columns.unrefer(member.row)
            member.row, member.assumed = NOWHERE, False
        if member.facts.gang is not None:
            self.stir(self.gangs[member.facts.gang])

    def _replace_quietly(self, member: Member) -> None:
        """Nothing the engine decides by has changed (most often: an assumed bind is confirmed)."""
        if member.row != NOWHERE:
            self.columns.unrefer(member.row)
            self.neighbours.replace(self.members[member.facts.uid], member)
        self.members[member.facts.uid] = member
        if member.facts.uid in self.departing:
            self.departing[member.facts.uid] = member
        if member.facts.gang is not None:
            gang = self.gangs[member.facts.gang]
            gang.members[member.facts.uid] = member
            gang.forget_muster()
            self.hunting.note(gang)

    def _attach(self, member: Member, *, count: bool) -> None:
        self.members[member.facts.uid] = member
        if count:
            self._count(member, 1)
        self._count_leaving(member, 1)
        if member.row != NOWHERE:
            self.neighbours.seat(member)
        if member.facts.gang is not None:
            gang = self._gang(member.facts.gang)
            gang.members[member.facts.uid] = member
            if member.row == NOWHERE:
                self.shortfalls.reconsider(gang)
            self.stir(gang)

    def _detach(self, member: Member, *, moved: bool) -> None:
        del self.members[member.facts.uid]
        self._count_leaving(member, -1)
        if moved:
            self._count(member, -1)
        if member.row != NOWHERE:
            self.neighbours.unseat(member)
            self.columns.unrefer(member.row)
        if member.facts.gang is not None:
            gang = self.gangs[member.facts.gang]
            del gang.members[member.facts.uid]
            if gang.facts is None and not gang.members:
                self._forget(gang)
            else:
                self.stir(gang)

    def _count(self, member: Member, sign: int) -> None:
        if member.row != NOWHERE:
            self.columns.shift_one(member.row, member.seating.vector(), sign)

    def _count_leaving(self, member: Member, sign: int) -> None:
        if member.going and member.row != NOWHERE and not member.stuck:
            self.columns.depart(member.row, member.seating.vector(), sign)
            if sign > 0:
                self.departing[member.facts.uid] = member
            else:
                del self.departing[member.facts.uid]

    # -- what the cycle does -----------------------------------------------------------------

    def tentatively(self) -> Attempt:
        """`with view.tentatively() as attempt:` the columns go back unless `attempt.keep()`.

        What was charged to queues inside goes back in any case.
        """
        return Attempt(self.columns, self.tree)

    def take(self, seating: Seating, seats: Seats, sign: int = 1) -> None:
        """Count pods of one shape on (or, with -1, off) these seats."""
        by = np.multiply.outer(seats.counts, seating.vector())
        self.columns.shift(seats.rows, by, sign)

    def hold(self, seating: Seating, seats: Seats, sign: int = 1, use: Use = Use.HELD) -> None:
        by = np.multiply.outer(seats.counts, seating.vector())
        self.columns.shift(seats.rows, by, sign, use)

    def let_go(self, holds: Iterable[Hold]) -> None:
        """Make the seats of these holds free, in the columns only."""
        self._hold_each(holds, -1)

    @contextmanager
    def as_seen_by(self, gang: Gang) -> Iterator[None]:
        """Inside a tentative statement: the gang's own held seats are free to it, and on what
        others leave for it, no seats of anybody else rest."""
        self.let_go(gang.holds)
        going: dict[Seating, list[int]] = {}
        for uid in gang.awaits:
            member = self.departing.get(uid)
            if member is not None:
                going.setdefault(member.seating, []).append(member.row)
        apart = [(Seats.at(rows), seating.vector()) for seating, rows in going.items()]
        for seats, one in apart:
            self.columns.set_apart(seats.rows, np.multiply.outer(seats.counts, one))
        try:
            yield
        finally:
            for seats, one in apart:
                self.columns.set_apart(seats.rows, np.multiply.outer(-seats.counts, one))

    def set_holds(self, gang: Gang, holds: list[Hold]) -> None:
        """Replace a gang's holds, columns and all."""
        self.let_go(gang.holds)
        self._hold_each(holds, 1)
        self.record_holds(gang, holds)

    def _hold_each(self, holds: Iterable[Hold], sign: int) -> None:
        rows: dict[tuple[Seating, Use], list[int]] = {}
        for hold in holds:
            rows.setdefault((hold.seating, hold.use), []).append(hold.row)
        for (seating, use), at in rows.items():
            self.hold(seating, Seats.at(at), sign, use)

    def record_holds(self, gang: Gang, holds: list[Hold]) -> None:
        """Replace a gang's holds where the columns already count the new ones."""
        old, gang.holds = gang.holds, holds
        self.tree.count_again(gang)
        if holds:
            self.holding[gang.key] = gang
        else:
            self.holding.pop(gang.key, None)
        self.columns.refer_to([hold.row for hold in holds])
        for hold in old:
            self.columns.unrefer(hold.row)

    def assume(
        self, gang: Gang, members: list[Member], rows: list[int], seatings: Mapping[Seating, int]
    ) -> None:
        """These members of the gang, so many of each shape, sit there; the columns already count
        them."""
        self.tree.seat(gang, seatings)
        self.columns.refer_to(rows)
        for member, row in zip(members, rows, strict=True):
            member.row, member.assumed = row, True
        self.neighbours.seat_all(gang.key, members, seatings)
        gang.sat_down(members)

    def leave(self, member: Member) -> None:
        """This member is let go; until it is gone, its room is on the way out."""
        self._count_leaving(member, -1)
        member.let_go()
        self._count_leaving(member, 1)

    def despair_of(self, member: Member) -> None:
        """This member should be gone and is not: its room is not to be counted on."""
        self._count_leaving(member, -1)
        member.stuck = True

    def stir(self, gang: Gang) -> None:
        gang.forget_muster()
        self.tree.count_again(gang)
        self.hunting.note(gang)
        self.stirred[gang.key] = gang

    def seating(self, shape: Shape) -> Seating:
        seating = self._seatings.get(shape)
        if seating is None:
            eligibility = self._eligibilities.get(shape.constraints)
            if eligibility is None:
                eligibility = Eligibility(self.columns, shape.constraints)
                self._eligibilities[shape.constraints] = eligibility
            seating = self._seatings[shape] = Seating(self.columns, shape, eligibility)
        return seating

    def running(self) -> Iterator[Gang]:
        """The gangs of which anybody sits."""
        for key in self.neighbours.sitting:
            yield self.gangs[key]

    def going(self) -> dict[str, Ints]:
        """What those take of each queue who are on their way out; nobody may change it."""
        going = self._going.known((self.columns.clock, self.tree.clock))
        if self.departing and not going:
            going.update(self.by_queue(self.departing.values()))
        return going

    def by_queue(self, members: Iterable[Member]) -> dict[str, Ints]:
        """What these take of each queue."""
        taken: dict[str, Ints] = {}
        for member in members:
            gang = self.gangs.get(member.facts.gang or "")
            if gang is not None and gang.facts is not None:
                queue, one = gang.facts.queue, member.seating.vector()
                taken[queue] = taken[queue] + one if queue in taken else one
        return taken

    def rows_of(self, gang: Gang) -> Rows:
        """Where the gang sits."""
        seated = gang.muster.seated
        return np.array(sorted({m.row for m in seated}), np.intp) if seated else _NO_ROWS

    def _gang(self, key: str) -> Gang:
        gang = self.gangs.get(key)
        if gang is None:
            gang = self.gangs[key] = Gang(key)
        return gang

    # -- proof -------------------------------------------------------------------------------

    def validate(self) -> None:
        """Recount everything from the facts and compare. For tests: costs as much as a restart."""
        columns = self.columns
        used = np.zeros_like(columns.used)
        held, made = np.zeros_like(columns.held), np.zeros_like(columns.held)
        leaving = np.zeros_like(columns.leaving)
        for member in self.members.values():
            if member.row != NOWHERE:
                used[member.row, member.seating.columns] += member.seating.amounts
                assert columns.names[member.row], f"{member.facts.name} sits on a recycled row"
                if member.going and not member.stuck:
                    leaving[member.row, member.seating.columns] += member.seating.amounts
            if member.facts.node is not None:
                assert columns.names[member.row] == member.facts.node
            if member.facts.gang is not None:
                gang = self.gangs[member.facts.gang]
                assert gang.members[member.facts.uid] is member
        for gang in self.gangs.values():
            gang.validate()
            for hold in gang.holds:
                held[hold.row, hold.seating.columns] += hold.seating.amounts
                if hold.use is Use.MADE:
                    made[hold.row, hold.seating.columns] += hold.seating.amounts
        self.tiers.validate()
        self.tree.validate(self.gangs.values())
        self.neighbours.validate()
        self.starting.validate(self.stirred)
        assert (used == columns.used).all(), "used differs from a recount"
        assert (held == columns.held).all(), "held differs from a recount"
        assert (made == columns.made).all(), "what was made differs from a recount"
        assert (leaving == columns.leaving).all(), "leaving differs from a recount"
        free = columns.allocatable - used - held + np.minimum(made, leaving)
        assert (free == columns.free).all(), "what is free differs from a recount"
        going = {m.facts.uid for m in self.members.values() if m.going and m.row != NOWHERE}
        assert self.departing.keys() == {u for u in going if not self.members[u].stuck}
        for row, node in enumerate(columns.nodes):
            offered = {} if node is None else node.allocatable
            for resource, column in columns.column.items():
                amount = min(max(0, offered.get(resource, 0)), LARGEST)
                assert columns.allocatable[row, column] == amount
        for shape, seating in sorted(self._seatings.items(), key=lambda item: repr(item[0])):
            fresh = Seating(columns, shape, Eligibility(columns, shape.constraints))
            assert (fresh.seats() == seating.seats()).all(), f"stale seats of {shape}"
            assert fresh.total() == seating.total()
            assert fresh.sizes() == seating.sizes()


def _sits_otherwise(old: Member, new: Member) -> bool:
    return (old.row, old.seating, old.facts.nominated) != (
        new.row,
        new.seating,
        new.facts.nominated,
    )


def _decided_alike(old: Member, new: Member) -> bool:
    """Whether what is decided of the pod is the same: others tell those who wait by their labels,
    and whoever sits sits, whatever they are now."""
    mine, yours = old.facts, new.facts
    return (
        (old.going, old.order) == (new.going, new.order)
        and (mine.gang, mine.role, mine.part) == (yours.gang, yours.role, yours.part)
        and (new.row != NOWHERE or mine.labels == yours.labels)
    )
