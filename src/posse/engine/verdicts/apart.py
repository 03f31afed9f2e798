"""Why a gang that must sit in one domain waits, though the cluster as a whole could take it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from posse.engine.columns import Ints, Rows
from posse.engine.decisions import Cause, Shortage
from posse.engine.facts import Topology
from posse.engine.fit.eligibility import Bar
from posse.engine.fit.seating import Seating
from posse.engine.fit.topology import Level
from posse.engine.placement.shortfalls import Shortfall
from posse.engine.policy import Policy
from posse.engine.resources import amount, count, words
from posse.engine.squads import kind_of
from posse.engine.verdicts.wording import Ask, Told, by_gravity, whole
from posse.engine.view import View


@dataclass(frozen=True)
class _Best:
    """The domain that comes nearest to seating one role."""

    ask: Ask
    name: str
    seats: int
    free: int
    total: int


class Apart:
    """What is told of the whole of a gang, and then of each part that is to sit nearer."""

    def __init__(self, view: View, shortfall: Shortfall, asks: list[Ask], policy: Policy) -> None:
        self.stories: list[_Together] = []
        gang = next(iter(shortfall.gangs.values()), None)
        if gang is None or gang.facts is None:
            return
        if gang.facts.topology is not None:
            own = view.rows_of(gang)
            self.stories.append(_Together(view, gang.facts.topology, own, whole(asks), policy))
        nearer = dict(gang.facts.nearer)
        for part in dict.fromkeys(ask.demand.part for ask in asks) if nearer else ():
            request = nearer.get(kind_of(part))
            if request is not None:
                theirs = [ask for ask in asks if ask.demand.part == part]
                rows = {each.row for each in gang.muster.seated if each.facts.part == part}
                own = np.array(sorted(rows), np.intp)
                self.stories.append(
                    _Together(view, request, own, theirs, policy, "a part of it sits together: ")
                )

    def never(self) -> Told | None:
        """Not on today's nodes, however empty they are."""
        return next((told for each in self.stories if (told := each.never())), None)

    def now(self) -> Told | None:
        return next((told for each in self.stories if (told := each.now())), None)


class _Together:
    """Those who ask are to sit in one domain, with those who sit on rows of their `own`."""

    def __init__(
        self,
        view: View,
        request: Topology,
        own: Rows,
        asks: list[Ask],
        policy: Policy,
        whose: str = "",
    ) -> None:
        self.view = view
        self.asks = asks
        self.own = own
        self.whose = whose
        self.levels, anywhere = view.tiers.allowed(request, policy.tiers)
        self.request = None if anywhere else request

    def never(self) -> Told | None:
        if self.request is None:
            return None
        if not self.levels:
            return Cause.TOO_FAR, _unknown(self.request), ()
        if len(self.own):
            return None
        short = self._short(_if_empty)
        if short is None:
            return None
        what = f"{self.whose}no {self.noun} of today's nodes can hold {_asked(self.asks)}:"
        what += " the largest "
        what += self._numbers(short, "has", short.total)
        waiting = [ask for ask in self.asks if not ask.demand.announced]
        if short.seats and waiting == [short.ask] and not self.whose:
            what += f"; ask for {count(short.seats, 'pod')}, or allow more than one {self.noun}"
        return Cause.TOO_FAR, what, (self._shortage(short),)

    def now(self) -> Told | None:
        if self.request is None:
            return None
        if len(self.own) and not any(level.containing(self.own).any() for level in self.levels):
            return Cause.APART, f"{self.whose}its members sit on nodes of no {self.noun}", ()
        short = self._short(lambda view, seating: seating.seats())
        if short is None:
            return None
        if len(self.own):
            where = f"{self.whose}the {self.noun} that its members sit in ({short.name})"
            what = f"{where} has no room for {_asked(self.asks)}: it "
        else:
            what = f"{self.whose}no {self.noun} has room for {_asked(self.asks)}: the best "
        what += self._numbers(short, "has", short.free)
        resource = by_gravity(short.ask.seating)[0][0]
        if short.free < short.ask.number * short.ask.seating.asked[resource]:
            what += f" of {amount(resource, short.total)} free"
        return Cause.APART, what, (self._shortage(short),)

    @property
    def level(self) -> Level:
        """The largest domains there are to choose from."""
        return self.levels[-1]

    @property
    def noun(self) -> str:
        return self.level.noun

    def _short(self, seats_of: Callable[[View, Seating], Ints]) -> _Best | None:
        """The first role that no domain seats, and the domain that comes nearest."""
        for ask in self.asks:
            seats = self.level.sums(seats_of(self.view, ask.seating))
            if len(self.own):
                there = self.level.containing(self.own)
                seats = np.where(there == there.max(), seats, -1)
            at = int(np.argmax(seats))
            if seats[at] < ask.number:
                free, total = self._room(ask, self.level.domain(at))
                return _Best(ask, self.level.names[at], int(seats[at]), free, total)
        return None

    def _room(self, ask: Ask, rows: Rows) -> tuple[int, int]:
        """Free and in all, of what people should hear of first."""
        columns = self.view.columns
        rows = rows[ask.seating.eligibility.bars()[rows] == Bar.NONE]
        column = columns.column[by_gravity(ask.seating)[0][0]]
        total = columns.allocatable[rows, column]
        free = columns.free[rows, column]
        return int(np.maximum(free, 0).sum()), int(total.sum())

    def _numbers(self, short: _Best, has: str, there: int) -> str:
        resource, one = by_gravity(short.ask.seating)[0]
        if there < short.ask.number * one:
            return f"{has} {amount(resource, there)}"
        room = f"{has} room for {short.seats} of {short.ask.number}"
        return f"{room} ({amount(resource, there)} free in all)" if there == short.free else room

    def _shortage(self, short: _Best) -> Shortage:
        resource, one = by_gravity(short.ask.seating)[0]
        return Shortage(resource, short.ask.number * one, short.free, short.total)


def _if_empty(view: View, seating: Seating) -> Ints:
    columns = view.columns
    usable = seating.eligibility.bars() == Bar.NONE
    seats = np.zeros(len(columns.touched), np.int64)
    offered = columns.allocatable[: len(usable), seating.columns]
    seats[: len(usable)] = (offered // seating.amounts).min(axis=1) * usable
    return seats


def _asked(asks: list[Ask]) -> str:
    """`8 pods x 4 GPUs`, or by role where there are several."""
    parts = []
    for ask in asks:
        resource, one = by_gravity(ask.seating)[0]
        who = count(ask.number, "pod") if len(asks) == 1 else f"{ask.number} {ask.role}"
        parts.append(f"{who} x {words(resource, one)}")
    return " and ".join(parts)


def _unknown(request: Topology) -> str:
    if request.key:
        return (
            f"its pods must share one value of the node label {request.key},"
            " but none of today's nodes has it; label them"
        )
    tier = request.tier_name or f"{request.tier} or nearer"
    return (
        f"its pods must sit in one domain of tier {tier}, but nothing says which of today's nodes"
        " form one; label the nodes, or create HyperNodes"
    )
