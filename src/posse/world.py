"""What a service takes from outside itself: time, identity and chance.

Every service receives one World. The real one asks the operating system; a virtual one runs on the
event loop's clock and a seed, so that the whole system can be run twice and write the same bytes.
No other module may ask for the time or for a random number.
"""

from __future__ import annotations

import random
import time
import uuid
from dataclasses import dataclass
from typing import Protocol

# Kubernetes' alphabet for generated names: no vowels, so that no word appears by chance.
_SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


class Clock(Protocol):
    """Two readings of time that must never be mixed."""

    def now(self) -> float:
        """Seconds since the epoch: for timestamps that people and other programs read."""
        ...

    def monotonic(self) -> float:
        """Seconds that only grow: for durations, timeouts and the validity of a lease."""
        ...


class SystemClock:
    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()


@dataclass(frozen=True, slots=True)
class World:
    clock: Clock
    chance: random.Random

    @staticmethod
    def real() -> World:
        return World(SystemClock(), random.SystemRandom())

    def now(self) -> float:
        return self.clock.now()

    def monotonic(self) -> float:
        return self.clock.monotonic()

    def uid(self) -> str:
        return str(uuid.UUID(int=self.chance.getrandbits(128), version=4))

    def suffix(self, length: int = 5) -> str:
        """The tail of a generated name, as in `worker-x7k2p`."""
        return "".join(self.chance.choice(_SUFFIX_ALPHABET) for _ in range(length))

    def entropy(self, size: int) -> bytes:
        """Bytes for keys and tokens; unguessable in the real world."""
        return self.chance.getrandbits(size * 8).to_bytes(size, "big")

    def jitter(self, seconds: float) -> float:
        """`seconds` plus up to a tenth, so that many waiters do not wake as one."""
        return seconds * (1 + self.chance.random() / 10)
