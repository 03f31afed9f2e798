"""The work queue: a key waits at most once and is worked on by at most one worker.

A key added while it is being worked on is taken again when that work is done, so no change is
missed and no two workers ever decide about the same object. Failed keys come back after a delay
that doubles with each failure; delayed adds carry deadlines and times to live.
"""

from __future__ import annotations

import asyncio
from typing import Generic, TypeVar

from posse.world import World

K = TypeVar("K")

FIRST_DELAY = 0.005
LONGEST_DELAY = 60.0


class WorkQueue(Generic[K]):
    def __init__(
        self,
        world: World,
        *,
        first_delay: float = FIRST_DELAY,
        longest_delay: float = LONGEST_DELAY,
    ) -> None:
        self._world = world
        self._first_delay = first_delay
        self._longest_delay = longest_delay
        self._ready: dict[K, None] = {}  # in order of arrival, without repetition
        self._active: dict[K, None] = {}
        self._again: dict[K, None] = {}  # added while active
        self._later: dict[K, asyncio.TimerHandle] = {}
        self._failures: dict[K, int] = {}
        self._arrival = asyncio.Event()

    def __len__(self) -> int:
        return len(self._ready)

    def add(self, key: K) -> None:
        """Have the key worked on as soon as a worker is free."""
        if key in self._active:
            self._again[key] = None
            return
        self._ready[key] = None
        self._arrival.set()

    def add_after(self, key: K, seconds: float) -> None:
        """Have the key worked on in `seconds`; of several such wishes the earliest counts."""
        if seconds <= 0:
            self.add(key)
            return
        loop = asyncio.get_running_loop()
        waiting = self._later.get(key)
        if waiting is not None:
            if waiting.when() <= loop.time() + seconds:
                return
            waiting.cancel()
        self._later[key] = loop.call_later(seconds, self._due, key)

    def retry(self, key: K, *, at_least: float = 0.0) -> float:
        """Bring a failed key back after its backoff, or `at_least` seconds; returns the delay."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        # The exponent is bounded before it is raised: a key may fail for weeks.
        delay = min(self._first_delay * 2 ** min(failures, 32), self._longest_delay)
        delay = max(self._world.jitter(delay), at_least)
        self.add_after(key, delay)
        return delay

    def forget(self, key: K) -> None:
        """The key succeeded: its next failure starts again with the shortest delay."""
        self._failures.pop(key, None)

    @property
    def failing(self) -> int:
        """How many keys have failed and not succeeded since."""
        return len(self._failures)

    def failures(self, key: K) -> int:
        return self._failures.get(key, 0)

    async def take(self) -> K:
        """The key that has waited longest; it is active until `done`."""
        while not self._ready:
            self._arrival.clear()
            await self._arrival.wait()
        key = next(iter(self._ready))
        del self._ready[key]
        self._active[key] = None
        return key

    def done(self, key: K) -> None:
        self._active.pop(key, None)
        if key in self._again:
            del self._again[key]
            self.add(key)

    def close(self) -> None:
        """Forget every delayed add; nothing fires after this."""
        for handle in self._later.values():
            handle.cancel()
        self._later.clear()

    def _due(self, key: K) -> None:
        del self._later[key]
        self.add(key)
