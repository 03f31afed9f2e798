"""Gangs that have their nodes and do not come to run: they say so, and are let go whole."""

from __future__ import annotations

from collections.abc import Iterator

from posse.engine.decisions import Reason, Release, Verdict
from posse.engine.gangs import Gang
from posse.engine.policy import Policy
from posse.engine.resources import count, lasting
from posse.engine.view import View


def watch(view: View, gang: Gang) -> None:
    """Have an eye on the gang from when its minimum is seated to when it has run whole.

    Where it was seated before it was first seen, others say since when, by another clock. Where
    that was seen, only our own counts: an hour between the two clocks is no hour of waiting.
    """
    if not gang.muster.seated or gang.short or gang.started:
        view.starting.remove(gang)
        gang.seated_since, gang.overdue = None, False
    elif gang.seated_since is None:
        said = None if gang.facts is None else gang.facts.began
        gang.seated_since = view.now if said is None else min(said, view.now)
        view.starting.add(gang)
    elif gang in view.starting:
        view.starting.add(gang)


def let_go_overdue(view: View, policy: Policy, now: float) -> Iterator[Release]:
    late = view.starting.late(policy.start_timeout, now)
    for gang in sorted(late, key=lambda gang: gang.rank):
        if gang not in view.starting or gang.facts is None or gang.overdue:
            continue
        seated = sorted(gang.muster.seated, key=lambda member: member.order)
        idle = [member for member in seated if not member.facts.running]
        if not idle:
            # They run; its group will say so.
            view.starting.remove(gang)
            continue
        gang.overdue = True
        first = next((member for member in idle if member.facts.trouble), idle[0])
        where = view.columns.names[first.row]
        why = (
            f"{len(idle)} of {count(len(seated), 'pod')} {'is' if len(idle) == 1 else 'are'} not"
            f" running {lasting(_limit(gang, policy))} after they got their nodes:"
            f" {first.facts.name.rpartition('/')[2]} on {where}"
            f" {first.facts.trouble or 'has not started'}"
        )
        if not gang.facts.recreated:
            view.shortfalls.record(gang, Verdict(Reason.OVERDUE, why))
            continue
        yield release(view, gang, f"{why}; all give their nodes back and wait together")


def release(view: View, gang: Gang, why: str) -> Release:
    """All of the gang's seats are given up; what it was owed is forgotten."""
    seated = sorted(gang.muster.seated, key=lambda member: member.order)
    for member in seated:
        view.leave(member)
    dismiss(view, gang)
    return Release(gang.key, tuple((m.facts.uid, m.facts.name) for m in seated), why)


def dismiss(view: View, gang: Gang) -> None:
    """The gang was let go whole, and begins anew like any other."""
    gang.half_since = gang.ailing_since = gang.seated_since = None
    gang.lapsed = gang.overdue = False
    gang.dismissed = True
    gang.entitled = 0
    gang.vacancies.clear()
    gang.repairs = ()
    view.ailing.pop(gang.key, None)
    view.starting.remove(gang)
    view.set_holds(gang, [])
    view.stir(gang)


def _limit(gang: Gang, policy: Policy) -> float:
    assert gang.facts is not None
    timeout = gang.facts.start_timeout
    return policy.start_timeout if timeout is None else timeout
