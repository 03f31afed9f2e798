"""One scheduling cycle: a view in, decisions out, gang by gang.

At every yield the view already counts the yielded decision, so the caller may commit it, or refute
it, before asking for the next one; events may be applied in between, and a cycle that is dropped
halfway has lost nothing. A gang that waits is told so only when its verdict is new or has changed
since the last time it was told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from posse.engine.decisions import Decision
from posse.engine.placement.admitting import refusal
from posse.engine.placement.placing import Placement, start
from posse.engine.policy import Policy
from posse.engine.preemption import preempting
from posse.engine.preemption.preempting import Hunt, give_up_overdue
from posse.engine.queues.lining import call_up, held_up
from posse.engine.queues.ordering import in_order
from posse.engine.repair import healing
from posse.engine.repair.healing import heal
from posse.engine.reservation import forecasting, reserving
from posse.engine.reservation.forecasting import forecast
from posse.engine.reservation.reserving import place_in_turn, renew, reserve, served, write_down
from posse.engine.verdicts.explaining import explain
from posse.engine.view import View

# So often everyone is looked at in one cycle; what is to be had then, the next one finds at once.
_MOST_ROUNDS = 8


def cycle(
    view: View, policy: Policy, now: float, enter: Callable[[str], None] = lambda phase: None
) -> Iterator[Decision]:
    """`enter` is told each phase as it begins."""
    view.now = now
    for _ in range(_MOST_ROUNDS):
        # 1. What is waited for in vain is given up. Gangs that have begun and miss a member: the
        #    seat is theirs before anyone else looks.
        enter("heal")
        view.in_turn = ""
        view.shadows.show(())
        yield from give_up_overdue(view, now)
        yield from heal(view, policy, now)

        # 2. Others end for these, if that makes them whole. Everyone else in order: the whole
        #    minimum, or nothing; others end for those who come before them, if that makes room for
        #    the whole of them.
        enter("place")
        hunt = Hunt(view, policy, now, enter)
        yield from hunt.at_first()
        yield from place_everyone(view, policy, now, hunt)

        # 3. The same for those whom only somebody's start could help.
        enter("preempt")
        yield from hunt.at_last()

        # What was kept for those who ended, or was given up by those who started, may be all that
        # another one lacks: nothing else need happen before it is looked at.
        if view.hunting.put_off or not (hunt.ended or healing.helped(view)):
            view.settled = True
            break
    else:
        view.settled = False

    # 4. For the first in line: what is reserved, now that all have had their turn; for those behind
    #    it: when they start. What has to outlive us is written down.
    renew(view, policy, now)
    forecast(view, policy, now)
    yield from write_down(view)

    # 5. Whoever still waits is told why.
    enter("explain")
    yield from explain(view, policy)


def place_everyone(view: View, policy: Policy, now: float, hunt: Hunt) -> Iterator[Decision]:
    """In order; again, where a line has moved, or less is kept back from them by that."""
    call_up(view)
    renew(view, policy, now)
    while True:
        lessened = view.shadows.lessened
        for gang, contended in in_order(view, policy, hunt.has_prey):
            view.in_turn = gang.key
            outcome = (
                refusal(view, gang)
                or held_up(view, gang)
                or place_in_turn(view, gang, policy, now, contended)
            )
            if isinstance(outcome, Placement):
                rank = gang.rank
                yield start(view, gang, outcome)
                served(view, gang, rank, policy, now)
                hunt.moved()
            else:
                view.shortfalls.record(gang, outcome)
                reserve(view, gang, policy, now)
                yield from hunt.in_turn(gang)
        renew(view, policy, now)
        moved_up = call_up(view)
        if view.shadows.lessened != lessened:
            hunt.unshaded()
        elif not moved_up:
            return


def wake_at(view: View, policy: Policy) -> float | None:
    """When a cycle is due although nothing has happened."""
    if not view.settled:
        return view.now
    dates = (
        healing.wake_at(view, policy),
        preempting.wake_at(view),
        reserving.wake_at(view, policy),
        forecasting.wake_at(view),
    )
    return min((date for date in dates if date is not None), default=None)
