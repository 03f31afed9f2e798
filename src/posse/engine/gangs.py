"""Gangs and their members, as the view remembers them."""

from __future__ import annotations

from dataclasses import dataclass, field

from posse.engine.decisions import Verdict
from posse.engine.facts import GroupFacts, PodFacts, Purpose
from posse.engine.seating import Seating

NOWHERE = -1

# Smaller is served earlier.
Rank = tuple[int, bool, float, str, str]


class Member:
    """A pod that takes room or waits for it."""

    __slots__ = ("assumed", "facts", "leaving", "order", "row", "seating")

    def __init__(self, facts: PodFacts, seating: Seating, row: int) -> None:
        self.facts = facts
        self.seating = seating
        self.row = row
        # The engine seated it and no event has confirmed that yet.
        self.assumed = False
        # The engine let it go and no event has confirmed that yet.
        self.leaving = False
        # Oldest first, then `worker-2` before `worker-10`.
        self.order = (facts.created, len(facts.name), facts.name, facts.uid)

    @property
    def going(self) -> bool:
        """It still takes room, but is no member to count on."""
        return self.leaving or self.facts.deleting


@dataclass(frozen=True, slots=True)
class Hold:
    """A seat kept for a gang: for a member announced without a pod, or for another purpose."""

    role: str
    seating: Seating
    row: int
    purpose: Purpose | None = None

    @property
    def announced(self) -> bool:
        return self.purpose is None


@dataclass(frozen=True, slots=True)
class Role:
    """Waiting members that can trade places."""

    name: str
    seating: Seating
    members: list[Member]


@dataclass(frozen=True, slots=True)
class Absent:
    """Announced members of one role that have no pod yet."""

    role: str
    seating: Seating
    count: int


@dataclass(frozen=True, slots=True)
class Muster:
    """Who is there, who waits for a seat, who is announced."""

    present: int
    seated: list[Member]
    waiting: list[Member]
    absent: list[Absent]

    def roles(self) -> list[Role]:
        return by_role(self.waiting)


def by_role(members: list[Member]) -> list[Role]:
    roles: dict[tuple[str, int], Role] = {}
    for member in members:
        key = (member.facts.role, id(member.seating))
        role = roles.get(key)
        if role is None:
            role = roles[key] = Role(member.facts.role, member.seating, [])
        role.members.append(member)
    return list(roles.values())


@dataclass(slots=True, eq=False)
class Gang:
    """Pods that name one group, and what is known of that group; either may come first."""

    key: str
    facts: GroupFacts | None = None
    members: dict[str, Member] = field(default_factory=dict)
    # The seatings of facts.expects, in their order.
    expected: list[Seating] = field(default_factory=list)
    holds: list[Hold] = field(default_factory=list)
    # Whether facts.holds, written by an earlier life, were looked at.
    adopted: bool = False
    # The most seats it had: what it loses of them it gets back before others are served.
    # None until first looked at: a gang that started before then is owed all its members.
    entitled: int | None = None
    # When it was first seen half-bound.
    half_since: float | None = None
    # The last verdict told.
    verdict: Verdict | None = None
    _muster: Muster | None = None

    @property
    def rank(self) -> Rank:
        """Priority, then age, then uid; of one priority every minimum before any surplus."""
        facts = self.facts
        assert facts is not None
        return -facts.priority, self.short == 0, facts.created, facts.uid, facts.key

    @property
    def least(self) -> int:
        assert self.facts is not None
        return max(1, self.facts.min_member)

    @property
    def started(self) -> bool:
        assert self.facts is not None
        return self.facts.started

    @property
    def short(self) -> int:
        """Seats missing to its minimum."""
        return max(0, self.least - len(self.muster.seated))

    @property
    def half_bound(self) -> bool:
        return bool(self.muster.seated) and self.short > 0 and not self.started

    @property
    def owed(self) -> int:
        """Seats it once had, lost, and has members waiting for."""
        if not self.started:
            return 0
        return max(0, (self.entitled or 0) - len(self.muster.seated))

    @property
    def at_rest(self) -> bool:
        """It has begun, and nobody in it waits for a seat."""
        return not self.muster.waiting and (self.started or bool(self.muster.seated))

    @property
    def muster(self) -> Muster:
        if self._muster is None:
            self._muster = self._call_the_roll()
        return self._muster

    def forget_muster(self) -> None:
        self._muster = None

    def awaited(self) -> list[Member]:
        """Waiting members whose role is announced, or was when their seat was held."""
        assert self.facts is not None
        places: dict[str, int] = {}
        for hold in self.holds:
            if hold.announced:
                places[hold.role] = places.get(hold.role, 0) + 1
        for expected in self.facts.expects:
            places[expected.role] = max(places.get(expected.role, 0), expected.count)
        if not places:
            return []
        arrived: list[Member] = []
        for member in self.muster.waiting:
            if places.get(member.facts.role, 0):
                places[member.facts.role] -= 1
                arrived.append(member)
        return arrived

    @property
    def need(self) -> int:
        """Waiting members that must be seated together: its minimum, and whoever was announced."""
        return min(len(self.muster.waiting), self.short + len(self.awaited()))

    def ails(self) -> bool:
        """It has begun, and something that belongs to it is missing: it comes before others."""
        muster = self.muster
        if muster.waiting and (self.owed or (self.started and self.short)):
            return True
        if not muster.seated:
            return False
        announced = sum(1 for hold in self.holds if hold.announced)
        missing = sum(absent.count for absent in muster.absent)
        return self.half_bound or announced != missing or bool(self.awaited())

    def _call_the_roll(self) -> Muster:
        staying = [member for member in self.members.values() if not member.going]
        waiting = [member for member in staying if member.row == NOWHERE]
        waiting.sort(key=lambda member: member.order)
        return Muster(
            present=len(staying),
            seated=[member for member in staying if member.row != NOWHERE],
            waiting=waiting,
            absent=self._absent(),
        )

    def _absent(self) -> list[Absent]:
        if self.facts is None or not self.facts.expects:
            return []
        arrived: dict[str, int] = {}
        for member in self.members.values():
            arrived[member.facts.role] = arrived.get(member.facts.role, 0) + 1
        absent: list[Absent] = []
        for expected, seating in zip(self.facts.expects, self.expected, strict=True):
            there = min(expected.count, arrived.get(expected.role, 0))
            if there:
                arrived[expected.role] -= there
            if expected.count > there:
                absent.append(Absent(expected.role, seating, expected.count - there))
        return absent
