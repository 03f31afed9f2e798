"""A gang's turn: its whole minimum together with its announced members, or nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from posse.engine.decisions import Cause, HeldSeat, Reason, Seat, Shortage, Start, Verdict
from posse.engine.fit.seating import Seating
from posse.engine.gangs import Gang, Hold, Member
from posse.engine.placement.admitting import stranded
from posse.engine.placement.demands import Demand, demands_of, signature_of
from posse.engine.placement.nearing import ANYWHERE, limits, near
from posse.engine.placement.parting import pack_parts
from posse.engine.placement.relating import concern, has_room, pack, pack_more
from posse.engine.placement.searching import Found
from posse.engine.placement.shortfalls import Shortfall
from posse.engine.policy import Policy
from posse.engine.queues.quotas import budget_of, stop, stops_more, stops_part
from posse.engine.repair.overdue import watch
from posse.engine.resources import amount, gravity, words
from posse.engine.view import View

# In so many turns the members beyond a minimum are seated where other queues want the room, too.
_TURNS = 16


@dataclass(frozen=True, slots=True)
class Placement:
    """Seats found and already counted in the columns; `start` makes them the gang's."""

    members: list[Member]
    # Where each of them sits.
    rows: list[int]
    holds: list[Hold]
    # How many of the members are of each shape.
    seatings: dict[Seating, int]

    def seats(self) -> Iterator[tuple[Member, int]]:
        return zip(self.members, self.rows, strict=True)


