"""Seats held for members that have no pod yet: taken up after a restart, given up when lost."""

from __future__ import annotations

import numpy as np

from posse.engine.fit.eligibility import Bar
from posse.engine.fit.seating import Seating
from posse.engine.gangs import Gang, Hold
from posse.engine.view import View


def adopt(view: View, gang: Gang) -> None:
    """Take up the holds an earlier life wrote, once, where they are still wanted and still fit."""
    assert gang.facts is not None
    gang.adopted = True
    if not gang.facts.holds:
        return
    wanted: dict[str, list[Seating]] = {}
    for absent in gang.muster.absent:
        wanted.setdefault(absent.role, []).extend([absent.seating] * absent.count)
    for member in gang.muster.waiting:
        wanted.setdefault(member.facts.role, []).append(member.seating)
    for role, node in sorted(gang.facts.holds):
        row = view.columns.row.get(node)
        if row is not None and wanted.get(role) and wanted[role][0].seats()[row] > 0:
            view.set_holds(gang, [*gang.holds, Hold(role, wanted[role].pop(0), row)])


def give_up_lost(view: View) -> None:
    """Drop holds on nodes that left, closed, or were filled by others; their gangs ail then."""
    columns = view.columns
    touched = columns.touched_since(view.inspected)
    view.inspected = columns.clock
    held = touched[columns.held[touched].any(axis=1)]
    if not len(held):
        return
    overfull = columns.at_last(held).min(axis=1) < 0
    suspect = {
        row
        for row, full in zip(held.tolist(), overfull.tolist(), strict=True)
        if full or not _open(view, row)
    }
    if not suspect:
        return
    for gang in list(view.holding.values()):
        kept = [hold for hold in gang.holds if hold.row not in suspect or _stands(view, hold)]
        if len(kept) != len(gang.holds):
            view.set_holds(gang, kept)
            view.stir(gang)


def _open(view: View, row: int) -> bool:
    node = view.columns.nodes[row]
    return node is not None and node.open and not node.taints


def _stands(view: View, hold: Hold) -> bool:
    hold.seating.seats()
    rows = np.array([hold.row], np.intp)
    free = view.columns.at_last(rows)[:, hold.seating.columns]
    return hold.seating.eligibility.bars()[hold.row] == Bar.NONE and bool((free >= 0).all())
