"""Gangs that have begun and miss something: completed before anyone else, or let go.

A gang that lost a member, one left half-bound by a crash or a refused bind, one whose announced
member arrived or whose held seat was lost. What fits of the missing seats is kept from everyone
else until all of it fits. A half-bound gang that never ran gives its seats back after a while,
if somebody recreates its pods; one that ran is never let go here.
"""

from __future__ import annotations

from collections.abc import Iterator

from posse.engine.admitting import refusal
from posse.engine.decisions import Release, Start
from posse.engine.facts import Purpose
from posse.engine.gangs import Gang
from posse.engine.holding import adopt, give_up_lost
from posse.engine.placing import Placement, keep_what_fits, seat, start
from posse.engine.policy import Policy
from posse.engine.resources import count
from posse.engine.view import View

# Holds of a gang that has no seat yet.
_MADE = (Purpose.PREEMPTION, Purpose.RESERVATION)


def heal(view: View, policy: Policy, now: float) -> Iterator[Start | Release]:
    give_up_lost(view)
    _sort_out(view, now)
    ailing = sorted(view.ailing.values(), key=lambda gang: gang.rank)
    if any(gang.key in view.stirred for gang in ailing) or view.columns.last_freed > view.healed:
        for gang in ailing:
            _drop_kept(view, gang)
        for gang in ailing:
            yield from _complete(view, gang, policy)
        view.healed = view.columns.last_freed
    yield from _release(view, policy, now)


def wake_at(view: View, policy: Policy) -> float | None:
    """When the next half-bound gang is to be let go: a cycle is due then without any event."""
    dates = [
        gang.half_since + policy.release_after
        for gang in view.ailing.values()
        if gang.half_since is not None and gang.facts is not None and gang.facts.recreated
    ]
    return min(dates, default=None)


def _sort_out(view: View, now: float) -> None:
    """Tell those that ail from those that wait their turn, and drop what asks for nothing."""
    for gang in sorted(view.stirred.values(), key=lambda gang: gang.key):
        if gang.facts is None:
            del view.stirred[gang.key]
            continue
        if not gang.adopted:
            adopt(view, gang)
        muster = gang.muster
        if gang.entitled is None:
            gang.entitled = muster.present if gang.started else 0
        gang.entitled = max(gang.entitled, len(muster.seated))
        if not muster.seated and gang.holds and not (gang.started and muster.waiting):
            # A hold stands beside a seat: a gang that has none is simply placed again, unless
            # room was made for it.
            mustered = muster.present >= gang.least
            kept = [h for h in gang.holds if mustered and h.purpose in _MADE]
            view.set_holds(gang, kept)
        if not gang.half_bound:
            gang.half_since = None
        elif gang.half_since is None:
            gang.half_since = now
        if gang.ails():
            view.ailing[gang.key] = gang
            continue
        view.ailing.pop(gang.key, None)
        _drop_kept(view, gang)
        if gang.at_rest:
            del view.stirred[gang.key]
            view.shortfalls.remove(gang)
            gang.verdict = None


def _complete(view: View, gang: Gang, policy: Policy) -> Iterator[Start]:
    """Seat what is missing; where it cannot all be seated, keep what can."""
    while view.ailing.get(gang.key) is gang and gang.facts is not None:
        view.stirred.pop(gang.key, None)
        need = gang.need
        outcome = refusal(view, gang) or seat(
            view, gang, policy, need=need, beyond=max(0, gang.owed - need)
        )
        if not isinstance(outcome, Placement):
            keep_what_fits(view, gang, need)
            view.shortfalls.record(gang, outcome)
            return
        decision = start(view, gang, outcome)
        gang.half_since = None
        if not gang.ails():
            del view.ailing[gang.key]
            if not gang.at_rest:
                view.stir(gang)
        yield decision


def _drop_kept(view: View, gang: Gang) -> None:
    if any(hold.purpose is Purpose.REPAIR for hold in gang.holds):
        kept = [hold for hold in gang.holds if hold.purpose is not Purpose.REPAIR]
        view.set_holds(gang, kept)


def _release(view: View, policy: Policy, now: float) -> Iterator[Release]:
    for gang in sorted(view.ailing.values(), key=lambda gang: gang.rank):
        if gang.half_since is None or now - gang.half_since < policy.release_after:
            continue
        if view.ailing.get(gang.key) is not gang or gang.facts is None:
            continue
        if not (gang.facts.recreated and gang.half_bound):
            continue
        seated = sorted(gang.muster.seated, key=lambda member: member.order)
        why = (
            f"{len(seated)} of {count(gang.least, 'pod')} had a seat and the others found none"
            f" in {policy.release_after:g} s; all give theirs back and wait together"
        )
        for member in seated:
            view.leave(member)
        gang.half_since = None
        del view.ailing[gang.key]
        view.set_holds(gang, [])
        view.stir(gang)
        yield Release(gang.key, tuple((m.facts.uid, m.facts.name) for m in seated), why)
