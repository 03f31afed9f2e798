"""What its queue lets a gang have: decided together with its placement, in the same numbers."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace

import msgspec
import numpy as np

from posse.engine.columns import Ints
from posse.engine.decisions import Verdict
from posse.engine.facts import Purpose
from posse.engine.gangs import Gang
from posse.engine.placement.demands import Demand, demands_of
from posse.engine.placement.searching import Found
from posse.engine.placement.shortfalls import Quota, Shortfall
from posse.engine.queues.ceilings import Flags
from posse.engine.queues.limits import Limit
from posse.engine.queues.lineages import Queue
from posse.engine.resources import count
from posse.engine.verdicts.allowing import never, not_now
from posse.engine.view import View

# Seats it was given before: no quota that was lowered since takes them from it.
_ITS_OWN = (None, Purpose.REPAIR)
NOTHING: Ints = np.zeros(0, np.int64)


class Budget:
    """What a gang may still take, the seats kept for it among that.

    To be made while these are counted as kept. `left` is huge where nothing limits it.
    """

    def __init__(self, view: View, gang: Gang) -> None:
        assert gang.facts is not None
        self._tree = view.tree
        self._queue = gang.facts.queue
        self._kept: Ints | None = None
        self.left: Ints = self._tree.room(self._queue)
        # What the gang was found to ask for.
        self.asked: Ints = NOTHING
        if gang.holds:
            self._kept, own = np.zeros_like(self.left), np.zeros_like(self.left)
            for hold in gang.holds:
                self._kept[hold.seating.columns] += hold.seating.amounts
                if hold.purpose in _ITS_OWN:
                    own[hold.seating.columns] += hold.seating.amounts
            self.left = np.maximum(self.left + self._kept, own)

    def seats(self, demand: Demand) -> int:
        """How many pods of this demand it allows for."""
        seating = demand.seating
        return max(0, int((self.left[seating.columns] // seating.amounts).min()))

    def take(self, demand: Demand, number: int) -> None:
        self.left = self.left - number * demand.seating.vector()

    def bears(self, view: View, demands: Sequence[Demand], found: Found) -> bool:
        """Whether it allows for what was found."""
        asked = self._taken(view, demands, found)
        return asked is self.asked or self.over(asked) is None

    def after(self, view: View, demands: Sequence[Demand], found: Found) -> Budget:
        """What is left once that was taken."""
        rest = copy(self)
        rest.left = self.left - self._taken(view, demands, found)
        return rest

    def _taken(self, view: View, demands: Sequence[Demand], found: Found) -> Ints:
        """What was found, which is most often what was asked for, and was allowed."""
        if all(len(found.get(demand, ())) == demand.wanted for demand in demands):
            return self.asked
        return asked_by(view, demands, found)

    def over(self, asked: Ints) -> Flags | None:
        """Of which resources so much is too much; None: of none."""
        over: Flags = asked > self.left
        if np.count_nonzero(over):
            over &= asked > 0
        return over if np.count_nonzero(over) else None

    def limit(self, asked: Ints, over: Flags) -> Limit:
        """What stands against so much in all; to be asked before any was taken."""
        return self._tree.limit(self._queue, over, asked, self._kept)


def budget_of(view: View, gang: Gang) -> Budget | None:
    """None where no queue's quota concerns the gang."""
    assert gang.facts is not None
    return Budget(view, gang) if view.tree.binds(gang.facts.queue) else None


def asked_by(view: View, demands: Sequence[Demand], found: Found | None = None) -> Ints:
    """What the demands come to: as many as wanted, or as were found."""
    amounts = [
        (demand.wanted if found is None else len(found.get(demand, ()))) * demand.seating.vector()
        for demand in demands
    ]
    if len(amounts) == 1:
        return amounts[0]
    return sum(amounts, np.zeros(view.columns.width, np.int64))


