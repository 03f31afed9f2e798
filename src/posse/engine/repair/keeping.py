"""Seats kept for the repair of a gang: for members that wait, and for those still to be made anew.

When a member is lost, its seat is kept before its successor exists: on the same node if that can
still be had, else in the same topology domain, the nearest first, else anywhere. So it is where
all of them are lost at once, as long as they are to come back (`GroupFacts.returns`). A member that
somebody took out on purpose is not told from a lost one by how it went, but by what the gang still
asks for: nothing is kept beyond its minimum, and nothing for a gang whose pods nobody recreates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from posse.engine.facts import Keeps, PodFacts, Purpose, Shape
from posse.engine.fit.seating import Seating, Seats
from posse.engine.gangs import NOWHERE, Gang, Hold, Member, Vacancy
from posse.engine.placement.demands import Demand, demands_of
from posse.engine.policy import Policy
from posse.engine.repair.seeking import Search
from posse.engine.view import View


def vacant(view: View, gang: Gang, taken: Iterable[tuple[str, str]] = ()) -> list[Vacancy]:
    """Seats that members left whose successors do not exist yet, as far as the minimum asks.

    Those of roles that miss somebody come first, then the latest; not those `taken` already by
    the successors that do exist, as (role, node).
    """
    assert gang.facts is not None
    if not (gang.missing and gang.facts.recreated and (gang.muster.seated or gang.bereft)):
        return []
    # Members that are announced have their seats by that.
    announced = [expected.role for expected in gang.facts.expects]
    filled = Counter(taken)
    left: list[Vacancy] = []
    for vacancy in reversed(gang.vacancies):
        if filled[vacancy.role, vacancy.node]:
            filled[vacancy.role, vacancy.node] -= 1
        elif vacancy.role not in announced:
            left.append(vacancy)
    missing = gang.missing
    for member in sorted(gang.members.values(), key=lambda member: member.order):
        if not member.going or member.row == NOWHERE or member.leaving:
            continue
        if member.facts.role in announced:
            continue
        if member.stuck or member.seating.eligibility.bars()[member.row]:
            node, labels = view.columns.names[member.row], view.columns.labels[member.row]
            left.append(Vacancy(member, node, labels, shunned=True))
        else:
            # It goes from a node that may be used: its seat comes back by itself.
            missing -= 1
    lacking = dict(gang.muster.missing)
    chosen: list[Vacancy] = []
    others: list[Vacancy] = []
    for vacancy in left:
        if lacking.get(vacancy.role, 0):
            lacking[vacancy.role] -= 1
            chosen.append(vacancy)
        else:
            others.append(vacancy)
    known = (chosen + others)[: max(0, missing)]
    return known + _unseen(gang, known, announced, missing - len(known))


def _unseen(gang: Gang, known: list[Vacancy], announced: list[str], number: int) -> list[Vacancy]:
    """Members that nobody saw go, since nobody was there. They were like the others, if those are
    all alike, whether they sit, wait, go, or are gone; where they sat is not known."""
    if number <= 0 or not gang.lost():
        return []
    others = [*gang.members.values(), *(vacancy.like for vacancy in known)]
    others = [member for member in others if member.facts.role not in announced]
    seated = [member for member in gang.muster.seated if member.facts.role not in announced]
    if not seated or len({(member.facts.role, id(member.seating)) for member in others}) != 1:
        return []
    like = min(seated, key=lambda member: member.order)
    written = () if gang.written is None else gang.written.seats
    if any(role != like.facts.role and role not in announced for role, _ in written):
        return []
    return [Vacancy(like, "", {})] * number


def keep_what_fits(
    view: View, gang: Gang, need: int, policy: Policy, before: Iterable[Hold] = ()
) -> None:
    """Hold as many of the gang's missing seats as there is room for now.

    What was kept `before` stays where it was, unless it can be had nearer: a seat that wanders
    with every look gives room away on one node to take it on another.
    """
    keeping = _Keeping(view, gang, policy, before)
    demands = demands_of(gang, need)
    for demand in demands:
        if not demand.announced:
            keeping.meet(demand)
    vacancies = vacant(view, gang, taken=keeping.seats)
    keeping.fill(vacancies)
    seats = sorted(keeping.seats)
    for demand in demands:
        if demand.announced:
            keeping.meet(demand)
    # Members that wait speak for themselves after a restart; for others it has to be written.
    gang.repairs = tuple(seats) if vacancies or gang.written else ()
    view.record_holds(gang, gang.holds + keeping.holds)


class _Keeping:
    """Seats being kept for one gang, counted in the columns as they are found."""

    def __init__(self, view: View, gang: Gang, policy: Policy, before: Iterable[Hold]) -> None:
        self.holds: list[Hold] = []
        self._before: dict[tuple[str, Seating], list[int]] = {}
        for hold in before:
            self._before.setdefault((hold.role, hold.seating), []).append(hold.row)
        # (role, node) of these; and of seats that are not to be had now, where they were.
        self.seats: list[tuple[str, str]] = []
        self._view = view
        self._search = Search(view, gang, policy)
        self._made = Counter((hold.role, hold.announced) for hold in gang.holds)

    def meet(self, demand: Demand) -> None:
        """For members that wait, or are announced; not where their seats were held before."""
        search = self._search
        demand.within = search.within
        had = min(demand.wanted, self._made[demand.role, demand.announced])
        self._made[demand.role, demand.announced] -= had
        left = demand.wanted - had
        before = self._kept_before(demand.role, demand.seating)
        if self._view.neighbours.concern(demand.members):
            for member in demand.members[:left]:
                row = search.seat_near(member, demand.at + before)
                if row is not None:
                    self._hold(demand.role, demand.seating, Seats.one(row))
            return
        at = before if demand.announced else demand.at + before
        if left and at:
            former = demand.seating.at(at, left)
            self._hold(demand.role, demand.seating, former)
            left -= int(former.counts.sum())
            demand.within = search.within
        left = min(left, demand.total())
        if left:
            chosen = demand.seating.choose(left, within=demand.within)
            self._hold(demand.role, demand.seating, chosen)

    def fill(self, vacancies: list[Vacancy]) -> None:
        """For members that are to be made anew."""
        for vacancy in self._hold_former(vacancies):
            before = self._kept_before(vacancy.role, vacancy.seating)
            row = self._search.seat_for(vacancy, before)
            if row is not None:
                self._hold(vacancy.role, vacancy.seating, Seats.one(row))
            elif vacancy.node:
                self.seats.append((vacancy.role, vacancy.node))

    def _hold_former(self, vacancies: list[Vacancy]) -> list[Vacancy]:
        """What can be had where it was, all at once; who is left looks elsewhere."""
        columns, within = self._view.columns, self._search.within
        alike: dict[tuple[str, Seating], list[Vacancy]] = {}
        left: list[Vacancy] = []
        for vacancy in vacancies:
            there = vacancy.node in columns.row and not vacancy.shunned
            if there and not self._view.neighbours.concern([vacancy.like]):
                alike.setdefault((vacancy.role, vacancy.seating), []).append(vacancy)
            else:
                left.append(vacancy)
        for (role, seating), some in alike.items():
            rows = seating.rows_of(vacancy.node for vacancy in some)
            if within is not None:
                rows = [row for row, may in zip(rows, np.isin(rows, within), strict=True) if may]
            former = seating.at(rows, len(some))
            self._hold(role, seating, former)
            had = Counter(former.each())
            for vacancy in some:
                row = columns.row[vacancy.node]
                if had[row]:
                    had[row] -= 1
                else:
                    left.append(vacancy)
        return left

    def _kept_before(self, role: str, seating: Seating) -> list[int]:
        """Where seats like this were kept, as far as they may be now."""
        rows, within = self._before.get((role, seating), []), self._search.within
        return rows if within is None else [row for row in rows if (within == row).any()]

    def _hold(self, role: str, seating: Seating, seats: Seats) -> None:
        self._view.hold(seating, seats)
        names = self._view.columns.names
        for row in seats.each():
            self.holds.append(Hold(role, seating, row, Purpose.REPAIR))
            self.seats.append((role, names[row]))
        self._search.sit(seats.rows)


def drop_kept(view: View, gang: Gang) -> list[Hold]:
    """Free the seats kept for the gang's repair; which they were is not forgotten."""
    dropped = [hold for hold in gang.holds if hold.purpose is Purpose.REPAIR]
    if dropped:
        kept = [hold for hold in gang.holds if hold.purpose is not Purpose.REPAIR]
        view.set_holds(gang, kept)
    return dropped


