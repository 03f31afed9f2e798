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


def adopt_made(view: View, gang: Gang, now: float) -> None:
    """Take up the room that an earlier life made, where it is free or still to come free."""
    assert gang.facts is not None
    keeps = gang.facts.keeps
    if keeps is None or keeps.purpose is not Purpose.PREEMPTION or gang.muster.seated:
        return
    if keeps.until is not None and keeps.until <= now:
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
            gang.kept_until = keeps.until


def awaited(view: View, gang: Gang) -> list[Member]:
    """Members of others that are to go so that this gang can sit where they do."""
    rows, named = {hold.row for hold in made(gang)}, set(gang.awaits)
    return [m for m in view.departing.values() if m.row in rows or m.facts.uid in named]


def waits_for_room(view: View, gang: Gang) -> Verdict | None:
    """What a gang is told for which others have ended, until they are gone."""
    if not made(gang):
        return None
    going = awaited(view, gang)
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
