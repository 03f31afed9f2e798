"""When those behind the first in line are expected to start, if everybody ends as they said.

The same walk goes on behind the first in line, for a few: each is thought to take its room from now
until it ends, wherever it comes free first. That is on the safe side: whoever fits around the
others starts before. The walk is done a few steps at a time, and begun anew only now and then, so
that it costs an event next to nothing; from the first of whom nobody can know, nobody can know.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from posse.engine.columns import Use
from posse.engine.gangs import Gang
from posse.engine.policy import Policy
from posse.engine.reservation.foreseeing import NEVER, Timeline, fits, room_of
from posse.engine.reservation.reservations import Reservation
from posse.engine.reservation.shadows import Shadow
from posse.engine.view import View

# How many behind the first; how often the walk begins anew, and how soon it goes on, in seconds.
_MOST = 32
_EVERY = 15.0
_SOON = 0.5
# How much is looked at in one cycle: so many rows and pods.
_WORK = 20_000


@dataclass(slots=True)
class Walk:
    inputs: object
    began: float
    timeline: Timeline
    left: list[Gang]
    # What those before take, and until when.
    taken: list[tuple[Shadow, float]]
    # Where in the dates the search for the next one stands: it fits not before, and surely at.
    low: int = -1
    high: int = -1
    room: Shadow | None = None
    dates: list[float] = field(default_factory=list)
    # Of how many it is known by now.
    known: int = 0


def forecast(view: View, policy: Policy, now: float) -> None:
    """Go on with the walk behind each reservation whose date is known."""
    if not policy.backfill:
        return
    steps = max(1, _WORK // (len(view.columns.names) + len(view.members) + 1))
    for _, held in sorted(view.reservations.by_queue.items()):
        if held.starts_at is None or held.room is None or held.gang.facts is None:
            _forget(view, held, ())
            held.walk = None
            continue
        walk = held.walk if isinstance(held.walk, Walk) else None
        inputs = held.inputs
        if walk is None or (walk.inputs != inputs and now >= walk.began + _EVERY):
            walk = held.walk = _begin(view, held, inputs, now)
        elif walk.inputs != inputs:
            continue
        while steps and walk.left:
            steps -= 1
            _step(view, held, walk, policy)


def wake_at(view: View) -> float | None:
    """When there is more to be found out."""
    dates = []
    for held in view.reservations.by_queue.values():
        walk = held.walk if isinstance(held.walk, Walk) else None
        if walk is None or held.gang.facts is None:
            continue
        if walk.inputs != held.inputs:
            dates.append(max(view.now + _SOON, walk.began + _EVERY))
        elif walk.left:
            dates.append(view.now + _SOON)
    return min(dates, default=None)


def _begin(view: View, held: Reservation, inputs: object, now: float) -> Walk:
    gang = held.gang
    assert gang.facts is not None and held.room is not None and held.starts_at is not None
    behind = view.shortfalls.lines.first_few(gang.facts.queue, _MOST + 1)
    left = [each for each in behind if each is not gang][:_MOST]
    _forget(view, held, [each.key for each in left])
    taken = [(held.room, _end(gang, held.starts_at))]
    walk = Walk(inputs, now, Timeline(view, now), left, taken)
    _next(walk)
    return walk


def _step(view: View, held: Reservation, walk: Walk, policy: Policy) -> None:
    """Try one date for the next in line."""
    gang = walk.left[0]
    if view.gangs.get(gang.key) is not gang or view.shortfalls.of(gang) is None:
        walk.left = walk.left[1:]
        return
    at = walk.high if walk.room is None else (walk.low + walk.high) // 2
    room = _at(view, walk, gang, policy, walk.dates[at]) if walk.dates else None
    if room is not None:
        walk.high, walk.room = at, room
    elif walk.room is None:
        # Nobody can know of this one, nor of whoever comes behind it.
        _forget(view, held, list(held.expected)[: walk.known])
        walk.left = []
        return
    else:
        walk.low = at
    if walk.high - walk.low > 1:
        return
    date = walk.dates[walk.high]
    walk.known += 1
    if held.expected.get(gang.key) != date:
        held.expected[gang.key] = date
        view.shortfalls.tell(gang)
    walk.taken.append((walk.room, _end(gang, date)))
    walk.left = walk.left[1:]
    _next(walk)


def _next(walk: Walk) -> None:
    """Whenever anybody ends, those in front among them, the next one may fit."""
    ends = dict.fromkeys(walk.timeline.dates)
    ends.update((date, None) for _, date in walk.taken if date < NEVER)
    walk.dates = sorted(ends)
    walk.low, walk.high, walk.room = -1, len(walk.dates) - 1, None


def _at(view: View, walk: Walk, gang: Gang, policy: Policy, date: float) -> Shadow | None:
    columns = view.columns
    with view.tentatively():
        walk.timeline.pass_until(date)
        for room, end in walk.taken:
            if end > date:
                columns.shift(room.rows, room.amounts, use=Use.HELD)
        placement = fits(view, gang, policy)
        return None if placement is None else room_of(view, placement)


def _end(gang: Gang, start: float) -> float:
    assert gang.facts is not None
    return NEVER if gang.facts.runs_for is None else start + gang.facts.runs_for


def _forget(view: View, held: Reservation, known: list[str] | tuple[str, ...]) -> None:
    """Nothing is expected any more of those that are not among these."""
    for key in [key for key in held.expected if key not in known]:
        del held.expected[key]
        if key in view.gangs:
            view.shortfalls.tell(view.gangs[key])
