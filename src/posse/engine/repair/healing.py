"""Gangs that have begun and miss something: completed before anyone else, or let go.

A gang that lost a member, one left half-bound by a crash or a refused bind, one whose announced
member arrived or whose held seat was lost. What fits of the missing seats is kept from everyone
else until all of it fits, or for a while: a gang that is not whole again by then gives all its
seats back, if somebody recreates its pods; if nobody does, it keeps those it has, and no others.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from posse.engine.decisions import Keep, Reason, Release, Start, Verdict
from posse.engine.facts import Purpose
from posse.engine.gangs import Gang, Hold
from posse.engine.placement.admitting import lacking, refusal, stranded
from posse.engine.placement.placing import Placement, seat, seat_parts, start
from posse.engine.placement.shortfalls import Shortfall
from posse.engine.policy import Policy
from posse.engine.preemption.making import adopt_made
from posse.engine.repair.holding import adopt, give_up_lost
from posse.engine.repair.keeping import adopt_keeps, drop_kept, keep_what_fits, keeps_of
from posse.engine.repair.overdue import let_go_overdue, release, watch
from posse.engine.resources import count, lasting
from posse.engine.view import View

# Holds of a gang that has no seat yet.
_MADE = (Purpose.PREEMPTION, Purpose.RESERVATION)


def heal(view: View, policy: Policy, now: float) -> Iterator[Start | Release | Keep]:
    give_up_lost(view)
    _lapse(view, policy, now)
    _sort_out(view, policy, now)
    if helped(view) or any(key in view.stirred for key in view.ailing):
        yield from _complete_all(view, policy)
        while helped(view):
            # One that was completed has given up a seat that an earlier one may want.
            yield from _complete_all(view, policy)
    yield from _release(view, policy, now)
    yield from let_go_overdue(view, policy, now)
    yield from _write_down(view, policy)


def helped(view: View) -> bool:
    """Whether room came free since the ailing were last looked at."""
    return bool(view.ailing) and view.columns.last_freed > view.healed


def wake_at(view: View, policy: Policy) -> float | None:
    """When the next gang's time is over: a cycle is due then without any event."""
    dates = [_deadline(gang, policy) for gang in view.ailing.values() if not gang.lapsed]
    starting = view.starting.next_date(policy.start_timeout)
    return min(dates if starting is None else [*dates, starting], default=None)


def _deadline(gang: Gang, policy: Policy) -> float:
    assert gang.facts is not None and gang.ailing_since is not None
    if gang.half_since is not None and gang.facts.recreated:
        return gang.half_since + policy.release_after
    return gang.ailing_since + policy.repair_hold


def _let_go_in_the_end(gang: Gang) -> bool:
    """Whether it is released when its time is over: not for members it never had."""
    assert gang.facts is not None
    if gang.bereft:
        return True
    if not (gang.facts.recreated and gang.muster.seated):
        return False
    return gang.half_bound or gang.lost() or not (gang.short or gang.owed)


def _lapse(view: View, policy: Policy, now: float) -> None:
    """Gangs that ail for too long, and cannot be released, keep no seats any more."""
    for gang in sorted(view.ailing.values(), key=lambda gang: gang.key):
        if gang.lapsed or now < _deadline(gang, policy) or _let_go_in_the_end(gang):
            continue
        gang.lapsed = True
        gang.entitled = len(gang.muster.seated)
        view.stir(gang)


def _sort_out(view: View, policy: Policy, now: float) -> None:
    """Tell those that ail from those that wait their turn, and drop what asks for nothing."""
    for gang in sorted(view.stirred.values(), key=lambda gang: gang.key):
        view.in_turn = gang.key
        if gang.facts is None:
            del view.stirred[gang.key]
            continue
        if not gang.adopted:
            adopt(view, gang)
            adopt_made(view, gang, now)
            adopt_keeps(view, gang, policy)
        muster = gang.muster
        _note_dismissal(gang)
        if gang.entitled is None:
            gang.entitled = (gang.facts.ran_with or muster.there) if gang.started else 0
        gang.entitled = max(gang.entitled, len(muster.seated))
        if not muster.seated and gang.holds and not (gang.started and muster.waiting):
            # A hold stands beside a seat: a gang that has none is simply placed again, unless
            # room was made for it. What others end for waits for a pod that is made anew, too, as
            # long as it would for them.
            purposes = [Purpose.PREEMPTION] if muster.waiting else []
            purposes += [Purpose.RESERVATION] if muster.present >= gang.least else []
            view.set_holds(gang, [hold for hold in gang.holds if hold.purpose in purposes])
        watch(view, gang)
        if not gang.half_bound:
            gang.half_since = None
        elif gang.half_since is None:
            gang.half_since = now
        if not gang.short:
            gang.vacancies.clear()
        if gang.ails():
            view.ailing[gang.key] = gang
            if gang.ailing_since is None:
                gang.ailing_since = now
            continue
        _recover(view, gang)
        if gang.at_rest:
            del view.stirred[gang.key]
            if (left := stranded(gang)) is not None:
                view.shortfalls.record(gang, left)
                continue
            view.shortfalls.remove(gang)
            gang.verdict = None


