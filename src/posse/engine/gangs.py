"""Gangs and their members, as the view remembers them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter

from posse.engine.columns import Use
from posse.engine.decisions import Verdict
from posse.engine.facts import GroupFacts, Keeps, PodFacts, Purpose
from posse.engine.fit.seating import Seating
from posse.engine.naming import alphabetical
from posse.engine.squads import Rules, Squads
from posse.engine.squads import muster as muster_squads

NOWHERE = -1
_ORDER = attrgetter("order")
_NOBODY: Mapping[str, int] = {}

# Of each column so much.
Amounts = tuple[tuple[int, int], ...]
# Smaller is served earlier.
Rank = tuple[bool, int, float, str, str, str]


class Member:
    """A pod that takes room or waits for it."""

    __slots__ = ("assumed", "facts", "going", "kind", "leaving", "order", "row", "seating", "stuck")

    def __init__(self, facts: PodFacts, seating: Seating, row: int) -> None:
        self.facts = facts
        self.seating = seating
        # The same one for all who can trade places with it.
        self.kind = seating.kind(facts.role, facts.part)
        self.row = row
        # The engine seated it and no event has confirmed that yet.
        self.assumed = False
        # The engine let it go and no event has confirmed that yet.
        self.leaving = False
        # It still takes room, but is no member to count on.
        self.going = facts.deleting
        # It should have gone long ago: nobody counts on its room any more.
        self.stuck = False
        # By priority, then the oldest first, then `worker-2` before `worker-10`.
        self.order = (-facts.priority, facts.created, len(facts.name), facts.name, facts.uid)

    def let_go(self, leaving: bool = True) -> None:
        self.leaving = leaving
        self.going = leaving or self.facts.deleting


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

    @property
    def use(self) -> Use:
        return Use.MADE if self.purpose is Purpose.PREEMPTION else Use.HELD


@dataclass(frozen=True, slots=True)
class Vacancy:
    """The seat of a member that is no more, for the one that takes its place."""

    # Who sat there, or a fellow of the same role: the successor will be like it.
    like: Member
    node: str
    # Of that node, as it was last known: what is near it when it is gone.
    labels: Mapping[str, str]
    # The node would not have the member: another one is better.
    shunned: bool = False

    @property
    def role(self) -> str:
        return self.like.facts.role

    @property
    def seating(self) -> Seating:
        return self.like.seating


@dataclass(frozen=True, slots=True)
class Role:
    """Waiting members that can trade places."""

    name: str
    seating: Seating
    members: list[Member]
    part: str = ""


@dataclass(frozen=True, slots=True)
class Absent:
    """Announced members of one role that have no pod yet."""

    role: str
    seating: Seating
    count: int


@dataclass(slots=True, eq=False)
class Muster:
    """Who is there, who waits for a seat, who is announced.

    Announced members are on top of the minimum: they do not count as `present` or `filled`.
    """

    there: int
    present: int
    filled: int
    short: int
    seated: list[Member]
    waiting: list[Member]
    absent: list[Absent]
    # By role, in the order of their names: seats missing to its minimum, and pods.
    unseated: Mapping[str, int]
    missing: Mapping[str, int]
    # Of a gang whose parts are gangs themselves.
    squads: Squads | None = None
    _roles: list[Role] | None = None

    def roles(self) -> list[Role]:
        """Those who wait, by role; worked out once."""
        if self._roles is None:
            self._roles = by_role(self.waiting)
        return self._roles

    def seatings(self) -> dict[Seating, int]:
        """How many of those who wait are of each shape."""
        counts: dict[Seating, int] = {}
        for role in self.roles():
            counts[role.seating] = counts.get(role.seating, 0) + len(role.members)
        return counts


def apart(members: list[Member]) -> tuple[list[Member], list[Member]]:
    """Those who sit, and those who wait: most often these or those are all of them."""
    waiting = [member for member in members if member.row == NOWHERE]
    if not waiting:
        return members, waiting
    if len(waiting) == len(members):
        return [], waiting
    return [member for member in members if member.row != NOWHERE], waiting


def by_role(members: list[Member]) -> list[Role]:
    if not members:
        return []
    kind = members[0].kind
    if not [member for member in members if member.kind is not kind]:
        # As most often.
        return [Role(kind[0], members[0].seating, members, kind[1])]
    roles: dict[int, Role] = {}
    for member in members:
        role = roles.get(id(member.kind))
        if role is None:
            name, part = member.kind
            role = roles[id(member.kind)] = Role(name, member.seating, [], part)
        role.members.append(member)
    return list(roles.values())


def by_seating(members: Iterable[Member]) -> dict[Seating, int]:
    """How many of them are of each shape."""
    counts: dict[Seating, int] = {}
    for member in members:
        counts[member.seating] = counts.get(member.seating, 0) + 1
    return counts


@dataclass(slots=True, eq=False)
class Gang:
    """Pods that name one group, and what is known of that group; either may come first."""

    key: str
    facts: GroupFacts | None = None
    members: dict[str, Member] = field(default_factory=dict)
    # The queue its seats are charged to, also when its group is gone; "" while nobody knows.
    queue: str = ""
    # The seatings of facts.expects, in their order.
    expected: list[Seating] = field(default_factory=list)
    holds: list[Hold] = field(default_factory=list)
    # Whether facts.holds, written by an earlier life, were looked at.
    adopted: bool = False
    # The most seats it had: what it loses of them it gets back before others are served.
    # None until first looked at: a gang that started before then is owed all its members.
    entitled: int | None = None
    # Until when its holds for a purpose stand; None: no end.
    kept_until: float | None = None
    # And how much longer, since those who go were given so long to end.
    grace: float = 0.0
    # How often it was ended for others, as far as decided here: its facts follow.
    evicted: int = 0
    # How often others started before it, as far as counted here.
    overtaken: int = 0
    # The uids of members of others that were ended for it.
    awaits: tuple[str, ...] = ()
    # The other queues that these were ended in.
    taken_from: frozenset[str] = frozenset()
    # For whom it was ended whole; "" once it has started again.
    ended_for: str = ""
    # When it was first seen half-bound, and when it first ailed in any way.
    half_since: float | None = None
    ailing_since: float | None = None
    # It ailed for too long: it keeps nothing any more.
    lapsed: bool = False
    # Seats that members left since it last was whole, the latest at the end.
    vacancies: list[Vacancy] = field(default_factory=list)
    # (role, node) of the seats kept for its repair, or where they were; and what is written of it.
    repairs: tuple[tuple[str, str], ...] = ()
    written: Keeps | None = None
    # It was let go whole: whatever it was before, it starts anew.
    dismissed: bool = False
    # When it was first seen with its minimum seated, if it was not yet seen running.
    seated_since: float | None = None
    # It was said that it takes too long to run.
    overdue: bool = False
    # The last verdict told.
    verdict: Verdict | None = None
    _muster: Muster | None = None
    _rank: Rank | None = None
    _asks: Amounts | None = None
    # Its name, such that `job-2` is before `job-10`.
    alphabetical: str = field(init=False)

    def __post_init__(self) -> None:
        self.alphabetical = alphabetical(self.key.partition("/")[2])

    @property
    def rank(self) -> Rank:
        """Every minimum before any surplus; priority, then age, then name, then uid.

        Ages are whole seconds: of those who came in the same one, `job-2` is before `job-10`.
        """
        if self._rank is None:
            facts = self.facts
            assert facts is not None
            spare = self.short == 0 and not facts.loose
            name = self.alphabetical
            self._rank = spare, -facts.priority, self.since, name, facts.uid, facts.key
        return self._rank

    @property
    def since(self) -> float:
        """How old its claim is. Pods that wait for nobody are not older for a group that is."""
        assert self.facts is not None
        if self.facts.loose and self.muster.waiting:
            return self.muster.waiting[0].facts.created
        return self.facts.created

    @property
    def abreast(self) -> int:
        """Waiting members that may be seated in one turn: nobody comes between them."""
        assert self.facts is not None
        waiting = self.muster.waiting
        if not self.facts.loose:
            return len(waiting)
        since = self.since
        return sum(1 for member in waiting if member.facts.created <= since)

    @property
    def least(self) -> int:
        assert self.facts is not None
        return max(1, self.facts.min_member)

    @property
    def squads(self) -> Rules:
        assert self.facts is not None
        return {kind: (size, number) for kind, size, number in self.facts.squads}

    @property
    def started(self) -> bool:
        assert self.facts is not None
        return self.facts.started and not self.dismissed

    @property
    def short(self) -> int:
        """Seats missing to its minimum, and to that of each role and part."""
        assert self.facts is not None
        return self.muster.short

    @property
    def missing(self) -> int:
        """Pods missing to its minimum, and to that of each role and part."""
        return self._missing_of(self.muster)

    def _missing_of(self, muster: Muster) -> int:
        missing = max(0, self.least - muster.present)
        if muster.squads is not None:
            missing = max(missing, muster.squads.missing)
        return max(missing, sum(muster.missing.values())) if muster.missing else missing

    @property
    def half_bound(self) -> bool:
        return bool(self.muster.seated) and self.short > 0 and not self.started

    @property
    def bereft(self) -> bool:
        """It ran, and lost all its members at once; they are to come back."""
        assert self.facts is not None
        return self.started and self.facts.returns and not self.muster.seated

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
        self._muster = self._rank = self._asks = None

    def sat_down(self, members: list[Member]) -> None:
        """These waited until now."""
        before = self._muster
        self.forget_muster()
        if before is not None and before.squads is None and len(members) == len(before.waiting):
            # All of them sit now: who is there is known, and what the gang lacks is not there.
            self._muster = Muster(
                there=before.there,
                present=before.present,
                filled=before.present,
                short=self._missing_of(before),
                seated=before.seated + members,
                waiting=[],
                absent=before.absent,
                unseated=before.missing,
                missing=before.missing,
            )

    def validate(self) -> None:
        """For tests: call the roll again, and compare."""
        if self._muster is None:
            return
        known, fresh = self._muster, self._call_the_roll()
        for one, other in ((known.seated, fresh.seated), (known.waiting, fresh.waiting)):
            assert sorted(map(id, one)) == sorted(map(id, other)), f"{self.key}: a stale muster"
        assert (known.there, known.present, known.filled, known.short) == (
            fresh.there,
            fresh.present,
            fresh.filled,
            fresh.short,
        ), f"{self.key}: a stale muster"
        assert (known.unseated, known.missing) == (fresh.unseated, fresh.missing)

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

    def needed(self) -> list[Member]:
        """Waiting members without whom it is not whole: the awaited, and what roles and parts must
        have."""
        awaited = self.awaited()
        if self.muster.squads is not None:
            there = {id(member) for member in awaited}
            return awaited + [each for each in self.muster.squads.chosen if id(each) not in there]
        lacking = dict(self.muster.unseated)
        if not lacking:
            return awaited
        needed = {id(member) for member in awaited}
        for member in self.muster.waiting:
            if id(member) not in needed and lacking.get(member.facts.role, 0):
                lacking[member.facts.role] -= 1
                awaited.append(member)
        return awaited

    def former_seats(self, role: str, seating: Seating) -> list[int]:
        """Rows that are kept for the successors of lost members of this role, or that these had."""
        if not self.vacancies:
            return []
        nodes = [node for of, node in self.repairs if of == role]
        nodes += [v.node for v in self.vacancies if v.role == role and not v.shunned]
        return seating.rows_of(nodes)

    @property
    def need(self) -> int:
        """Waiting members that must be seated together: its minimum, and whoever was announced."""
        muster = self.muster
        if muster.squads is not None:
            return len(self.needed())
        # Whoever waits is nobody's stand-in in a role that misses a pod.
        short = max(0, self.short - sum(muster.missing.values())) if muster.missing else self.short
        return min(len(muster.waiting), short + len(self.awaited()))

    @property
    def bid(self) -> int:
        """Waiting members that are seated together: those it needs or, where it has these, those
        that others make room for."""
        assert self.facts is not None
        if self.short or not self.facts.grows:
            return self.need
        return max(self.need, min(len(made(self)), len(self.muster.waiting)))

    def asks(self) -> Amounts:
        """What its turn is about: who must be seated together, at least one of those who wait."""
        if self._asks is None or self.holds:
            muster, need = self.muster, max(1, self.need)
            roles = muster.roles()
            if len(roles) == 1:
                seats = [(roles[0].seating, need)]
            else:
                seats = [(member.seating, 1) for member in muster.waiting[:need]]
            seats += [(absent.seating, absent.count) for absent in muster.absent]
            asked: dict[int, int] = {}
            for seating, number in seats:
                for column, amount in seating.pairs:
                    asked[column] = asked.get(column, 0) + number * amount
            self._asks = tuple(asked.items())
        return self._asks

    def lost(self) -> bool:
        """It had its minimum once, and has not now: not if the minimum was raised since."""
        return self.short > 0 and (self.entitled or 0) > len(self.muster.seated)

    def fill(self, seats: Iterable[tuple[str, str]]) -> None:
        """Members sit down, as (role, node): for each a vacancy less, that one if it is one."""
        there, elsewhere = Counter(seats), Counter[str]()
        left: list[Vacancy] = []
        for vacancy in self.vacancies:
            seat = vacancy.role, vacancy.node
            if there[seat]:
                there[seat] -= 1
            else:
                left.append(vacancy)
        for (role, _), number in there.items():
            elsewhere[role] += number
        self.vacancies = []
        for vacancy in left:
            if elsewhere[vacancy.role]:
                elsewhere[vacancy.role] -= 1
            else:
                self.vacancies.append(vacancy)

    def ails(self) -> bool:
        """It has begun, and something that belongs to it is missing: it comes before others."""
        assert self.facts is not None
        muster = self.muster
        if muster.waiting and (self.owed or (self.started and self.short)):
            return True
        if not muster.seated and not self.bereft:
            return False
        if self.started and self.facts.recreated and self.missing and self.lost():
            return True
        announced = sum(1 for hold in self.holds if hold.announced)
        missing = sum(absent.count for absent in muster.absent)
        return self.half_bound or announced != missing or bool(self.awaited())

    def _call_the_roll(self) -> Muster:
        staying = [member for member in self.members.values() if not member.going]
        seated, waiting = apart(staying)
        waiting.sort(key=_ORDER)
        filled = self._counting(seated)
        unseated = self._below_minimum(seated)
        short = 0 if self.facts is None else max(0, self.least - filled)
        squads = None
        if self.facts is not None and self.facts.squads:
            ended = dict(self.facts.ended)
            squads = muster_squads(self.squads, seated, waiting, short, unseated, ended)
            waiting, short = squads.waiting(), squads.short
        elif unseated:
            short = max(short, sum(unseated.values()))
        return Muster(
            there=len(staying),
            present=self._counting(staying),
            filled=filled,
            short=short,
            seated=seated,
            waiting=waiting,
            absent=self._absent(),
            unseated=unseated,
            missing=self._below_minimum(staying),
            squads=squads,
        )

    def _counting(self, members: list[Member]) -> int:
        """How many of these count towards the minimum."""
        number = len(members)
        if self.facts is not None and self.facts.expects:
            for expected in self.facts.expects:
                there = sum(1 for member in members if member.facts.role == expected.role)
                number -= min(expected.count, there)
        return number

    def _below_minimum(self, members: Iterable[Member]) -> Mapping[str, int]:
        """How many each role lacks. Those that are announced have their seats by that."""
        if self.facts is None or not self.facts.role_minimums:
            return _NOBODY
        there: dict[str, int] = {}
        for member in members:
            there[member.facts.role] = there.get(member.facts.role, 0) + 1
        announced = {expected.role for expected in self.facts.expects}
        return {
            role: least - there.get(role, 0)
            for role, least in self.facts.role_minimums
            if least > there.get(role, 0) and role not in announced
        }

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


def made(gang: Gang) -> list[Hold]:
    """The seats that others were ended for, or are kept for it while they go."""
    if not gang.holds:
        return []
    return [hold for hold in gang.holds if hold.purpose is Purpose.PREEMPTION]
