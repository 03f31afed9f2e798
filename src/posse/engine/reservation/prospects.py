"""When and where the first gang of a queue can start, or where room is gathered for it."""

from __future__ import annotations

import numpy as np

from posse.engine.columns import Ints, Rows, Use
from posse.engine.decisions import Keep
from posse.engine.facts import Keeps, Purpose
from posse.engine.gangs import Gang
from posse.engine.placement.placing import Placement
from posse.engine.policy import Policy
from posse.engine.reservation.foreseeing import (
    NEVER,
    Timeline,
    earliest,
    fits,
    room_of,
    seats_of,
)
from posse.engine.reservation.heads import fixed, times_overtaken
from posse.engine.reservation.reservations import Ahead, Inputs, Reservation
from posse.engine.reservation.shadows import Shadow
from posse.engine.view import View


def outdated(view: View, gang: Gang, ahead: Ahead, now: float) -> bool:
    held = view.reservations.of(gang)
    return held is None or held.inputs != _inputs(view, gang, ahead) or now >= held.stale_at


def _inputs(view: View, gang: Gang, ahead: Ahead) -> Inputs:
    """What its reservation is worked out from."""
    return (view.columns.moves, view.estimates, *fixed(view, gang), ahead.signature)


def work_out(view: View, gang: Gang, policy: Policy, now: float, ahead: Ahead) -> bool:
    """Whether there is a reservation for the gang now; if not, it could not start anyway.

    What is reserved for those who come before it is theirs.
    """
    assert gang.facts is not None
    view.in_turn = gang.key
    state, queue = view.reservations, gang.facts.queue
    held = state.of(gang)
    if held is None:
        held = state.by_queue[queue] = Reservation(gang, _since(gang, now))
        held.counted = times_overtaken(gang)
    due = _due(held, policy, now)
    if not outdated(view, gang, ahead, now) and held.due == due:
        _look_again(view, held)
        return True
    before, room = _told(held), held.room
    timeline = _timeline(view, now)
    held.inputs, held.due = _inputs(view, gang, ahead), due
    held.stale_at = next((date for date in timeline.dates if date > now), NEVER)
    with view.tentatively():
        _count(view, ahead)
        hope = _foresee(view, held, policy, timeline, due)
    if not hope and ahead.held:
        # Those before it will have ended one day, too.
        order = _usable(view, gang, timeline.cheapest())
        hope = _drained(view, gang, policy, timeline, order) is not None
    if not hope:
        blocked = view.shortfalls.of(gang)
        assert blocked is not None
        blocked.hopeless = fixed(view, gang)
        drop(view, queue)
        return False
    if held.room != room:
        state.stamps += 1
        held.stamp = state.stamps
    shadow = _kept_back(view, held)
    held.shadowed = shadow is not None
    view.shadows.set(gang.key, shadow)
    if _told(held) != before:
        view.shortfalls.tell(gang)
    _look_again(view, held)
    _write(view, held)
    return True


def _told(held: Reservation) -> tuple[object, ...]:
    """What of it is told."""
    return held.starts_at, held.unknown, held.gathers


def _foresee(view: View, held: Reservation, policy: Policy, timeline: Timeline, due: bool) -> bool:
    """When and where its gang can start, or where room is gathered; False: it never can."""
    gang = held.gang
    assert gang.facts is not None
    found = earliest(view, gang, policy, timeline)
    blocked = view.shortfalls.of(gang)
    quota = None if blocked is None else blocked.quota
    if quota is None or quota.queue is None:
        held.unknown = timeline.unknown
    else:
        # Only what its queue gives back helps it.
        held.unknown = timeline.unknown_in(quota.queue)
    if found is not None:
        held.starts_at, held.gathers = found.date, False
        held.seats, held.room, held.awaited = found.seats, found.room, found.awaited
        held.quota = _quota(
            view, gang, found.room, timeline.given_back(gang.facts.queue, found.date)
        )
        return True
    held.starts_at = None
    if held.gathers and _still_good(view, held, policy, timeline):
        return True
    held.gathers, held.room, held.awaited, held.quota, held.seats = False, None, None, None, ()
    if not due and held.hopeful == fixed(view, gang):
        return True
    order = _usable(view, gang, timeline.cheapest())
    placement = _drained(view, gang, policy, timeline, order)
    if placement is None:
        return False
    held.hopeful = fixed(view, gang)
    if due:
        low, high = 0, len(order)
        while high - low > 1:
            middle = (low + high) // 2
            cheaper = _drained(view, gang, policy, timeline, order[:middle])
            if cheaper is None:
                low = middle
            else:
                placement, high = cheaper, middle
        held.gathers = True
        held.room, held.seats = room_of(view, placement), seats_of(placement)
        held.quota = _quota(view, gang, held.room, None)
    return True


