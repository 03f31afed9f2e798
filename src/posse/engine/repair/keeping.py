"""Seats kept for the repair of a gang: for members that wait, and for those still to be made anew.

When a member is lost, its seat is kept before its successor exists: on the same node if that can
still be had, else in the same topology domain, the nearest first, else anywhere. A member that
somebody took out on purpose is not told from a lost one by how it went, but by what the gang still
asks for: nothing is kept beyond its minimum, and nothing for a gang whose pods nobody recreates.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from posse.engine.columns import Rows
from posse.engine.facts import Keeps, Purpose
from posse.engine.fit.company import Company
from posse.engine.fit.seating import Seating, Seats
from posse.engine.gangs import NOWHERE, Gang, Hold, Member, Vacancy
from posse.engine.placement.demands import demands_of
from posse.engine.placement.nearing import confines, near
from posse.engine.policy import Policy
from posse.engine.view import View


def vacant(view: View, gang: Gang, taken: Iterable[tuple[str, str]] = ()) -> list[Vacancy]:
    """Seats that members left whose successors do not exist yet, as far as the minimum asks.

    Those of roles that miss somebody come first, then the latest; not those `taken` already by
    the successors that do exist, as (role, node).
    """
    assert gang.facts is not None
    if not (gang.missing and gang.facts.recreated and gang.muster.seated):
        return []
    # Members that are announced have their seats by that.
    announced = [expected.role for expected in gang.facts.expects]
    left = [vacancy for vacancy in gang.vacancies[::-1] if vacancy.role not in announced]
    missing = gang.missing
    for seat in taken:
        filled = next((each for each in left if (each.role, each.node) == seat), None)
        if filled is not None:
            left.remove(filled)
    for member in gang.members.values():
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
    return known + _unseen(gang, announced, missing - len(known))


def _unseen(gang: Gang, announced: list[str], number: int) -> list[Vacancy]:
    """Members that nobody saw go, since nobody was there. They were like the others, if those are
    all alike; where they sat is not known."""
    if number <= 0 or not gang.lost():
        return []
    others = [member for member in gang.muster.seated if member.facts.role not in announced]
    if len({(member.facts.role, id(member.seating)) for member in others}) != 1:
        return []
    like = min(others, key=lambda member: member.order)
    if gang.written is not None and any(role != like.facts.role for role, _ in gang.written.seats):
        return []
    return [Vacancy(like, "", {})] * number


def keep_what_fits(view: View, gang: Gang, need: int, policy: Policy) -> None:
    """Hold as many of the gang's missing seats as there is room for now."""
    made: dict[tuple[str, bool], int] = {}
    for hold in gang.holds:
        made[hold.role, hold.announced] = made.get((hold.role, hold.announced), 0) + 1
    kept: list[Hold] = []

    def hold_seats(role: str, seating: Seating, seats: Seats) -> None:
        view.hold(seating, seats)
        kept.extend(Hold(role, seating, row, Purpose.REPAIR) for row in seats.each())

    search = _Search(view, gang, policy)
    for demand in demands_of(gang, need):
        demand.within = search.within
        had = min(demand.wanted, made.get((demand.role, demand.announced), 0))
        if had:
            made[demand.role, demand.announced] -= had
        left = demand.wanted - had
        if view.neighbours.concern(demand.members):
            for member in demand.members[:left]:
                row = search.seat_near(member, demand.at)
                if row is not None:
                    hold_seats(demand.role, demand.seating, Seats.one(row))
            continue
        if left and not demand.announced:
            former = demand.seating.at(demand.at, left)
            hold_seats(demand.role, demand.seating, former)
            left -= int(former.counts.sum())
        left = min(left, demand.total())
        if left:
            chosen = demand.seating.choose(left, within=demand.within)
            hold_seats(demand.role, demand.seating, chosen)
    seats = [(hold.role, view.columns.names[hold.row]) for hold in kept]
    vacancies = vacant(view, gang, taken=seats)
    for vacancy in vacancies:
        row = search.seat_for(vacancy)
        if row is not None:
            hold_seats(vacancy.role, vacancy.seating, Seats.one(row))
        node = vacancy.node if row is None else view.columns.names[row]
        if node:
            seats.append((vacancy.role, node))
    # Members that wait speak for themselves after a restart; for others it has to be written.
    gang.repairs = tuple(sorted(seats)) if vacancies or gang.written else ()
    view.record_holds(gang, gang.holds + kept)


