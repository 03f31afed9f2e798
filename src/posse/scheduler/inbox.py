"""What is to happen before the next cycle: events as they arrive, and dates that come."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_AT_A_TIME = 1000


class Inbox:
    def __init__(self) -> None:
        self._acts: deque[Callable[[], None]] = deque()
        self._woken = asyncio.Event()
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def post(self, act: Callable[[], None]) -> None:
        """Has `act` done when the next round begins, and a round begun."""
        self._acts.append(act)
        self._woken.set()

    def hears(self, apply: Callable[[T], None]) -> Callable[[T], None]:
        """A handler that has every change applied when the next round begins."""

        def hear(change: T) -> None:
            self.post(lambda: apply(change))

        return hear

    def wake(self) -> None:
        self._woken.set()

    def after(self, key: str, seconds: float, act: Callable[[], None]) -> None:
        """`act` after so many seconds, in place of what was to come under the same key."""
        if timer := self._timers.pop(key, None):
            timer.cancel()

        def fire() -> None:
            self._timers.pop(key, None)
            act()

        self._timers[key] = asyncio.get_running_loop().call_later(seconds, fire)

    async def news(self) -> None:
        """Returns when there is something to do; what comes from then on asks for another round."""
        await self._woken.wait()

    async def apply(self) -> None:
        self._woken.clear()
        applied = 0
        while self._acts:
            self._acts.popleft()()
            applied += 1
            if applied % _AT_A_TIME == 0:
                await asyncio.sleep(0)

    def close(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
