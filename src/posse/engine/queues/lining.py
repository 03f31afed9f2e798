"""Queues that keep their order: while the first in line does not fit, nobody behind it starts.

Whoever stands behind is not looked at, and does not end others either. It is called up when the
line moves: the one in front has started, has left, or has come to stand behind; and to be told so
when another one stands in front, or that one can start on today's nodes at last, or no more. Who
could not start even if nobody ran has nothing to gain from its turn: it is looked at whoever stands
before it, and told what it asks too much of.
"""

from __future__ import annotations

from posse.engine.decisions import Reason, Verdict
from posse.engine.gangs import Gang, made
from posse.engine.placement.placing import outgrows
from posse.engine.queues.quotas import out_of_reach
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
    if gang.short and (outgrows(view, gang) or out_of_reach(view, gang)):
        return None
    stuck = outgrows(view, head)
    view.lined_up.setdefault(facts.queue, {})[gang.key] = (head.key, stuck)
    sentence = (
        f"waits behind {head.key}: queue {facts.queue} keeps its order (dequeueStrategy: fifo)"
    )
    if stuck:
        sentence += ", and that one cannot start on today's nodes; delete it, or add nodes for it"
    else:
        sentence += "; it can start once that has"
    return Verdict(Reason.RESERVED, sentence, surplus=not gang.short)


def call_up(view: View) -> bool:
    """Stir those who stand behind nobody any more, or were told otherwise; whether there were
    any."""
    called = False
    for name in list(view.lined_up):
        queue, head = view.queues.get(name), view.shortfalls.lines.head(name)
        if queue is None or not queue.fifo:
            head = None
        in_front = None if head is None else (head.key, outgrows(view, head))
        behind: dict[str, tuple[str, bool]] = {}
        for key, told in view.lined_up.pop(name).items():
            gang = view.gangs.get(key)
            if gang is None or gang.facts is None or gang.facts.queue != name:
                continue
            if told == in_front and head is not None and head.rank < gang.rank:
                behind[key] = told
            elif view.shortfalls.of(gang) is None and not gang.at_rest:
                view.stir(gang)
                called = True
        if behind:
            view.lined_up[name] = behind
    return called
