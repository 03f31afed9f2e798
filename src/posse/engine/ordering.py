"""Who is served first: see `Gang.rank`.

The order is asked for gang by gang, after each has been served, because what was served may
change it.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush

from posse.engine.gangs import Gang, Rank
from posse.engine.policy import Policy
from posse.engine.shortfalls import Shortfall
from posse.engine.view import View


def in_order(view: View, policy: Policy) -> Iterator[Gang]:
    """The gangs worth looking at: those that changed, and those that a change could help.

    Of gangs that ask the same only the first is looked at, and the next one only if it was served.
    """
    heap: list[tuple[Rank, str]] = [
        (gang.rank, key) for key, gang in view.stirred.items() if key not in view.ailing
    ]
    helped: dict[str, Shortfall] = {}

    def enter(shortfall: Shortfall) -> None:
        gang = shortfall.first()
        if gang is not None and gang.key not in view.ailing:
            helped[gang.key] = shortfall
            heappush(heap, (gang.rank, gang.key))

    heapify(heap)
    for shortfall in view.shortfalls.awakened():
        enter(shortfall)
    while heap:
        _, key = heappop(heap)
        gang = view.gangs.get(key)
        if gang is None or gang.facts is None or key in view.ailing:
            continue
        view.stirred.pop(key, None)
        if gang.at_rest:
            continue
        waiting = len(gang.muster.waiting)
        yield gang
        if 0 < len(gang.muster.waiting) < waiting and key not in view.stirred:
            heappush(heap, (gang.rank, key))
        if key in helped and view.shortfalls.of(gang) is not helped[key]:
            enter(helped.pop(key))
