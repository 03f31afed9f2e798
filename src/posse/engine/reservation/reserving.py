"""The first gang of a queue that is blocked gets a reservation; others start around it.

Where those who run said for how long, it is known when enough of them have ended, and on which
nodes: others may start if they are gone by then, or use none of that room. Where nobody can know,
others start as they fit until the gang has waited for too long or was overtaken too often; from
then on what comes free on the nodes that are the cheapest to drain is kept for it. It is the room
that is kept back, not seats in it: half a seat that came free is not given away either.

A queue has one reservation at most. It is over when its gang starts, leaves, or could not start
even if nobody else ran. It binds whoever comes after its gang, in its own queue or in another.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

import numpy as np

from posse.engine.columns import Ints, Rows
from posse.engine.decisions import Keep
from posse.engine.facts import Keeps, Purpose
from posse.engine.fit.seating import Seating
from posse.engine.gangs import Gang, Rank, made
from posse.engine.placement.placing import Placement, place
from posse.engine.placement.shortfalls import Shortfall
from posse.engine.policy import Policy
from posse.engine.reservation.foreseeing import (
    NEVER,
    Timeline,
    earliest,
    end_of,
    fits,
    room_of,
    seats_of,
)
from posse.engine.reservation.reservations import Inputs, Reservation
from posse.engine.reservation.shadows import Shadow
from posse.engine.view import View

# Gangs for which a reservation is worked out anew in one cycle; the others keep theirs.
_MOST = 8


# -- in the cycle ------------------------------------------------------------------------------


def renew(view: View, policy: Policy, now: float) -> Iterator[Keep]:
    """Before anyone is placed: who has a reservation, and for what."""
    state = view.reservations
    view.shadows.show(())
    if not policy.backfill:
        for queue in sorted(state.by_queue):
            yield from _drop(view, queue)
        return
    left = _MOST
    for queue in sorted({**dict.fromkeys(view.shortfalls.lines.queues()), **state.by_queue}):
        left -= yield from _attend(view, queue, policy, now, left)


def _attend(
    view: View, queue: str, policy: Policy, now: float, most: int = _MOST
) -> Generator[Keep, None, int]:
    """See to the queue's reservation; how often that was worked out anew."""
    done = 0
    while True:
        head = _first(view, queue)
        held = view.reservations.by_queue.get(queue)
        if held is not None and held.gang is not head:
            yield from _drop(view, queue)
        if head is None:
            return done
        outdated = _outdated(view, head, now)
        if outdated and done == most:
            return done
        done += outdated
        if (yield from _reserve(view, head, policy, now)):
            return done


def reserve(view: View, gang: Gang, policy: Policy, now: float) -> Iterator[Keep]:
    """This gang was just found not to fit: if it is the first of its queue, it counts from now."""
    if not policy.backfill or gang.facts is None:
        return
    queue = gang.facts.queue
    held = view.reservations.by_queue.get(queue)
    if held is not None and (held.gang is gang or held.gang.rank < gang.rank):
        return
    view.shadows.show(())
    yield from _attend(view, queue, policy, now)


def place_in_turn(
    view: View, gang: Gang, policy: Policy, now: float, contended: bool = False
) -> Placement | Shortfall:
    """Place the gang, without what is kept back from it."""
    turn(view, gang, now)
    cast = view.shadows.cast
    if not cast:
        return place(view, gang, policy, contended)
    binding = [held for held in view.reservations.by_queue.values() if held.gang.key in cast]
    with view.tentatively() as statement:
        for held in binding:
            if held.quota is not None and held.gang.facts is not None:
                # A resource that nobody knew of then is not reserved.
                width = view.columns.used.shape[1] - len(held.quota)
                view.tree.charge(held.gang.facts.queue, np.pad(held.quota, (0, width)))
        outcome = place(view, gang, policy, contended)
        statement.keep()
    if isinstance(outcome, Shortfall) and not outcome.gangs:
        view.shadows.show(())
        waiting = [demand for demand in outcome.demands if not demand.announced]
        seats = sum(min(demand.seating.total(), demand.most) for demand in waiting)
        if seats >= max(1, sum(demand.wanted for demand in waiting)):
            with view.tentatively():
                if isinstance(place(view, gang, policy, contended), Placement):
                    outcome.behind = cast
    return outcome


