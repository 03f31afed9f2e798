"""Queues that keep their order: while the first in line does not fit, nobody behind it starts.

Whoever stands behind is not looked at, and does not end others either. It is called up when the
line moves: the one in front has started, has left, or has come to stand behind.
"""

from __future__ import annotations

from posse.engine.decisions import Reason, Verdict
from posse.engine.gangs import Gang, made
from posse.engine.view import View


def held_up(view: View, gang: Gang) -> Verdict | None:
    """Why the gang has to wait for its turn. What one that has begun lacks, it may always have, and
    the room that others were ended for."""
    facts = gang.facts
    assert facts is not None
    queue = view.queues.get(facts.queue)
    if queue is None or not queue.fifo or (gang.short and gang.muster.seated) or made(gang):
        return None
    head = view.shortfalls.lines.head(facts.queue)
    if head is None or head.rank >= gang.rank:
        return None
    view.lined_up.setdefault(facts.queue, {})[gang.key] = None
    return Verdict(
        Reason.RESERVED,
        f"waits behind {head.key}: queue {facts.queue} keeps its order (dequeueStrategy: fifo);"
        " it can start once that has",
        surplus=not gang.short,
    )


def call_up(view: View) -> bool:
    """Stir those who stand behind nobody any more; whether there were any."""
    called = False
    for name in list(view.lined_up):
        queue, head = view.queues.get(name), view.shortfalls.lines.head(name)
        keeps_order = queue is not None and queue.fifo and head is not None
        behind: dict[str, None] = {}
        for key in view.lined_up.pop(name):
            gang = view.gangs.get(key)
            if gang is None or gang.facts is None or gang.facts.queue != name:
                continue
            if keeps_order and head is not None and head.rank < gang.rank:
                behind[key] = None
            elif view.shortfalls.of(gang) is None and not gang.at_rest:
                view.stir(gang)
                called = True
        if behind:
            view.lined_up[name] = behind
    return called
