"""Who is served first: priority, then age, then uid.

Between gangs of one priority every minimum comes before any member beyond a minimum. The order is
asked for gang by gang, after each has been served, because what was served may change it.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush

from posse.engine.gangs import Gang
from posse.engine.policy import Policy
from posse.engine.view import View

Rank = tuple[int, bool, float, str, str]


def rank(gang: Gang) -> Rank:
    facts = gang.facts
    assert facts is not None
    return -facts.priority, gang.short == 0, facts.created, facts.uid, facts.key


def in_order(view: View, policy: Policy) -> Iterator[Gang]:
    """The gangs worth looking at: those that changed, and those that freed room could help."""
    worth = {gang.key: gang for gang in view.shortfalls.awakened()} | view.stirred
    heap = [(rank(gang), key) for key, gang in worth.items() if key not in view.ailing]
    heapify(heap)
    while heap:
        _, key = heappop(heap)
        gang = view.gangs.get(key)
        if gang is None or gang.facts is None or key in view.ailing:
            continue
        view.stirred.pop(key, None)
        before = len(gang.muster.waiting)
        yield gang
        if 0 < len(gang.muster.waiting) < before and key not in view.stirred:
            heappush(heap, (rank(gang), key))