def _note_dismissal(gang: Gang) -> None:
    """All its seats were given up, or none was after all."""
    assert gang.facts is not None
    if not gang.dismissed:
        gang.dismissed = (
            gang.facts.started
            and not gang.muster.seated
            and any(member.leaving for member in gang.members.values())
        )
    elif gang.muster.seated and not gang.short:
        gang.dismissed = False


def _recover(view: View, gang: Gang) -> None:
    """It does not ail, or not any more."""
    view.ailing.pop(gang.key, None)
    gang.half_since = gang.ailing_since = None
    gang.lapsed = False
    gang.repairs = ()
    drop_kept(view, gang)


def _complete_all(view: View, policy: Policy) -> Iterator[Start]:
    ailing = sorted(view.ailing.values(), key=lambda gang: gang.rank)
    kept = [drop_kept(view, gang) for gang in ailing]
    view.healed = view.columns.last_freed
    for gang, before in zip(ailing, kept, strict=True):
        yield from _complete(view, gang, policy, before)


def _complete(view: View, gang: Gang, policy: Policy, before: list[Hold]) -> Iterator[Start]:
    """Seat what is missing; where it cannot all be seated, keep what can, where it was `before`."""
    view.in_turn = gang.key
    while view.ailing.get(gang.key) is gang and gang.facts is not None:
        view.stirred.pop(gang.key, None)
        need, bid = gang.need, gang.bid
        outcome = refusal(view, gang) or _seat_missing(view, gang, policy, bid)
        if not isinstance(outcome, Placement):
            if gang.lapsed:
                gang.repairs = ()
            else:
                keep_what_fits(view, gang, need, policy, before)
            if isinstance(outcome, Verdict) and outcome.reason is Reason.INCOMPLETE:
                outcome = replace(outcome, sentence=_incomplete(view, gang, policy))
            view.shortfalls.record(gang, outcome)
            return
        decision = start(view, gang, outcome)
        gang.half_since = None
        if not gang.ails():
            _recover(view, gang)
            if not gang.at_rest:
                view.stir(gang)
        yield decision


def _seat_missing(view: View, gang: Gang, policy: Policy, need: int) -> Placement | Shortfall:
    """What its minimum lacks, and what it had beyond that."""
    owed = max(0, gang.owed - need)
    if gang.muster.squads is None:
        return seat(view, gang, policy, need=need, beyond=owed)
    return seat(view, gang, policy, need=need) if need else seat_parts(view, gang, policy, owed)


def _incomplete(view: View, gang: Gang, policy: Policy) -> str:
    """Who is missing in a gang that has begun, and what is done about it."""
    lack = lacking(gang)
    assert lack is not None
    what, _ = lack
    kept = sorted(
        view.columns.names[hold.row] for hold in gang.holds if hold.purpose is Purpose.REPAIR
    )
    if kept:
        nodes = list(dict.fromkeys(kept))
        where = ", ".join(nodes[:3]) + (f" and {len(nodes) - 3} more" if len(nodes) > 3 else "")
        whose = "its successor" if len(kept) == 1 else "their successors"
        return f"{what}; {count(len(kept), 'seat')} on {where} kept for {whose}"
    if gang.lapsed:
        return (
            f"{what}; nobody came for {lasting(policy.repair_hold)}, and no seat is kept any more"
        )
    return f"{what}; it goes on when all of them do"


def _release(view: View, policy: Policy, now: float) -> Iterator[Release]:
    for gang in sorted(view.ailing.values(), key=lambda gang: gang.rank):
        if view.ailing.get(gang.key) is not gang or gang.facts is None or gang.lapsed:
            continue
        if now < _deadline(gang, policy) or not _let_go_in_the_end(gang):
            continue
        seated = gang.muster.filled
        if gang.half_bound:
            why = (
                f"{seated} of {count(gang.least, 'pod')} had a seat and the others found none"
                f" in {policy.release_after:g} s; all give theirs back and wait together"
            )
        elif gang.bereft:
            why = (
                f"it lost all its pods and was not whole again in {lasting(policy.repair_hold)};"
                " no seat is kept any more, and it waits in line"
            )
        else:
            why = (
                f"it runs with {seated} of {count(gang.least, 'pod')} and was not whole again in"
                f" {lasting(policy.repair_hold)}; all give their seats back and wait together"
            )
        yield release(view, gang, why)


def _write_down(view: View, policy: Policy) -> Iterator[Keep]:
    """What is kept must outlive us: each change of it is told."""
    changed = {**view.keeping, **view.ailing}
    for key in sorted(changed):
        gang = changed[key]
        keeps = keeps_of(gang, policy)
        if keeps == gang.written:
            continue
        gang.written = keeps
        if keeps is not None:
            view.keeping[key] = gang
            yield Keep(key, keeps)
            continue
        view.keeping.pop(key, None)
        if not any(hold.purpose in _MADE for hold in gang.holds):
            # Otherwise it says by now what is kept for another purpose.
            yield Keep(key, None)
