"""The loop: events in, a cycle a few milliseconds later, decisions out to be carried out.

There is no fixed period: an event, or a date that the engine has set itself, begins a round.
Changes wait in the inbox and reach the view between cycles only.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TypeVar

from posse.engine.cycle import cycle, wake_at
from posse.engine.decisions import Release, Seat, Start, Wait
from posse.engine.policy import Policy
from posse.engine.view import View
from posse.objects.groups import PodGroup
from posse.objects.kinds import POD
from posse.objects.pods import Pod
from posse.scheduler.committing import Committer, Order
from posse.scheduler.reading.quarantine import Records
from posse.scheduler.reading.reader import Reader
from posse.scheduler.releasing import REASON as RELEASED
from posse.scheduler.standing import SCHEDULED
from posse.scheduler.statuses import Statuses
from posse.world import World

T = TypeVar("T")

_log = logging.getLogger(__name__)

_SOONEST = 0.05
_STALE = 5.0
_FIRST_SETBACK = 1.0
_LONGEST_SETBACK = 60.0
_CHANGES_AT_A_TIME = 1000
_WAITS_AT_A_TIME = 32


class Loop:
    """Also the outbox of the committer: what really happened comes back as events do."""

    def __init__(
        self,
        view: View,
        reader: Reader,
        statuses: Statuses,
        events: Records,
        world: World,
        policy: Policy,
        *,
        debounce: float,
        before_round: Callable[[], Awaitable[None]],
    ) -> None:
        self._view = view
        self._reader = reader
        self._statuses = statuses
        self._events = events
        self._world = world
        self._policy = policy
        self._debounce = debounce
        self._before_round = before_round
        self._inbox: deque[Callable[[], None]] = deque()
        self._woken = asyncio.Event()
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._setbacks: dict[str, int] = {}

    def hears(self, apply: Callable[[T], None]) -> Callable[[T], None]:
        """A handler for a cache: the change is applied, by `apply`, when the next round begins."""

        def hear(change: T) -> None:
            self._inbox.append(lambda: apply(change))
            self._woken.set()

        return hear

    def wake(self) -> None:
        self._woken.set()

    async def run(self, committer: Committer) -> None:
        self._woken.set()
        try:
            while True:
                await self._woken.wait()
                await asyncio.sleep(self._debounce)
                self._woken.clear()
                await self._before_round()
                await self._round(committer)
        finally:
            for timer in self._timers.values():
                timer.cancel()

    async def _round(self, committer: Committer) -> None:
        applied = 0
        while self._inbox:
            self._inbox.popleft()()
            applied += 1
            if applied % _CHANGES_AT_A_TIME == 0:
                await asyncio.sleep(0)
        for gang in self._reader.refresh():
            self._statuses.touched(gang)
            if gang not in self._reader.musters:
                self._setbacks.pop(gang, None)
        told = 0
        for decision in cycle(self._view, self._policy, self._world.now()):
            match decision:
                case Start():
                    self._statuses.starts(decision.gang)
                    committer.submit(self._order(decision))
                    await asyncio.sleep(0)
                case Release():
                    committer.submit(self._order(decision))
                    await asyncio.sleep(0)
                case Wait():
                    self._statuses.waits(decision.gang, decision.verdict)
                    told += 1
                    if told % _WAITS_AT_A_TIME == 0:
                        await asyncio.sleep(0)
        date = wake_at(self._view, self._policy)
        if date is not None:
            self._after("", max(_SOONEST, date - self._world.now()), self.wake)

    def _order(self, decision: Start | Release) -> Order:
        muster = self._reader.musters.get(decision.gang)
        if muster is None:
            return Order(decision)
        return Order(decision, muster.terms, muster.ran)

    def _after(self, key: str, seconds: float, act: Callable[[], None]) -> None:
        if timer := self._timers.pop(key, None):
            timer.cancel()

        def fire() -> None:
            self._timers.pop(key, None)
            act()

        self._timers[key] = asyncio.get_running_loop().call_later(seconds, fire)

    def _later(self, act: Callable[[], None]) -> None:
        self._inbox.append(act)
        self._woken.set()

    # What the committer tells.

    def takes_pods(self, node: str) -> bool:
        return self._reader.takes_pods(node)

    def refute(self, uid: str) -> None:
        self._later(lambda: self._reader.refute(uid))

    def fact(self, pod: Pod) -> None:
        self._later(lambda: self._reader.fact(pod))

    def gone(self, uid: str) -> None:
        self._later(lambda: self._reader.gone(uid))

    def group(self, group: PodGroup) -> None:
        self._reader.wrote(group)
        self._woken.set()

    def abandoned(self, gang: str, why: str, awaited: int | None) -> None:
        """Nothing is decided about the gang until the cache has caught up, or has had the time."""
        _log.info("%s: not started: %s", gang, why)
        self._later(lambda: self._withhold(gang, why, awaited, _STALE))

    def failed(self, gang: str, why: str) -> None:
        """The first time it is simply decided again; then it stands back for longer and longer,
        and others go on."""
        _log.warning("%s: %s", gang, why)
        before = self._setbacks.get(gang, 0)
        self._setbacks[gang] = before + 1
        if before:
            pause = min(_LONGEST_SETBACK, _FIRST_SETBACK * 2 ** (before - 1))
            self._later(lambda: self._withhold(gang, why, None, self._world.jitter(pause)))

    def started(self, gang: str, seats: tuple[Seat, ...]) -> None:
        self._setbacks.pop(gang, None)
        nodes = len({seat.node for seat in seats})
        message = f"bound {_counted(len(seats), 'pod')} to {_counted(nodes, 'node')}"
        self._tell(gang, SCHEDULED, message, warning=False)

    def released(self, gang: str, why: str) -> None:
        self._tell(gang, RELEASED, why, warning=True)

    def _withhold(self, gang: str, why: str, awaited: int | None, seconds: float) -> None:
        if self._reader.withhold(gang, why, awaited):
            self._after(gang, seconds, lambda: self._later(lambda: self._reader.admit(gang)))

    def _tell(self, gang: str, reason: str, message: str, *, warning: bool) -> None:
        muster = self._reader.musters.get(gang)
        if muster is None:
            return
        if muster.group is not None:
            self._events.record(muster.group, reason, message, warning=warning, kind=muster.kind)
        elif muster.alone and (member := muster.only) is not None:
            self._events.record(member.pod, reason, message, warning=warning, kind=POD)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
