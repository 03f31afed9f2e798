"""Room in the making: seats kept for a gang where others are still to go."""

from __future__ import annotations

import numpy as np

from posse.engine.decisions import Reason, Verdict
from posse.engine.facts import Purpose
from posse.engine.fit.eligibility import Bar
from posse.engine.fit.seating import Seating
from posse.engine.gangs import Gang, Hold, Member, made
from posse.engine.resources import count
from posse.engine.view import View

# Whoever says that it takes longer than this to end is not believed.
_LONGEST_GRACE = 7200.0


def adopt_made(view: View, gang: Gang, now: float) -> None:
    """Take up the room that an earlier life made, where it is free or still to come free."""
    assert gang.facts is not None
    keeps = gang.facts.keeps
    if keeps is None or keeps.purpose is not Purpose.PREEMPTION or gang.muster.seated:
        return
    rows = {view.columns.row.get(node) for _, node in keeps.seats}
    going = [member for member in view.departing.values() if member.row in rows]
    if keeps.until is not None and keeps.until + _grace(going) <= now:
        return
    wanted: dict[str, list[Seating]] = {}
    for member in gang.muster.waiting:
        wanted.setdefault(member.facts.role, []).append(member.seating)
    for absent in gang.muster.absent:
        wanted.setdefault(absent.role, []).extend([absent.seating] * absent.count)
    for role, node in keeps.seats:
        row = view.columns.row.get(node)
        if row is None or not wanted.get(role):
            continue
        seating = wanted[role][0]
        usable = seating.eligibility.bars()[row] == Bar.NONE
        room = view.columns.at_last(np.array([row], np.intp))[0, seating.columns]
        if usable and (room >= seating.amounts).all():
            wanted[role].pop(0)
            view.set_holds(gang, [*gang.holds, Hold(role, seating, row, Purpose.PREEMPTION)])
            gang.kept_until, gang.grace = keeps.until, _grace(going)


def awaited(view: View, gang: Gang) -> list[Member]:
    """Members of others that are to go so that this gang can sit where they do."""
    rows, named = {hold.row for hold in made(gang)}, set(gang.awaits)
    return [m for m in view.departing.values() if m.row in rows or m.facts.uid in named]


def _its_victims(view: View, gang: Gang) -> list[Member]:
    """Of these, those that were ended for it, where any were; not those of others beside them."""
    going, named = awaited(view, gang), set(gang.awaits)
    return [member for member in going if member.facts.uid in named] or going


def kept_until(gang: Gang) -> float | None:
    """When it is time to give up what is kept for it: who goes has the time that it was given."""
    return None if gang.kept_until is None else gang.kept_until + gang.grace


def bear_with(view: View, gang: Gang) -> None:
    """Who goes is waited for as long as it was given to end."""
    gang.grace = max(gang.grace, _grace(_its_victims(view, gang)))


def _grace(going: list[Member]) -> float:
    return min(_LONGEST_GRACE, max((member.facts.grace for member in going), default=0.0))


def waits_for_room(view: View, gang: Gang) -> Verdict | None:
    """What a gang is told for which others have ended, until they are gone."""
    if not made(gang):
        return None
    going = _its_victims(view, gang)
    if not going:
        return None
    ended = sum(1 for member in going if member.leaving)
    whose: dict[str, None] = {}
    for member in sorted(going, key=lambda member: member.facts.name):
        whose[member.facts.gang or member.facts.name] = None
    names = list(whose)
    others = f" and {len(names) - 2} more" if len(names) > 2 else ""
    why = "they were preempted for it" if ended else "their room is kept for it"
    if len(going) == 1:
        why = why.replace("they were", "it was").replace("their room", "its room")
    sentence = (
        f"waits for {count(len(going), 'pod')} of {', '.join(names[:2])}{others} to end: {why}"
    )
    return Verdict(Reason.RESERVED, sentence)