def turn(view: View, gang: Gang, now: float) -> None:
    """Whatever is kept back from this gang is out of sight now, and nothing else is."""
    if not view.shadows:
        return
    reserved = view.reservations.by_queue.values()
    binding = [each for each in reserved if each.shadowed and _binds(view, each, gang, now)]
    view.shadows.show(tuple(sorted(held.gang.key for held in binding)))


def served(view: View, gang: Gang, rank: Rank, policy: Policy, now: float) -> Iterator[Keep]:
    """The gang has started: its reservation is over, and the next in line has one.

    `rank` is the one it was served by: whoever waits before it was overtaken.
    """
    if not view.reservations.by_queue or gang.facts is None:
        return
    if view.reservations.of(gang) is not None:
        view.shadows.show(())
        yield from _drop(view, gang.facts.queue)
        yield from _attend(view, gang.facts.queue, policy, now)
    for _, held in sorted(view.reservations.by_queue.items()):
        if _before(view, held.gang, gang, rank):
            waiting = held.gang
            waiting.overtaken = times_overtaken(waiting) + 1
            step = max(1, policy.most_overtakes // 4)
            if waiting.overtaken >= held.counted + step:
                held.counted = waiting.overtaken
                yield Keep(waiting.key, held.written, waiting.overtaken)


def wake_at(view: View, policy: Policy) -> float | None:
    """When somebody is expected to start, or has waited for long enough."""
    dates: list[float] = []
    for held in view.reservations.by_queue.values():
        if held.starts_at is not None:
            dates.append(max(held.starts_at, view.now + 1.0))
        elif not held.gathers:
            dates.append(held.since + policy.reserve_after)
    return min(dates, default=None)


def times_overtaken(gang: Gang) -> int:
    assert gang.facts is not None
    return max(gang.overtaken, gang.facts.overtaken)


# -- whose it is -------------------------------------------------------------------------------


def _first(view: View, queue: str) -> Gang | None:
    """The first gang of the queue that is blocked and could start if others ended."""
    view.shortfalls.lines.recollect(queue, _ground(view, queue))
    while (gang := view.shortfalls.lines.first(queue)) is not None:
        blocked = view.shortfalls.of(gang)
        passed_over = (
            blocked is None or blocked.verdict is not None or gang.muster.seated or made(gang)
        )
        if blocked is not None and not passed_over and blocked.hopeless != _fixed(view, gang):
            return gang
        view.shortfalls.lines.pass_over(queue)
    return None


def _ground(view: View, queue: str) -> Inputs:
    """What must change before those who could not start on empty nodes can."""
    return view.columns.last_altered, view.queues.get(queue)


def _fixed(view: View, gang: Gang) -> Inputs:
    assert gang.facts is not None
    return (*_ground(view, gang.facts.queue), gang.need)


def inputs_of(view: View, gang: Gang) -> Inputs:
    """What its reservation is worked out from."""
    assert gang.facts is not None
    others = tuple(
        queue
        for queue, held in view.reservations.by_queue.items()
        if held.room is not None and held.gang is not gang
    )
    return (view.columns.moves, view.estimates, *_fixed(view, gang), others)


def _outdated(view: View, gang: Gang, now: float) -> bool:
    held = view.reservations.of(gang)
    return held is None or held.inputs != inputs_of(view, gang) or now >= held.stale_at


def _binds(view: View, held: Reservation, gang: Gang, now: float) -> bool:
    """Whether this gang comes later, and would still be there when the other starts."""
    if held.gang is gang or not _before(view, held.gang, gang, gang.rank):
        return False
    assert gang.facts is not None
    if held.starts_at is None or gang.facts.runs_for is None:
        return True
    ends = end_of(gang, now) if gang.muster.seated else now + gang.facts.runs_for
    return ends > held.starts_at


def _before(view: View, one: Gang, other: Gang, rank: Rank) -> bool:
    """Whether the one is served before the other, whose rank is given: by rank in a queue, by
    their queues otherwise."""
    assert one.facts is not None and other.facts is not None
    if one.facts.queue == other.facts.queue:
        return one.rank < rank
    here = list(view.tree.queue(one.facts.queue).lineage())[::-1]
    there = list(view.tree.queue(other.facts.queue).lineage())[::-1]
    for mine, its in zip(here, there, strict=False):
        if mine is not its:
            return (*view.tree.standing(mine), one.rank) < (*view.tree.standing(its), rank)
    return len(here) < len(there)


# -- working it out ----------------------------------------------------------------------------


def _reserve(view: View, gang: Gang, policy: Policy, now: float) -> Generator[Keep, None, bool]:
    """Whether there is a reservation for the gang now; if not, it could not start anyway."""
    assert gang.facts is not None
    state, queue = view.reservations, gang.facts.queue
    held = state.of(gang)
    if held is None:
        held = state.by_queue[queue] = Reservation(gang, _since(gang, now))
        held.counted = times_overtaken(gang)
    due = _due(held, policy, now)
    if not _outdated(view, gang, now) and held.gathers == (due and held.starts_at is None):
        _look_again(view, held)
        return True
    before = _told(held)
    timeline = _timeline(view, now)
    held.inputs = inputs_of(view, gang)
    held.stale_at = next((date for date in timeline.dates if date > now), NEVER)
    with view.tentatively():
        _count_others(view, held)
        hope = _foresee(view, held, policy, timeline, due)
    if not hope:
        blocked = view.shortfalls.of(gang)
        assert blocked is not None
        blocked.hopeless = _fixed(view, gang)
        yield from _drop(view, queue)
        return False
    shadow = _kept_back(view, held)
    held.shadowed = shadow is not None
    view.shadows.set(gang.key, shadow)
    if _told(held) != before:
        view.shortfalls.tell(gang)
    _look_again(view, held)
    yield from _write(view, held)
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
    if not due and held.hopeful == _fixed(view, gang):
        return True
    order = _usable(view, gang, timeline.cheapest())
    placement = _drained(view, gang, policy, timeline, order)
    if placement is None:
        return False
    held.hopeful = _fixed(view, gang)
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
                    view.tree.charge(other.facts.queue, -_amounts(view, hold.seating))
        return fits(view, gang, policy)


def _amounts(view: View, seating: Seating) -> Ints:
    """What one pod asks, over all columns."""
    amounts: Ints = np.zeros(view.columns.used.shape[1], np.int64)
    amounts[seating.columns] = seating.amounts
    return amounts


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
    columns, rows = view.columns, room.rows
    free = columns.allocatable[rows] - columns.used[rows] - columns.held[rows]
    width = room.amounts.shape[1]
    return Shadow(rows, np.clip(room.amounts, 0, np.maximum(free[:, :width], 0)))


def _count_others(view: View, held: Reservation) -> None:
    """Inside a tentative statement: what is reserved for other queues is theirs."""
    columns = view.columns
    for _, other in sorted(view.reservations.by_queue.items()):
        if other is not held and other.room is not None:
            width = np.arange(other.room.amounts.shape[1], dtype=np.intp)
            columns.shift(columns.held, other.room.rows, width, other.room.amounts)


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
    return now if ran else min(now, gang.facts.created)


def _write(view: View, held: Reservation) -> Iterator[Keep]:
    """What is gathered must outlive us; what is foreseen is foreseen again."""
    keeps = None
    if held.gathers:
        names = view.columns.names
        seats = tuple(sorted((role, names[row]) for role, row in held.seats))
        keeps = Keeps(Purpose.RESERVATION, seats)
    if keeps != held.written:
        held.written = keeps
        yield Keep(held.gang.key, keeps, times_overtaken(held.gang))


def _drop(view: View, queue: str) -> Iterator[Keep]:
    held = view.reservations.by_queue.pop(queue)
    view.shadows.set(held.gang.key, None)
    view.shortfalls.tell(held.gang)
    for key in held.expected:
        if key in view.gangs:
            view.shortfalls.tell(view.gangs[key])
    if held.written is not None or _kept_before(held.gang):
        yield Keep(held.gang.key, None)


def _kept_before(gang: Gang) -> bool:
    """Whether an earlier life gathered room for the gang."""
    keeps = None if gang.facts is None else gang.facts.keeps
    return keeps is not None and keeps.purpose is Purpose.RESERVATION
