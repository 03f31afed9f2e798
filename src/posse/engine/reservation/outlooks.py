"""What a waiting gang is told about when it starts, and behind whom it waits."""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec.structs import replace

from posse.engine.decisions import Reason, Verdict
from posse.engine.gangs import Gang, made
from posse.engine.placement.shortfalls import Shortfall
from posse.engine.policy import Policy
from posse.engine.resources import count
from posse.engine.view import View

_MINUTE = 60.0
_FORESEEABLE = 2 * 365 * 24 * 60 * _MINUTE


def outlook(view: View, gang: Gang, verdict: Verdict, policy: Policy) -> Verdict:
    """The verdict with what is known of the gang's start, and its place in line."""
    verdict = _told_when(view, gang, verdict, policy)
    place = place_of(view, gang, verdict)
    return replace(verdict, position=place) if place else verdict


def place_of(view: View, gang: Gang, verdict: Verdict) -> int:
    """Its place in line, if it is among the first; who need not stand in line has none."""
    if verdict.surplus or gang.key in view.ailing or made(gang):
        return 0
    return view.shortfalls.lines.place(gang)


def _told_when(view: View, gang: Gang, verdict: Verdict, policy: Policy) -> Verdict:
    if verdict.surplus or made(gang):
        return verdict
    held = view.reservations.of(gang)
    if held is None:
        return _expected(view, gang, verdict)
    sentence = verdict.sentence
    if held.starts_at is not None:
        sentence += f"; expected to start {about(held.starts_at, view.now)}"
    elif held.unknown:
        jobs = count(held.unknown, "job")
        sentence += f"; when it starts is unknown: {jobs} {_state(held.unknown)} no max runtime"
        sentence += _protected(view, gang, policy)
    if held.gathers and held.room is not None:
        sentence += f"; what comes free on {count(len(held.room.rows), 'node')} is kept for it"
    return replace(verdict, sentence=sentence, starts_at=held.starts_at)


def _protected(view: View, gang: Gang, policy: Policy) -> str:
    """Whom it might end one day, and from when on; whether that would be enough is not promised."""
    facts, hunting = gang.facts, view.hunting
    assert facts is not None
    if not (policy.preemption and facts.preempts):
        return ""
    dates = {
        key: hunting.fresh[key]
        for priority, gangs in hunting.seated.get(facts.queue, {}).items()
        if priority < facts.priority
        for key in gangs.keys() & hunting.fresh.keys()
    }
    if not dates:
        return ""
    first, date = min(dates.items(), key=lambda each: (each[1], each[0]))
    others = f" and {count(len(dates) - 1, 'job')} more" if len(dates) > 1 else ""
    return (
        f"; {first}{others} of lower priority may not be ended for it before"
        f" {about(date, view.now).removeprefix('at ')} (min-runtime)"
    )


def _expected(view: View, gang: Gang, verdict: Verdict) -> Verdict:
    """For those behind the first in line."""
    assert gang.facts is not None
    first = view.reservations.by_queue.get(gang.facts.queue)
    date = None if first is None else first.expected.get(gang.key)
    if date is None:
        return verdict
    return replace(
        verdict,
        sentence=f"{verdict.sentence}; expected to start {about(date, view.now)}",
        starts_at=date,
    )


def waits_behind(view: View, shortfall: Shortfall) -> Verdict | None:
    """What a gang is told that would fit, were nothing kept back from it."""
    if not shortfall.behind:
        return None
    names = sorted(shortfall.behind)
    some = ", ".join(names[:2]) + (f" and {len(names) - 2} more" if len(names) > 2 else "")
    sentence = f"waits behind {some}, for which the free room is kept"
    dates = [
        held.starts_at
        for held in view.reservations.by_queue.values()
        if held.gang.key in names and held.starts_at is not None
    ]
    if len(dates) == len(names):
        first = min(dates)
        they = "it starts" if len(names) == 1 else "they start"
        sentence += f" until {they} {about(first, view.now)}; it could start now if its max runtime"
        sentence += " ended before then"
    return Verdict(Reason.RESERVED, sentence, surplus=shortfall.surplus)


def about(date: float, now: float) -> str:
    """A time of day, as exact as anybody would believe; the day where it is another one."""
    if date - now > _FORESEEABLE:
        return "years from now"
    exact = _MINUTE if date - now < 60 * _MINUTE else 5 * _MINUTE
    rounded = datetime.fromtimestamp(-(-date // exact) * exact, UTC)
    today = datetime.fromtimestamp(now, UTC)
    pattern = "%H:%M UTC" if rounded.date() == today.date() else "%H:%M UTC on %Y-%m-%d"
    return f"at about {rounded.strftime(pattern)}"


def _state(number: int) -> str:
    return "states" if number == 1 else "state"
