"""A World whose time is the event loop's and whose chance is a seed.

On a loop that jumps over idle time, hours pass in milliseconds; with the same seed, the same things
happen.
"""

from __future__ import annotations

import asyncio
import random

from posse.world import World

# A date that nobody mistakes for now.
EPOCH = 1_600_000_000.0


class LoopClock:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def now(self) -> float:
        return EPOCH + self._loop.time()

    def monotonic(self) -> float:
        return self._loop.time()


def virtual_world(seed: int = 0, loop: asyncio.AbstractEventLoop | None = None) -> World:
    return World(LoopClock(loop or asyncio.get_running_loop()), random.Random(seed))