def keeps_of(gang: Gang, policy: Policy) -> Keeps | None:
    """What is to be written on the gang's group: while it is repaired, where and until when."""
    if not gang.started or gang.lapsed or gang.ailing_since is None or not gang.repairs:
        return None
    until = gang.ailing_since + policy.repair_hold
    return Keeps(Purpose.REPAIR, gang.repairs, until, _untold(gang))


def _untold(gang: Gang) -> tuple[tuple[str, Shape], ...]:
    """The shapes of those whose role nobody is left of: a successor of ours cannot see them."""
    there = {member.facts.role for member in gang.members.values()}
    lost = {vacancy.role: vacancy.seating.shape for vacancy in gang.vacancies}
    kept = dict.fromkeys(role for role, _ in gang.repairs)
    return tuple((role, lost[role]) for role in kept if role in lost and role not in there)


def adopt_keeps(view: View, gang: Gang, policy: Policy) -> None:
    """Take up what an earlier life kept for the gang's repair, and since when.

    The shape of who is missing is that of its like, else as it is written; where neither is to be
    had, nobody can tell.
    """
    assert gang.facts is not None
    keeps = gang.facts.keeps
    if keeps is None or keeps.purpose is not Purpose.REPAIR:
        return
    gang.written, view.keeping[gang.key] = keeps, gang
    if not gang.started or gang.ailing_since is not None:
        return
    members = sorted(gang.members.values(), key=lambda member: member.order, reverse=True)
    like = {role: _lookalike(view, gang, role, shape) for role, shape in keeps.asks}
    like |= {member.facts.role: member for member in members}
    for role, node in keeps.seats[: gang.short]:
        if role in like:
            gang.vacancies.append(Vacancy(like[role], node, {}))
    gang.repairs = keeps.seats
    gang.entitled = len(gang.muster.seated) + min(gang.short, len(keeps.seats))
    if keeps.until is not None:
        gang.ailing_since = keeps.until - policy.repair_hold


def _lookalike(view: View, gang: Gang, role: str, shape: Shape) -> Member:
    """Somebody of this shape, who is not there."""
    facts = PodFacts("", f"{gang.key}-{role}", shape, gang.key, role)
    return Member(facts, view.seating(shape), NOWHERE)