def at_least(view: View, gang: Gang, asked: Ints) -> Ints:
    """The same, or what the gang said it needs as a whole where that is more."""
    assert gang.facts is not None
    if not gang.facts.min_resources or not gang.short:
        return asked
    has = np.zeros_like(asked)
    for member in gang.muster.seated:
        has[member.seating.columns] += member.seating.amounts
    more: Ints = np.maximum(asked, view.tree.vector(gang.facts.min_resources) - has)
    return more


def economise(budget: Budget, demands: Sequence[Demand], need: int) -> bool:
    """Want other members where the oldest are more than the quota bears, if others will do."""
    choosable = [demand for demand in demands if not demand.announced]
    if len(choosable) < 2 or sum(demand.most for demand in choosable) <= need:
        return False
    left = budget.left.copy()
    chosen: dict[int, int] = {}
    for demand in demands:
        chosen[id(demand)] = demand.least
        left[demand.seating.columns] -= demand.least * demand.seating.amounts
    more = need - sum(demand.least for demand in choosable)
    for demand in sorted(choosable, key=lambda demand: demand.wanted == 0):
        seating = demand.seating
        seats = max(0, int((left[seating.columns] // seating.amounts).min()))
        number = min(seats, more, demand.most - demand.least)
        chosen[id(demand)] += number
        left[seating.columns] -= number * seating.amounts
        more -= number
    if more > 0:
        return False
    for demand in choosable:
        demand.wanted = chosen[id(demand)]
    return True


def stop(view: View, gang: Gang, demands: list[Demand], need: int, budget: Budget) -> Quota | None:
    """What keeps the whole gang from starting, before any node is looked at."""
    assert gang.facts is not None
    budget.asked = asked_by(view, demands)
    asked = at_least(view, gang, budget.asked)
    over = budget.over(asked)
    if over is not None and economise(budget, demands, need):
        budget.asked = asked_by(view, demands)
        asked = at_least(view, gang, budget.asked)
        over = budget.over(asked)
    if over is None:
        return None
    alike = not (gang.muster.seated or gang.holds)
    if any(demand.wanted < demand.most for demand in demands):
        alike = False  # others of its members may be content with less
    return _stopped_by(view, gang, budget, asked, over, alike)


def out_of_reach(view: View, gang: Gang) -> bool:
    """Whether its queue could never let it have its minimum, as queues and nodes are."""
    budget = budget_of(view, gang)
    if budget is None:
        return False
    quota = stop(view, gang, demands_of(gang, gang.need), gang.need, budget)
    return quota is not None and quota.never


def beyond_ceiling(view: View, gang: Gang, demands: list[Demand]) -> Verdict | None:
    """What to tell it where others are in its way, and it may not have so much without them.

    None also where others of its members may be content with less.
    """
    if any(demand.wanted < demand.most for demand in demands):
        return None
    quota = _never(view, gang, at_least(view, gang, asked_by(view, demands)), alike=False)
    return None if quota is None else quota.verdict


def _stopped_by(
    view: View, gang: Gang, budget: Budget, asked: Ints, over: Flags, alike: bool
) -> Quota:
    """The quota that so much in all would exceed; `alike`: whoever asks the same asks for that."""
    assert gang.facts is not None
    never = _never(view, gang, asked, alike)
    if never is not None:
        return never
    return _exceeded(view, gang.facts.queue, budget.limit(asked, over), asked, alike)


def _never(view: View, gang: Gang, asked: Ints, alike: bool) -> Quota | None:
    """The quota that so much would exceed even if nobody else ran."""
    assert gang.facts is not None
    queue, in_all = gang.facts.queue, asked
    if gang.muster.seated:
        in_all = asked.copy()
        for member in gang.muster.seated:
            in_all[member.seating.columns] += member.seating.amounts
        in_all[asked <= 0] = 0
    ceiling = view.tree.ceiling(queue, in_all)
    if ceiling is None:
        return None
    binding = None if ceiling.queue is None else ceiling.queue.name
    has = ceiling.asked - int(asked[view.columns.column[ceiling.resource]])
    verdict = never(ceiling, has, queue)
    return Quota(verdict, binding, view.tree.clock, asked, alike, never=True)


def _exceeded(view: View, queue: str, limit: Limit, asked: Ints, alike: bool) -> Quota:
    binding = None
    if limit.queue is not None:
        binding = limit.queue.name
        limit = replace(limit, going=_going(view, limit.queue, limit.resource))
    return Quota(not_now(limit, queue), binding, view.tree.clock, asked, alike)


def _going(view: View, queue: Queue, resource: str) -> int:
    """What of it those in the queue take who are on their way out."""
    column = view.columns.column[resource]
    return sum(
        amounts.item(column)
        for name, amounts in view.going().items()
        if queue.row in view.tree.queue(name).path
    )


def still_stopped(view: View, shortfall: Shortfall) -> bool:
    """Whether what came free of its quota is not enough: then only the numbers are other ones.

    One comparison instead of a look: most often one pod's end does not help those who wait for
    many. False where more than the numbers may have changed.
    """
    quota = shortfall.quota
    if quota is None or not quota.alike or shortfall.cast or shortfall.surplus:
        return False
    now = _as_of_now(view, shortfall, quota)
    if now is None:
        return False
    view.shortfalls.renew(shortfall, now)
    return True


def in_todays_numbers(view: View, shortfall: Shortfall) -> Quota | None:
    """The quota that stands against its gangs, and what is used of it by now.

    Others who come to use more of it are no reason to look at anybody again; but whoever is told
    of it for whatever reason is told what is so today.
    """
    quota = shortfall.quota
    if quota is None or quota.never or quota.seen == view.tree.clock:
        return quota
    now = _as_of_now(view, shortfall, quota)
    if now is not None:
        # Where others of its members may do with less, they are waited for as before.
        shortfall.quota = now if quota.alike else replace(quota, verdict=now.verdict)
    return shortfall.quota


def _as_of_now(view: View, shortfall: Shortfall, quota: Quota) -> Quota | None:
    """The same in the numbers of now; None where more than numbers may have changed."""
    first, tree, asked = shortfall.first(), view.tree, quota.asked
    if first is None or first.facts is None or tree.altered_since(quota.seen):
        return None
    if view.columns.last_altered > shortfall.seen:
        return None
    budget = Budget(view, first)
    if len(asked) != len(budget.left):
        return None
    over = budget.over(asked)
    if over is None:
        return None
    limit = budget.limit(asked, over)
    now = _exceeded(view, first.facts.queue, limit, asked, quota.alike)
    return _of_more(now, shortfall.demands) if quota.verdict.surplus else now


def stops_more(view: View, gang: Gang, demands: list[Demand], budget: Budget) -> Quota | None:
    """The quota that keeps members beyond the minimum from the seats that there are."""
    wanting = [demand for demand in demands if not demand.announced and demand.most]
    denied = [demand for demand in wanting if not budget.seats(demand)]
    for demand in denied:
        one = demand.seating.vector()
        over = budget.over(one)
        if over is None:
            continue
        quota = _stopped_by(view, gang, budget, one, over, alike=False)
        # Where there is no room either, that is what is waited for, unless it would be in vain.
        if demand.total() or quota.never:
            return replace(_of_more(quota, demands), alone=len(denied) == len(wanting))
    return None


def stops_part(part: Shortfall, demands: list[Demand]) -> Quota | None:
    """The quota that keeps one more part from the seats that there are for the whole of it."""
    quota = part.quota
    room = all(demand.total() >= demand.wanted for demand in part.demands)
    if quota is None or not (room or quota.never):
        return None
    # Other parts may lack room only.
    return replace(_of_more(quota, demands), alone=False)


def _of_more(quota: Quota, demands: list[Demand]) -> Quota:
    """The same, as it is told of members beyond the minimum."""
    number = sum(demand.most for demand in demands if not demand.announced)
    told = f"{count(number, 'pod')} beyond its minimum: {quota.verdict.sentence}"
    verdict = msgspec.structs.replace(quota.verdict, sentence=told, surplus=True)
    return replace(quota, verdict=verdict)
