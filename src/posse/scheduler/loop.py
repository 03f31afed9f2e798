"""The loop: events in, a cycle a few milliseconds later, decisions out to be carried out.

There is no fixed period: an event, or a date that the engine has set itself, begins a round. While
events keep coming, rounds keep a pace, so that their cost does not grow with the number of events.
Changes reach the view between cycles only, so it never moves under a deciding engine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Protocol

from posse.engine.cycle import cycle, wake_at
from posse.engine.decisions import Decision, Evict, Keep, Release, Start, Verdict, Wait
from posse.engine.policy import Policy
from posse.engine.view import View
from posse.scheduler.capturing import Capture
from posse.scheduler.committing import Order
from posse.scheduler.evicting import Eviction
from posse.scheduler.inbox import Inbox
from posse.scheduler.observing import Observer
from posse.scheduler.outcomes import Outcomes
from posse.scheduler.reading.reader import Reader
from posse.scheduler.suspecting import guarded
from posse.world import World

_SOONEST = 0.05
_WAITS_AT_A_TIME = 32


class Telling(Protocol):
    """Whom to tell how gangs stand."""

    def waits(self, gang: str, verdict: Verdict) -> None: ...

    def starts(self, gang: str) -> None: ...

    def touched(self, gang: str) -> None: ...


class Loop:
    def __init__(
        self,
        inbox: Inbox,
        view: View,
        reader: Reader,
        statuses: Telling,
        outcomes: Outcomes,
        submit: Callable[[Order], None],
        evict: Callable[[Eviction], None],
        keep: Callable[[Keep], None],
        world: World,
        policy: Policy,
        observer: Observer,
        *,
        debounce: float,
        pace: float,
        before_round: Callable[[], Awaitable[None]],
        capture: Capture | None = None,
    ) -> None:
        self._inbox = inbox
        self._view = view
        self._reader = reader
        self._statuses = statuses
        self._outcomes = outcomes
        self._submit = submit
        self._evict = evict
        self._keep = keep
        self._world = world
        self._policy = policy
        self._observer = observer
        self._debounce = debounce
        self._pace = pace
        self._before_round = before_round
        self._capture = capture
        # The engine's time is the wall's as it was when the term began, and never jumps.
        self._epoch = world.now() - world.monotonic()

    async def run(self) -> None:
        self._inbox.wake()
        try:
            earliest = self._world.monotonic()
            while True:
                await self._inbox.news()
                await asyncio.sleep(max(self._debounce, earliest - self._world.monotonic()))
                earliest = self._world.monotonic() + self._pace
                await self._before_round()
                await self._round()
        finally:
            self._inbox.close()

    async def _round(self) -> None:
        watch = self._observer.round()

        # 1. The view as the events have it.
        watch.enter("read")
        await self._inbox.apply()
        while touched := self._reader.refresh():
            for gang in touched:
                self._statuses.touched(gang)
                self._outcomes.looked_at(gang)
                if gang not in self._reader.musters:
                    self._outcomes.forget(gang)

        # 2. Decide. Binds and renewals go on between decisions.
        told = 0
        for decision in self._decide(watch.enter):
            match decision:
                case Start():
                    self._statuses.starts(decision.gang)
                    self._submit(self._order(decision))
                case Release():
                    self._submit(self._order(decision))
                    self._reader.let_go(decision.gang)
                    self._inbox.wake()
                case Evict():
                    for victim in decision.victims:
                        if victim.whole:
                            self._reader.let_go(victim.gang)
                    self._evict(self._eviction(decision))
                case Keep():
                    self._keep(decision)
                case Wait():
                    self._statuses.waits(decision.gang, decision.verdict)
                    told += 1
                    if told % _WAITS_AT_A_TIME:
                        continue
            watch.pause()
            await asyncio.sleep(0)
            watch.resume()
        watch.stop()

        # 3. Come back when the engine wants to, event or not.
        date = wake_at(self._view, self._policy)
        if date is not None:
            self._inbox.after("", max(_SOONEST, date - self._now()), self._inbox.wake)

    def _decide(self, enter: Callable[[str], None]) -> Iterator[Decision]:
        now = self._now()
        decisions = guarded(cycle(self._view, self._policy, now, enter), lambda: self._view.in_turn)
        return decisions if self._capture is None else self._capture.watch(now, decisions)

    def _now(self) -> float:
        return self._epoch + self._world.monotonic()

    def _eviction(self, decision: Evict) -> Eviction:
        musters = self._reader.musters
        terms = [
            None if (muster := musters.get(gang)) is None else muster.terms
            for gang in (decision.gang, *(victim.gang for victim in decision.victims))
        ]
        return Eviction(decision, terms[0], tuple(terms[1:]))

    def _order(self, decision: Start | Release) -> Order:
        muster = self._reader.musters.get(decision.gang)
        if muster is None:
            return Order(decision)
        return Order(decision, muster.terms, muster.ran or muster.whole)