def _drained(
    view: View, gang: Gang, policy: Policy, timeline: Timeline, rows: Rows
) -> Placement | None:
    """Where the gang would sit if all who sit on these rows were gone, and what is held for them.

    A seat that is held for a while, as that of a lost member, is no reason to give up hope.
    """
    drained = np.zeros(len(view.columns.touched), np.bool_)
    drained[rows] = True
    with view.tentatively():
        timeline.drain(drained)
        for other in view.holding.values():
            if other is not gang and other.facts is not None:
                holds = [hold for hold in other.holds if drained[hold.row]]
                view.let_go(holds)
                for hold in holds:
                    view.tree.charge(other.facts.queue, -hold.seating.vector())
        return fits(view, gang, policy)


def _still_good(view: View, held: Reservation, policy: Policy, timeline: Timeline) -> bool:
    """Whether the gang fits on the nodes that were chosen once, if these are drained."""
    assert held.room is not None
    return _drained(view, held.gang, policy, timeline, held.room.rows) is not None


def _usable(view: View, gang: Gang, rows: Rows) -> Rows:
    """The rows that any of its members may use; those written down by an earlier life first."""
    assert gang.facts is not None
    usable = np.zeros(len(view.columns.touched), np.bool_)
    seatings = {member.seating: None for member in gang.muster.waiting}
    seatings.update((absent.seating, None) for absent in gang.muster.absent)
    for seating in seatings:
        bars = seating.eligibility.bars()
        usable[: len(bars)] |= bars == 0
    rows = rows[usable[rows]]
    if gang.facts.keeps is not None and _kept_before(gang):
        kept = {node for _, node in gang.facts.keeps.seats}
        first = np.array([view.columns.names[row] in kept for row in rows.tolist()], np.bool_)
        rows = np.concatenate([rows[first], rows[~first]])
    return rows


def _quota(view: View, gang: Gang, room: Shadow, given_back: Ints | None) -> Ints | None:
    """What its queue must still be allowed to use when the gang starts."""
    assert gang.facts is not None
    if not view.tree.binds(gang.facts.queue):
        return None
    total: Ints = room.amounts.sum(axis=0)
    return total if given_back is None else np.maximum(total - given_back, 0)


def _kept_back(view: View, held: Reservation) -> Shadow | None:
    """What nobody who comes later sees of the room."""
    room = held.room
    if room is None:
        return None
    if held.awaited is not None:
        return Shadow(room.rows, np.maximum(room.amounts - held.awaited, 0))
    rows, free = room.rows, view.columns.free[room.rows]
    width = room.amounts.shape[1]
    return Shadow(rows, np.clip(room.amounts, 0, np.maximum(free[:, :width], 0)))


def _count(view: View, ahead: Ahead) -> None:
    """Inside a tentative statement: what is reserved for these is theirs."""
    columns = view.columns
    for other in ahead.held:
        assert other.room is not None
        columns.shift(other.room.rows, other.room.amounts, use=Use.HELD)


def _look_again(view: View, held: Reservation) -> None:
    """Room that came free under its own shadow would not wake the gang."""
    if held.room is not None and view.columns.last_freed > held.seen:
        held.seen = view.columns.last_freed
        view.stir(held.gang)


def _timeline(view: View, now: float) -> Timeline:
    """Of one moment there is one for all."""
    moment: Inputs = (view.columns.moves, view.columns.last_altered, view.estimates, now)
    known = view.reservations.timeline
    if isinstance(known, Timeline) and view.reservations.moment == moment:
        return known
    timeline = view.reservations.timeline = Timeline(view, now)
    view.reservations.moment = moment
    return timeline


def _due(held: Reservation, policy: Policy, now: float) -> bool:
    """Whether its gang has borne enough."""
    return (
        held.gathers
        or now >= held.since + policy.reserve_after
        or times_overtaken(held.gang) >= policy.most_overtakes
        or _kept_before(held.gang)
    )


def _since(gang: Gang, now: float) -> float:
    """From when it waits: one that ran already, from now."""
    assert gang.facts is not None
    ran = gang.facts.started or gang.evicted or gang.facts.evictions
    return now if ran else min(now, gang.since)


def _write(view: View, held: Reservation) -> None:
    """What is gathered must outlive us; what is foreseen is foreseen again."""
    keeps = None
    if held.gathers:
        names = view.columns.names
        seats = tuple(sorted((role, names[row]) for role, row in held.seats))
        keeps = Keeps(Purpose.RESERVATION, seats)
    if keeps != held.written:
        held.written = keeps
        view.reservations.write(Keep(held.gang.key, keeps, times_overtaken(held.gang)))


def drop(view: View, queue: str) -> None:
    """The queue's reservation is over."""
    held = view.reservations.by_queue.pop(queue)
    view.shadows.set(held.gang.key, None)
    view.shortfalls.tell(held.gang)
    for key in held.expected:
        if key in view.gangs:
            view.shortfalls.tell(view.gangs[key])
    if held.written is not None or _kept_before(held.gang):
        view.reservations.write(Keep(held.gang.key, None))


def _kept_before(gang: Gang) -> bool:
    """Whether an earlier life gathered room for the gang."""
    keeps = None if gang.facts is None else gang.facts.keeps
    return keeps is not None and keeps.purpose is Purpose.RESERVATION