def drop_kept(view: View, gang: Gang) -> None:
    """Free the seats kept for the gang's repair; which they were is not forgotten."""
    if any(hold.purpose is Purpose.REPAIR for hold in gang.holds):
        kept = [hold for hold in gang.holds if hold.purpose is not Purpose.REPAIR]
        view.set_holds(gang, kept)


def keeps_of(gang: Gang, policy: Policy) -> Keeps | None:
    """What is to be written on the gang's group: while it is repaired, where and until when."""
    if not gang.started or gang.lapsed or gang.ailing_since is None or not gang.repairs:
        return None
    return Keeps(Purpose.REPAIR, gang.repairs, gang.ailing_since + policy.repair_hold)


def adopt_keeps(view: View, gang: Gang, policy: Policy) -> None:
    """Take up what an earlier life kept for the gang's repair, and since when.

    The shape of who is missing is that of its like; where there is none, nobody can tell.
    """
    assert gang.facts is not None
    keeps = gang.facts.keeps
    if keeps is None or keeps.purpose is not Purpose.REPAIR:
        return
    gang.written, view.keeping[gang.key] = keeps, gang
    if not gang.started or gang.ailing_since is not None:
        return
    members = sorted(gang.members.values(), key=lambda member: member.order, reverse=True)
    like = {member.facts.role: member for member in members}
    for role, node in keeps.seats[: gang.short]:
        if role in like:
            gang.vacancies.append(Vacancy(like[role], node, {}))
    gang.repairs = keeps.seats
    gang.entitled = len(gang.muster.seated) + min(gang.short, len(keeps.seats))
    if keeps.until is not None:
        gang.ailing_since = keeps.until - policy.repair_hold


class _Search:
    """Where a lost seat may be made up for: the nearest rows first, and which ones at all."""

    def __init__(self, view: View, gang: Gang, policy: Policy) -> None:
        self.within = confines(view, gang, policy)
        self._view = view
        self._tiers = policy.tiers
        self._levels = view.tiers.levels(policy.tiers)
        self._own = near(view, gang, policy)
        self._company: Company | None = None
        self._known: dict[tuple[str, ...], Rows] = {}

    def seat_for(self, vacancy: Vacancy) -> int | None:
        """The same node; else in its domain, tier by tier; else near the gang; else anywhere."""
        own = vacancy.seating.rows_of([vacancy.node])
        prefer = [*self._around(vacancy, own), *self._own]
        if vacancy.shunned:
            every = self._view.columns.by_name()
            prefer = [np.setdiff1d(rows, own) for rows in (*prefer, every)]
            own = []
        return self._choose(vacancy.like, own, prefer)

    def seat_near(self, member: Member, at: list[int]) -> int | None:
        """One of these rows; else near the gang; else anywhere."""
        return self._choose(member, at, self._own)

    def _choose(self, like: Member, at: list[int], prefer: Sequence[Rows]) -> int | None:
        seating = like.seating
        if not seating.total(self.within):
            return None
        rows, company = self.within, None
        if self._view.neighbours.concern([like]):
            company = self._company = self._company or Company(self._view)
            rows = self._view.columns.by_name() if rows is None else rows
            rows = rows[company.left(like)[rows]]
            if not seating.total(rows):
                return None
        here = seating.seats()
        former = [row for row in at if here[row] and (rows is None or (rows == row).any())]
        row = former[0] if former else seating.choose(1, prefer, rows).each()[0]
        if company is not None:
            company.seat(like, row)
        return row

    def _around(self, vacancy: Vacancy, own: list[int]) -> list[Rows]:
        if own and self._view.columns.nodes[own[0]] is not None:
            row = np.array(own, np.intp)
            return [
                level.domain(int(at))
                for level in self._levels
                for at in np.flatnonzero(level.containing(row))[:1]
            ]
        # The node is gone: its labels tell who was near.
        said = [(key, vacancy.labels[key]) for key in self._tiers if key in vacancy.labels]
        return [self._labelled(said[at:]) for at in range(len(said))]

    def _labelled(self, path: list[tuple[str, str]]) -> Rows:
        """The rows with all these labels."""
        known = tuple(part for label in path for part in label)
        rows = self._known.get(known)
        if rows is None:
            labels = self._view.columns.labels
            rows = self._known[known] = np.array(
                [
                    row
                    for row in self._view.columns.by_name().tolist()
                    if all(labels[row].get(key) == value for key, value in path)
                ],
                np.intp,
            )
        return rows