def place(view: View, gang: Gang, policy: Policy, contended: bool = False) -> Placement | Shortfall:
    """A gang in its turn: its minimum or, once that is seated, members beyond it.

    Of these only some where it is `contended`: queues that share what is left take turns.
    """
    if gang.short:
        excess = more_than_there_is(view, gang)
        return excess or seat(view, gang, policy, need=gang.need)
    bid = gang.bid if gang.facts is not None and gang.facts.grows else 0
    beyond = max(0, gang.abreast - bid)
    if contended:
        beyond = min(beyond, -(-max(1, gang.muster.there - gang.least) // _TURNS))
    if gang.muster.squads is not None:
        return seat_parts(view, gang, policy, beyond)
    return seat(view, gang, policy, need=bid, beyond=beyond)


def seat_parts(view: View, gang: Gang, policy: Policy, beyond: int) -> Placement | Shortfall:
    """One more part of a gang whose parts are gangs themselves; or members of those that are whole,
    up to `beyond`.

    A part is not shared out among turns: whoever has one has all that makes it whole.
    """
    squads = gang.muster.squads
    assert squads is not None
    parts: list[Shortfall] = []
    for block in squads.blocks:
        outcome = seat(view, gang, policy, need=len(block), who=block)
        if isinstance(outcome, Placement):
            return outcome
        parts.append(outcome)
    if squads.singles:
        outcome = seat(view, gang, policy, need=0, beyond=beyond, who=squads.singles)
        if isinstance(outcome, Placement) or not squads.blocks:
            return outcome
    # All of them wait, for whatever helps any of them.
    outcome = seat(view, gang, policy, need=0)
    if parts and isinstance(outcome, Shortfall):
        first = demands_of(gang, 1, squads.singles) if squads.singles else parts[0].demands
        outcome.upcoming = [demand for demand in first if not demand.announced]
        if not squads.singles:
            outcome.quota = stops_part(parts[0], outcome.demands)
    return outcome


def more_than_there_is(view: View, gang: Gang) -> Shortfall | None:
    """The gang as a whole asks more than all nodes offer: none of it starts, whatever fits."""
    facts, columns = gang.facts, view.columns
    assert facts is not None
    if not facts.min_resources or gang.muster.seated:
        return None
    beyond = [
        Shortage(resource, asked, free=0, total=offered)
        for resource, asked in sorted(facts.min_resources, key=lambda each: gravity(each[0]))
        if asked > (offered := columns.offers(resource))
    ]
    if not beyond:
        return None
    # What its pods ask for by themselves tells a better story.
    demands = demands_of(gang, gang.need)
    short = tuple(
        each
        for each in beyond
        if sum(d.wanted * d.seating.asked.get(each.resource, 0) for d in demands) < each.asked
    )
    if not short:
        return None
    worst = short[0]
    verdict = Verdict(
        Reason.UNSCHEDULABLE,
        f"asks for at least {words(worst.resource, worst.asked)} in all (minResources), but the"
        f" cluster has {amount(worst.resource, worst.total)} on today's nodes;"
        f" add {amount(worst.resource, worst.asked - worst.total)}",
        Cause.TOO_MANY,
        short,
    )
    signature = (facts.queue, "minResources", facts.min_resources)
    return Shortfall(signature, [], True, surplus=False, seen=columns.last_freed, verdict=verdict)


def outgrows(view: View, gang: Gang) -> bool:
    """Whether its minimum could not be seated even if nobody sat on today's nodes. Found without a
    look for room: of several roles that only together are too much it is not."""
    if more_than_there_is(view, gang) is not None:
        return True
    demands = demands_of(gang, gang.need)
    waiting = [demand for demand in demands if not demand.announced]
    chosen = len(waiting) < 2 or sum(demand.most for demand in waiting) <= gang.need
    return any(
        demand.seating.total_if_empty() < (demand.wanted if chosen else demand.least)
        for demand in demands
    )


def seat(
    view: View,
    gang: Gang,
    policy: Policy,
    *,
    need: int,
    beyond: int = 0,
    who: list[Member] | None = None,
    afresh: bool = False,
) -> Placement | Shortfall:
    """Seat `need` waiting members and hold a seat for every absent one, or change nothing.

    Then up to `beyond` further members, as many as there is room for. `who`: of these only;
    `afresh`: whatever is known of gangs that ask the same.
    """
    assert gang.facts is not None
    demands = demands_of(gang, need, who)
    moves = view.columns.moves if concern(view, demands) else None
    cast = view.shadows.cast
    signature = (*signature_of(gang, demands, need, beyond), *cast)
    known = None if afresh else view.shortfalls.recall(signature)
    if known is not None:
        return known
    seen = view.columns.last_freed
    budget = budget_of(view, gang)
    if budget is not None and (quota := stop(view, gang, demands, need, budget)) is not None:
        return Shortfall(
            signature, demands, True, surplus=not need, seen=seen, quota=quota, cast=cast
        )
    close = near(view, view.rows_of(gang), policy)
    proven = True
    # Where nobody must be seated, nobody is missing.
    fits = not need and not any(demand.announced for demand in demands)
    with view.tentatively() as attempt, view.as_seen_by(gang):
        untouched = attempt.mark()
        for limit in limits(view, gang, demands, need, policy):
            limit.apply(demands)
            if gang.facts.nearer:
                found, sure = pack_parts(view, gang, demands, need, close, limit, policy)
            else:
                found, sure = pack(view, demands, need, close, limit.heed(policy))
            proven = sure if limit.whole else proven and sure
            if found is not None and (budget is None or budget.bears(view, demands, found)):
                fits = True
                left = budget.after(view, demands, found) if budget and beyond else None
                more = pack_more(view, demands, found, beyond, close, policy, left)
                placement = _placement(demands, found)
                if need or more or placement.holds != gang.holds:
                    attempt.keep()
                    return placement
            attempt.back_to(untouched)
    ANYWHERE.apply(demands)
    if moves is not None and not has_room(demands, need):
        # Whoever comes or goes, it is room that must come first.
        moves = None
    quota = stops_more(view, gang, demands, budget) if budget is not None and fits else None
    return Shortfall(
        signature, demands, proven, surplus=fits, seen=seen, quota=quota, moves=moves, cast=cast
    )


def start(view: View, gang: Gang, placement: Placement) -> Start:
    """Give the gang its seats and holds; from here on the view counts them as taken."""
    view.shortfalls.remove(gang)
    if gang.holds or placement.holds:
        view.record_holds(gang, placement.holds)
    view.hunting.note(gang)
    gang.kept_until, gang.ended_for = None, ""
    gang.awaits, gang.taken_from = (), frozenset()
    view.assume(gang, placement.members, placement.rows, placement.seatings)
    if gang.vacancies:
        gang.fill((member.facts.role, view.columns.names[row]) for member, row in placement.seats())
    gang.dismissed = False
    gang.entitled = max(gang.entitled or 0, len(gang.muster.seated))
    watch(view, gang)
    gang.verdict = None
    if gang.at_rest and (left := stranded(gang)) is not None:
        view.shortfalls.record(gang, left)
    names = view.columns.names
    seats = [Seat(m.facts.uid, m.facts.name, names[row]) for m, row in placement.seats()]
    held = sorted((hold.role, names[hold.row]) for hold in gang.holds)
    return Start(
        gang.key,
        tuple(seats),
        tuple(HeldSeat(role, node) for role, node in held),
    )


def _placement(demands: list[Demand], found: Found) -> Placement:
    placement = Placement([], [], [], {})
    for demand in demands:
        rows, seating = found.get(demand), demand.seating
        if not rows:
            continue
        if demand.announced:
            placement.holds.extend(Hold(demand.role, seating, row) for row in rows)
        else:
            placement.members.extend(demand.members[: len(rows)])
            placement.rows.extend(rows)
            placement.seatings[seating] = placement.seatings.get(seating, 0) + len(rows)
    return placement
