"""The first gang of a queue that is blocked gets a reservation; others start around it.

Where those who run said for how long, it is known when enough of them have ended, and on which
nodes: others may start if they are gone by then, or use none of that room. Where nobody can know,
others start as they fit until the gang has waited for too long or was overtaken too often; from
then on what comes free on the nodes that are the cheapest to drain is kept for it. It is the room
that is kept back, not seats in it: half a seat that came free is not given away either.

A queue has one reservation at most. It is over when its gang starts, leaves, or could not start
even if nobody else ran. It binds whoever comes after its gang, in its own queue or in another:
reservations are worked out in the order in which their gangs are served, each around those before.
What is to be written of them is told once, at the end of a cycle.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from posse.engine.decisions import Keep
from posse.engine.gangs import Gang, Rank
from posse.engine.placement.placing import Placement, place
from posse.engine.placement.shortfalls import Shortfall
from posse.engine.policy import Policy
from posse.engine.reservation.heads import (
    binds,
    comes_before,
    first_of,
    in_turn,
    times_overtaken,
)
from posse.engine.reservation.prospects import drop, outdated, work_out
from posse.engine.reservation.reservations import Ahead
from posse.engine.view import View

# Gangs for which a reservation is worked out anew in one cycle; the others keep theirs.
_MOST = 8


# -- in the cycle ------------------------------------------------------------------------------


def renew(view: View, policy: Policy, now: float) -> None:
    """Before anyone is placed: who has a reservation, and for what."""
    state = view.reservations
    view.shadows.show(())
    if not policy.backfill:
        for queue in sorted(state.by_queue):
            drop(view, queue)
        return
    left = _MOST
    ahead = Ahead()
    for queue in in_turn(view, {**dict.fromkeys(view.shortfalls.lines.queues()), **state.by_queue}):
        left -= _attend(view, queue, policy, now, ahead, left)
        ahead.add(state.by_queue.get(queue))


def _attend(
    view: View, queue: str, policy: Policy, now: float, ahead: Ahead, most: int = _MOST
) -> int:
    """See to the queue's reservation; how often that was worked out anew."""
    done = 0
    while True:
        head = first_of(view, queue)
        held = view.reservations.by_queue.get(queue)
        if held is not None and held.gang is not head:
            drop(view, queue)
        if head is None:
            return done
        stale = outdated(view, head, ahead, now)
        if stale and done == most:
            return done
        done += stale
        if work_out(view, head, policy, now, ahead):
            return done


def _ahead_of(view: View, queue: str) -> Ahead:
    """Those who come before the first gang of this queue."""
    ahead = Ahead()
    head = first_of(view, queue)
    for name, held in view.reservations.by_queue.items():
        if head is not None and name != queue and comes_before(view, held.gang, head, head.rank):
            ahead.add(held)
    return ahead


def reserve(view: View, gang: Gang, policy: Policy, now: float) -> None:
    """This gang was just found not to fit: if it is the first of its queue, it counts from now."""
    if not policy.backfill or gang.facts is None:
        return
    queue = gang.facts.queue
    held = view.reservations.by_queue.get(queue)
    if held is not None and (held.gang is gang or held.gang.rank < gang.rank):
        return
    view.shadows.show(())
    _attend(view, queue, policy, now, _ahead_of(view, queue))


def place_in_turn(
    view: View, gang: Gang, policy: Policy, now: float, contended: bool = False
) -> Placement | Shortfall:
    """Place the gang, without what is kept back from it."""
    turn(view, gang, now)
    cast = view.shadows.cast
    if not cast:
        return place(view, gang, policy, contended)
    with view.tentatively() as statement:
        charge_kept_back(view)
        outcome = place(view, gang, policy, contended)
        statement.keep()
    if isinstance(outcome, Shortfall) and not outcome.gangs:
        view.shadows.show(())
        waiting = [demand for demand in outcome.demands if not demand.announced]
        seats = sum(min(demand.seating.total(), demand.most) for demand in waiting)
        if outcome.quota is not None or seats >= max(1, sum(demand.wanted for demand in waiting)):
            with view.tentatively():
                otherwise = place(view, gang, policy, contended)
                if isinstance(otherwise, Placement):
                    outcome.behind = cast
                elif outcome.quota is not None and otherwise.quota is not None:
                    # What is in use, not what is reserved.
                    outcome.quota = otherwise.quota
    return outcome


def charge_kept_back(view: View) -> None:
    """Inside a tentative statement: what of quotas is reserved for those whose shadows lie on the
    columns is theirs."""
    cast = view.shadows.cast
    for held in view.reservations.by_queue.values():
        if held.gang.key in cast and held.quota is not None and held.gang.facts is not None:
            # A resource that nobody knew of then is not reserved.
            width = view.columns.width - len(held.quota)
            view.tree.charge(held.gang.facts.queue, np.pad(held.quota, (0, width)))


def turn(view: View, gang: Gang, now: float) -> None:
    """Whatever is kept back from this gang is out of sight now, and nothing else is."""
    if not view.shadows:
        return
    reserved = view.reservations.by_queue.values()
    binding = [each for each in reserved if each.shadowed and binds(view, each, gang, now)]
    view.shadows.show(tuple(sorted(held.gang.key for held in binding)))


def served(view: View, gang: Gang, rank: Rank, policy: Policy, now: float) -> None:
    """The gang has started: its reservation is over, and the next in line has one.

    `rank` is the one it was served by: whoever waits before it was overtaken.
    """
    if not view.reservations.by_queue or gang.facts is None:
        return
    if view.reservations.of(gang) is not None:
        view.shadows.show(())
        queue = gang.facts.queue
        drop(view, queue)
        _attend(view, queue, policy, now, _ahead_of(view, queue))
    for _, held in sorted(view.reservations.by_queue.items()):
        if comes_before(view, held.gang, gang, rank):
            waiting = held.gang
            waiting.overtaken = times_overtaken(waiting) + 1
            step = max(1, policy.most_overtakes // 4)
            if waiting.overtaken >= held.counted + step:
                held.counted = waiting.overtaken
                view.reservations.write(Keep(waiting.key, held.written, waiting.overtaken))


def write_down(view: View) -> Iterator[Keep]:
    """What has to outlive us and has changed: of each gang how it is now, once."""
    unwritten = view.reservations.unwritten
    for key in list(unwritten):
        keep = unwritten.pop(key)
        gang = view.gangs.get(key)
        if gang is None or (keep.keeps is None and any(hold.purpose for hold in gang.holds)):
            # There is nothing to write on any more, or it says by now what else is kept.
            continue
        yield keep


def wake_at(view: View, policy: Policy) -> float | None:
    """When somebody is expected to start, or has waited for long enough."""
    dates: list[float] = []
    for held in view.reservations.by_queue.values():
        if held.starts_at is not None:
            dates.append(max(held.starts_at, view.now + 1.0))
        elif not held.due:
            dates.append(held.since + policy.reserve_after)
    return min(dates, default=None)
