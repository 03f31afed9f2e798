"""Parts of a gang that sit nearer to each other than the whole of it: each in a domain of its own.

The part that asks most is seated first, in the nearest domain that has room for it; the others in
what is left. Where one of them finds none it is not proven that there is none.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from posse.engine.columns import Rows
from posse.engine.facts import Topology
from posse.engine.gangs import Gang
from posse.engine.placement.demands import Demand
from posse.engine.placement.nearing import Limit, together
from posse.engine.placement.relating import pack
from posse.engine.placement.searching import Found
from posse.engine.policy import Policy
from posse.engine.squads import kind_of
from posse.engine.view import View

_NOWHERE: Rows = np.zeros(0, np.intp)


def pack_parts(
    view: View,
    gang: Gang,
    demands: list[Demand],
    need: int,
    near: Sequence[Rows],
    limit: Limit,
    policy: Policy,
) -> tuple[Found | None, bool]:
    """As `pack` does, within the limit: every part together, or nobody."""
    assert gang.facts is not None
    asked = dict(gang.facts.nearer)
    parts: dict[str, list[Demand]] = {}
    for demand in demands:
        parts.setdefault(demand.part, []).append(demand)
    found: Found = {}
    for part in sorted(parts, key=lambda part: (-_wanted(parts[part]), part)):
        theirs = parts[part]
        wanted = _wanted(theirs) if need else 0
        request = asked.get(kind_of(part))
        if request is None:
            got, _ = pack(view, theirs, wanted, near, limit.heed(policy))
        else:
            got = _near(view, gang, part, theirs, wanted, near, limit, request, policy)
        if got is None:
            return None, False
        found.update(got)
    return found, True


def _near(
    view: View,
    gang: Gang,
    part: str,
    demands: list[Demand],
    need: int,
    near: Sequence[Rows],
    limit: Limit,
    request: Topology,
    policy: Policy,
) -> Found | None:
    """Seats for one part; its further members are confined to the same domain."""
    own = np.array(
        sorted({each.row for each in gang.muster.seated if each.facts.part == part}), np.intp
    )
    held = np.array(sorted({row for demand in demands for row in demand.at}), np.intp)
    for domain in together(view, own, held, demands, need, request, policy):
        rows = _within(domain.rows, limit.rows)
        for demand in demands:
            demand.within = rows
        with view.tentatively() as trial:
            got, _ = pack(view, demands, need, near, domain.heed(policy))
            if got is not None:
                trial.keep()
                return got
    for demand in demands:
        demand.within = _NOWHERE
    return None if need else {}


def _within(rows: Rows | None, outer: Rows | None) -> Rows | None:
    if rows is None or outer is None:
        return outer if rows is None else rows
    return rows[np.isin(rows, outer)]


def _wanted(demands: list[Demand]) -> int:
    return sum(demand.wanted for demand in demands if not demand.announced)
