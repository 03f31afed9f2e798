"""Ending others so that a gang can start: only if it then does, and nobody without need.

Within a queue by priority; across queues as far as one may take and the other must give. The
cheapest victims with whose room the whole gang fits are found by bisection over all that may be
ended, in the order of their cost; then each is reprieved, the dearest first, without whom it fits
too. What is freed is kept for the gang until it sits there, or for a while.

Nothing goes round in circles: a victim's priority is lower than that of its evictor, or its queue
has more than its due and the other's has not, or its queue counts less; and a gang that was ended
too often is spared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heappop, heappush

from posse.engine.decisions import Evict, Keep, Reason, Release, Start, Victim
from posse.engine.facts import Keeps, Purpose
from posse.engine.gangs import Gang, Hold, Member, Rank, made
from posse.engine.placement.admitting import refusal
from posse.engine.placement.placing import Placement, seat, start
from posse.engine.placement.shortfalls import Shortfall
from posse.engine.policy import Policy
from posse.engine.preemption.making import awaited, bear_with, kept_until
from posse.engine.preemption.preying import Plan, Prey
from posse.engine.preemption.quarry import Quarry
from posse.engine.preemption.victims import Unit
from posse.engine.queues.lining import held_up
from posse.engine.repair.overdue import dismiss, release
from posse.engine.reservation.reserving import charge_kept_back, turn
from posse.engine.view import View

# Searches in one round; for whom no time is left, the next cycle looks.
_SEARCHES = 16


class Hunt:
    """The search for victims in one round of a cycle.

    Who is blocked in its turn looks for them then, before anybody behind it is served: otherwise
    those would take the room that it lacks only a part of, to be ended for it a moment later, or to
    be in its way for good where they must not be ended. Gangs that have begun and miss a member
    come first. At the end of the round come those whom somebody that has sat down meanwhile could
    help.
    """

    def __init__(
        self, view: View, policy: Policy, now: float, enter: Callable[[str], None]
    ) -> None:
        self._view = view
        self._policy = policy
        self._now = now
        self._enter = enter
        self._wanted = policy.preemption or policy.reclaim
        self._quarry = Quarry(view, policy, now)
        self._moved = False
        self._searches = 0
        # Who sat down since the last round, queue by queue the lowest priority of them.
        self._new: dict[str, int] | None = None
        # For whom was looked in their turn.
        self._served: dict[int, Shortfall] = {}
        # Somebody was ended, or is waited for.
        self.ended = False

    def moved(self) -> None:
        """Somebody has started: shares are other ones, and so is who has too much."""
        self._moved = True

    def unshaded(self) -> None:
        """Less is kept back from those behind than when victims were looked for in their turn."""
        for blocked in self._served.values():
            blocked.sought = False

    def has_prey(self, gang: Gang) -> bool:
        """Whether there is anybody at all who may be ended for this gang."""
        if not self._wanted:
            return False
        if self._new is None:
            self._new = self._view.hunting.sort_out(self._now)
        if self._moved:
            self._moved = False
            self._quarry.moved()
        return self._quarry.has_any_for(gang)

    def at_first(self) -> Iterator[Evict | Keep | Release | Start]:
        """For those that have begun. For whom there was no time in the last round, its turn comes
        again in this one."""
        view = self._view
        put_off, view.hunting.put_off = view.hunting.put_off, {}
        for gang in put_off.values():
            blocked = view.shortfalls.of(gang)
            if blocked is not None:
                blocked.sought = False
            if gang.key not in view.ailing:
                view.stir(gang)
        for gang in sorted(view.ailing.values(), key=lambda gang: gang.rank):
            if view.ailing.get(gang.key) is gang:
                yield from self.in_turn(gang)

    def in_turn(self, gang: Gang) -> Iterator[Evict | Keep | Release | Start]:
        """For this gang, if it was just found not to fit, and for those that ask the same."""
        blocked = self._view.shortfalls.of(gang) if self._wanted else None
        if blocked is None or blocked.sought or not _may_hunt(blocked):
            return
        if len(self._served) == _SEARCHES:
            return
        if not self.has_prey(gang):
            blocked.sought = True
            return
        self._enter("preempt")
        blocked.sought = True
        self._served[id(blocked)] = blocked
        yield from self._chase([blocked])
        self._enter("place")

    def at_last(self) -> Iterator[Evict | Keep | Release | Start]:
        """For everybody else whom it could help."""
        if not self._wanted:
            return
        late = self._view.hunting.sort_out(self._now)
        if late:
            self._quarry.changed()
        before = self._new or {}
        new = {q: min(before.get(q, p), p) for q, p in late.items()}
        yield from self._chase(self._hunters({**before, **new}, late))

    def _hunters(self, new: dict[str, int], late: dict[str, int]) -> list[Shortfall]:
        """Shortfalls that are new or were looked at again, and those that new prey could help:
        only that of late, where they had their turn."""
        view, hunting = self._view, self._view.hunting
        found: dict[int, Shortfall] = {}

        def look(shortfall: Shortfall, first: Gang | None) -> None:
            shortfall.sought = True
            if first is not None and self.has_prey(first) and _may_hunt(shortfall):
                found[id(shortfall)] = shortfall

        for blocked in view.shortfalls.untold.values():
            if isinstance(blocked, Shortfall) and not blocked.sought:
                look(blocked, blocked.first())
        if view.budgets.eased:
            view.budgets.eased = False
            new = dict.fromkeys(hunting.seated, -(1 << 62))
        if new:
            for shortfall in view.shortfalls.each():
                first = shortfall.first()
                if first is None or first.facts is None:
                    continue
                news = late if id(shortfall) in self._served else new
                here = news.get(first.facts.queue)
                elsewhere = len(news) > (here is not None)
                lesser = here is not None and here < first.facts.priority
                if lesser or (elsewhere and self._policy.reclaim):
                    look(shortfall, first)
        return list(found.values())

    def _chase(self, hunters: list[Shortfall]) -> Iterator[Evict | Keep | Release | Start]:
        view, policy, now, quarry = self._view, self._policy, self._now, self._quarry
        heap: list[tuple[Rank, str]] = []

        def enter(shortfall: Shortfall) -> None:
            # Whoever is behind the first has no more prey than it.
            first = shortfall.first()
            gang = None if first is None or not self.has_prey(first) else _first(shortfall)
            if gang is not None and (gang is first or self.has_prey(gang)):
                heappush(heap, (gang.rank, gang.key))

        for shortfall in hunters:
            enter(shortfall)
        while heap:
            _, view.in_turn = heappop(heap)
            key = view.in_turn
            gang = view.gangs.get(key)
            blocked = None if gang is None else view.shortfalls.of(gang)
            if gang is None or blocked is None:
                continue
            if not self.has_prey(gang):
                continue
            if (behind := held_up(view, gang)) is not None:
                view.shortfalls.record(gang, behind)
                continue
            if self._searches >= _SEARCHES:
                view.hunting.put_off[key] = gang
                continue
            turn(view, gang, now)
            plan, searched = _plan(view, gang, policy, quarry)
            view.shadows.show(())
            self._searches += searched
            if plan is None:
                continue
            self.ended = True
            units, placement = plan
            quarry.changed()
            losers = [unit.gang for unit in units if not unit.members]
            taken_from = _others(gang, units)
            told = [_take_over(view, loser, gang) for loser in losers]
            decision = _carry_out(view, gang, units, placement, policy, now)
            gang.taken_from = taken_from
            if isinstance(decision, Evict) or awaited(view, gang):
                yield decision
            yield from told
            for loser in losers:
                heappush(heap, (loser.rank, loser.key))
            for waiting in (gang, *(unit.gang for unit in units if unit.whole)):
                yield from _wait(view, waiting, policy)
            if blocked.gangs:
                enter(blocked)


def give_up_overdue(view: View, now: float) -> Iterator[Keep]:
    """Room that did not come free in time is not waited for any longer, nor is it kept for a gang
    whose queue has closed, or in which nobody waits for it any more.

    Whoever should have gone and is still there is not counted on again, whoever plans.
    """
    for gang in sorted(view.holding.values(), key=lambda gang: gang.key):
        if not made(gang):
            continue
        if gang.kept_until is not None and gang.kept_until <= now:
            bear_with(view, gang)
        date = kept_until(gang)
        if date is not None and date <= now:
            for member in awaited(view, gang):
                view.despair_of(member)
        elif not _shut_out(view, gang) and (gang.muster.waiting or not gang.muster.seated):
            continue
        view.set_holds(gang, [hold for hold in gang.holds if hold not in made(gang)])
        gang.kept_until, gang.awaits, gang.taken_from = None, (), frozenset()
        view.stir(gang)
        yield Keep(gang.key, None)


def _shut_out(view: View, gang: Gang) -> bool:
    """Whether its queue would not let it start, room or not."""
    refused = refusal(view, gang)
    return refused is not None and refused.reason is not Reason.INCOMPLETE


def wake_at(view: View) -> float | None:
    """When room that was made is given up, or somebody may be ended who was spared so far."""
    dates = [kept_until(gang) for gang in view.holding.values() if made(gang)]
    dates.append(view.hunting.next_date())
    return min((date for date in dates if date is not None), default=None)


# -- who looks for victims ---------------------------------------------------------------------


def _may_hunt(shortfall: Shortfall) -> bool:
    if shortfall.verdict is not None:
        return False
    if not shortfall.surplus:
        return True
    first = shortfall.first()
    return first is not None and first.facts is not None and first.facts.grows


def _first(shortfall: Shortfall) -> Gang | None:
    """The first that may end others and does not wait for that already: if it finds no victims,
    those behind it find none either."""
    for gang in shortfall.ranked():
        assert gang.facts is not None
        if gang.facts.preempts and not _provided(gang):
            return gang
    return None


def _provided(gang: Gang) -> bool:
    """Whether all the seats it needs are kept for it."""
    kept = len(made(gang))
    if not kept:
        return False
    needed = gang.need
    if not gang.muster.seated:
        needed += sum(absent.count for absent in gang.muster.absent)
    return kept >= needed


# -- for how many ------------------------------------------------------------------------------


def _plan(view: View, gang: Gang, policy: Policy, quarry: Quarry) -> tuple[Plan | None, int]:
    """Whom to end for what it needs; beyond that, for as many of its members as can be helped."""
    searched = 0

    def plan(need: int) -> Plan | None:
        nonlocal searched
        prey = Prey(view, gang, policy, quarry, need)
        found = prey.plan()
        searched += prey.searched
        return found

    if gang.need:
        return plan(gang.need), searched
    most = len(gang.muster.waiting)
    found = plan(most)
    if found is None and most > 1:
        low, high = 0, most
        while high - low > 1:
            middle = (low + high) // 2 if low else 1
            fewer = plan(middle)
            low, high = (low, middle) if fewer is None else (middle, high)
            found = fewer or found
    return found, searched


# -- doing it ----------------------------------------------------------------------------------


def _carry_out(
    view: View, gang: Gang, units: list[Unit], placement: Placement, policy: Policy, now: float
) -> Evict | Keep:
    assert gang.facts is not None
    ended: dict[str, tuple[Gang, dict[str, Member]]] = {}
    for unit in units:
        if not unit.members:
            continue
        _, members = ended.setdefault(unit.gang.key, (unit.gang, {}))
        members.update((member.facts.uid, member) for member in unit.members)
    victims: list[Victim] = []
    for key, (victim, members) in sorted(ended.items()):
        assert victim.facts is not None
        whole = len(members) == len(victim.muster.seated)
        why = f"ended for {gang.key}: {_right(gang, victim)}"
        order = sorted(members.values(), key=lambda member: member.order)
        victims.append(Victim(key, tuple((m.facts.uid, m.facts.name) for m in order), whole, why))
        for member in order:
            view.leave(member)
        if whole:
            dismiss(view, victim)
            victim.evicted = max(victim.facts.evictions, victim.evicted) + 1
            victim.ended_for = gang.key
        else:
            victim.entitled = max(0, (victim.entitled or 0) - len(members))
            victim.forget_muster()
        view.hunting.note(victim)
    holds = [
        Hold(member.facts.role, member.seating, row, Purpose.PREEMPTION)
        for member, row in placement.seats()
    ]
    seats = tuple(
        sorted((hold.role, view.columns.names[hold.row]) for hold in [*holds, *placement.holds])
    )
    for hold in placement.holds:
        # Beside a seat, what is held for announced members stays what it is.
        purpose = None if gang.muster.seated else Purpose.PREEMPTION
        holds.append(Hold(hold.role, hold.seating, hold.row, purpose))
    view.set_holds(gang, holds)
    gang.kept_until, gang.grace = now + policy.preemption_hold, 0.0
    gang.awaits = tuple(uid for victim in victims for uid, _ in victim.pods)
    view.hunting.note(gang)
    keeps = Keeps(Purpose.PREEMPTION, seats, gang.kept_until)
    return Evict(gang.key, tuple(victims), keeps) if victims else Keep(gang.key, keeps)


def _others(gang: Gang, units: list[Unit]) -> frozenset[str]:
    """The other queues that room is taken from, also by those whose it was to be until now."""
    assert gang.facts is not None
    heirs = [unit.gang.taken_from for unit in units if not unit.members]
    return frozenset(unit.queue for unit in units).union(*heirs) - {gang.facts.queue}


def _take_over(view: View, loser: Gang, gang: Gang) -> Keep | Release:
    """Nothing is kept for the one any more, of which nobody sits: the other has it."""
    loser.kept_until, loser.awaits, loser.taken_from = None, (), frozenset()
    if loser.bereft:
        why = f"its pods are gone, and their seats are no longer kept: {gang.key} has them"
        decision = release(view, loser, f"{why}; {_right(gang, loser)}")
        loser.ended_for = gang.key
        return decision
    view.set_holds(loser, [])
    view.hunting.note(loser)
    return Keep(loser.key, None)


def _right(gang: Gang, victim: Gang) -> str:
    """By what right the one ends the other."""
    assert gang.facts is not None and victim.facts is not None
    if gang.facts.queue == victim.facts.queue:
        return f"priority {gang.facts.priority} comes before {victim.facts.priority}"
    return f"queue {gang.facts.queue} takes back what is due to it from {victim.facts.queue}"


def _wait(view: View, gang: Gang, policy: Policy) -> Iterator[Start]:
    """What it waits for now is told in this cycle; should it wait for nothing, it starts."""
    turn(view, gang, view.now)
    with view.tentatively() as statement:
        charge_kept_back(view)
        outcome = refusal(view, gang) or seat(view, gang, policy, need=gang.bid)
        statement.keep()
    view.shadows.show(())
    if isinstance(outcome, Placement):
        yield start(view, gang, outcome)
    else:
        view.shortfalls.record(gang, outcome)
