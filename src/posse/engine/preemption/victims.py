"""Who may be ended so that others can start, in which pieces, and what each piece costs.

A piece (a unit) is a whole gang, one member that its gang can spare, or a part of the gang that
starts and ends together; a severable gang is ended pod by pod, and none of these pods for somebody
whose priority is not higher than its own, whatever its gang's is. A member that must not be ended
is in none of them. Units compare by priority, then by the work that is lost with them, then by
their pods; then whom a gang can spare goes before a gang, and then the youngest. The spare members
of a gang come before the whole of it, which contains them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from posse.engine.columns import Ints
from posse.engine.fit.seating import Seating
from posse.engine.gangs import Gang, Hold, Member, made
from posse.engine.policy import Policy
from posse.engine.preemption.budgets import Budgets
from posse.engine.squads import spare

# Priority, GPU-seconds lost, pods, whether a gang ends, youth; then what makes no two equal.
Cost = tuple[int, float, int, bool, float, str, int]


@dataclass(slots=True, eq=False)
class Unit:
    """`members` end together. `whole`: nothing is left of the gang, nor of what is held for it."""

    gang: Gang
    members: list[Member]
    whole: bool
    cost: Cost
    # The members beyond those that are units of their own and come before this one.
    adds: list[Member]

    @property
    def priority(self) -> int:
        return self.cost[0]

    @property
    def queue(self) -> str:
        assert self.gang.facts is not None
        return self.gang.facts.queue

    @property
    def holds(self) -> list[Hold]:
        return self.gang.holds if self.whole else []

    def amounts(self, width: int, members: Sequence[Member] | None = None) -> Ints:
        """What it takes of every resource: its members, or some of them, and what is held."""
        total = np.zeros(width, np.int64)
        counts: dict[Seating, int] = {}
        for member in self.members if members is None else members:
            counts[member.seating] = counts.get(member.seating, 0) + 1
        for hold in self.holds:
            counts[hold.seating] = counts.get(hold.seating, 0) + 1
        for seating, number in counts.items():
            total[seating.columns] += number * seating.amounts
        return total


def together(units: Iterable[Unit]) -> tuple[int, float, int, int, tuple[float, ...]]:
    """What a set of units costs: less is better."""
    units = list(units)
    whole = {id(unit.gang) for unit in units if unit.whole}
    apart = [unit.cost for unit in units if unit.whole or id(unit.gang) not in whole]
    return (
        max((cost[0] for cost in apart), default=-(1 << 62)),
        round(sum(cost[1] for cost in apart), 3),
        sum(cost[2] for cost in apart),
        sum(cost[3] for cost in apart),
        tuple(sorted(cost[4] for cost in apart)),
    )


def spares(unit: Unit) -> bool:
    """Whether its gang goes on without it, and ends nobody to have it back."""
    facts = unit.gang.facts
    assert facts is not None
    return not (unit.whole or facts.severable or facts.grows)


def fresh_until(gang: Gang, policy: Policy, now: float) -> float | None:
    """Until when the gang is nobody's victim because it has hardly run; None: it has run enough.

    Infinite while nobody knows when it began.
    """
    facts = gang.facts
    assert facts is not None
    least = policy.min_runtime if facts.min_runtime is None else facts.min_runtime
    if least <= 0:
        return None
    if facts.began is None:
        return float("inf")
    return facts.began + least if now < facts.began + least else None


def spared(gang: Gang, policy: Policy) -> bool:
    """Whether nobody may end it, whoever that is and however long it ran."""
    facts = gang.facts
    assert facts is not None
    evictions = max(facts.evictions, gang.evicted)
    return not facts.preemptable or evictions >= policy.most_evictions


def units_of(gang: Gang, now: float, budgets: Budgets) -> list[Unit]:
    """The gang in pieces, the cheapest first; none if none of its members is to stay anyway.

    Whom a budget keeps from ending is not spared to others in place of a fellow that could end.
    """
    facts = gang.facts
    assert facts is not None
    seated = gang.muster.seated
    if not seated and ((gang.bereft and gang.holds) or made(gang)):
        # Nobody ends: its members have ended, or others will, for whom they were not meant.
        return [Unit(gang, [], True, (facts.priority, 0.0, 0, True, -now, facts.key, 0), [])]
    # Whose binds are under way is not ended before they are known to have happened.
    if not seated or any(member.assumed for member in seated):
        return []
    began = now if facts.began is None else facts.began
    lost = max(0.0, now - began)
    if facts.checkpoint_interval is not None:
        lost = min(lost, facts.checkpoint_interval)

    def unit(members: list[Member], number: int, adds: list[Member] | None = None) -> Unit:
        work = round(lost * sum(member.seating.devices for member in members), 3)
        whole = adds is not None
        priority = facts.priority
        if facts.severable:
            priority = max(priority, *(member.facts.priority for member in members))
        cost = (priority, work, len(members), whole, -began, facts.key, number)
        return Unit(gang, members, whole, cost, members if adds is None else adds)

    if facts.severable:
        ending = [member for member in _last_first(seated) if member.facts.preemptable]
        return [unit([member], at) for at, member in enumerate(ending)]
    apart = spare_pieces(gang, [member for member in seated if budgets.allow(member)])
    pieces = [unit(members, at) for at, members in enumerate(apart)]
    if all(member.facts.preemptable for member in gang.members.values()):
        leave = {id(member) for members in apart for member in members}
        core = [member for member in seated if id(member) not in leave]
        pieces.append(unit(seated, len(apart), core))
    return pieces


def spare_members(gang: Gang, choose: Sequence[Member] | None = None) -> list[Member]:
    return [member for members in spare_pieces(gang, choose) for member in members]


def spare_pieces(gang: Gang, choose: Sequence[Member] | None = None) -> list[list[Member]]:
    """Members that the gang's minimum and those of its roles can do without, all at once; each by
    itself, or with those without whom it is no use.

    The last in their order of those to choose from, which are all that sit unless told otherwise.
    Those that were announced are on top of the minimum, and not spare.
    """
    facts = gang.facts
    assert facts is not None
    seated = gang.muster.seated
    number = gang.muster.filled - gang.least
    if number <= 0 or facts.indivisible:
        return []
    minimums = dict(facts.role_minimums)
    for expected in facts.expects:
        minimums[expected.role] = max(minimums.get(expected.role, 0), expected.count)
    there: dict[str, int] = {}
    for member in seated:
        there[member.facts.role] = there.get(member.facts.role, 0) + 1
    offered = {id(member) for member in seated if member.facts.preemptable}
    if choose is not None:
        offered.intersection_update(map(id, choose))

    def may(members: Sequence[Member]) -> bool:
        """Whether these can go too; they do, if so."""
        left = dict(there)
        for member in members:
            left[member.facts.role] -= 1
        ok = all(
            id(member) in offered and left[member.facts.role] >= minimums.get(member.facts.role, 0)
            for member in members
        )
        if ok:
            there.update(left)
        return ok

    if facts.squads:
        return list(spare(gang.squads, seated, number, may, dict(facts.ended)))
    found: list[list[Member]] = []
    for member in _last_first(seated if choose is None else choose):
        if len(found) == number:
            break
        if may([member]):
            found.append([member])
    return found


def _last_first(members: Sequence[Member]) -> list[Member]:
    return sorted(members, key=lambda member: member.order, reverse=True)
