"""Whose a queue's reservation is, and whom it binds."""

from __future__ import annotations

from posse.engine.gangs import Gang, Rank, made
from posse.engine.reservation.foreseeing import end_of
from posse.engine.reservation.reservations import Inputs, Reservation
from posse.engine.view import View


def first_of(view: View, queue: str) -> Gang | None:
    """The first gang of the queue that is blocked and could start if others ended."""
    view.shortfalls.lines.recollect(queue, _ground(view, queue))
    while (gang := view.shortfalls.lines.first(queue)) is not None:
        blocked = view.shortfalls.of(gang)
        passed_over = (
            blocked is None or blocked.verdict is not None or gang.muster.seated or made(gang)
        )
        if blocked is not None and not passed_over and blocked.hopeless != fixed(view, gang):
            return gang
        view.shortfalls.lines.pass_over(queue)
    return None


def _ground(view: View, queue: str) -> Inputs:
    """What must change before those who could not start on empty nodes can."""
    return view.columns.last_altered, view.queues.get(queue)


def fixed(view: View, gang: Gang) -> Inputs:
    assert gang.facts is not None
    return (*_ground(view, gang.facts.queue), gang.need)


def binds(view: View, held: Reservation, gang: Gang, now: float) -> bool:
    """Whether this gang comes later, and would still be there when the other starts.

    Room that others were ended for is its own already.
    """
    if held.gang is gang or made(gang) or not comes_before(view, held.gang, gang, gang.rank):
        return False
    assert gang.facts is not None
    if held.starts_at is None or gang.facts.runs_for is None:
        return True
    ends = end_of(gang, now) if gang.muster.seated else now + gang.facts.runs_for
    return ends > held.starts_at


def comes_before(view: View, one: Gang, other: Gang, rank: Rank) -> bool:
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


def in_turn(view: View, queues: dict[str, object]) -> list[str]:
    """The queues in the order in which their first gangs are served, and those that have none."""
    if len(queues) < 2:
        return list(queues)

    def turn(queue: str) -> tuple[object, ...]:
        head = first_of(view, queue)
        if head is None:
            return (0, queue)
        path = list(view.tree.queue(queue).lineage())[-2::-1]
        return (1, [view.tree.standing(each) for each in path], head.rank, queue)

    return sorted(queues, key=turn)


def times_overtaken(gang: Gang) -> int:
    assert gang.facts is not None
    return max(gang.overtaken, gang.facts.overtaken)
