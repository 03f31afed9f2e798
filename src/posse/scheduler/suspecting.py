"""Gangs on which the engine failed: set aside for a while, so that all others go on.

A failure of the engine is a mistake in it, and ends the term: what was half decided is dropped, and
everything is listed and counted afresh. Begun again as it was, the next term would fail at the same
place, and nobody's job would start any more. So the gang that was being looked at is left out: its
pods take their room and nothing is decided on it until it is tried again. Where that does not help,
the failure is nobody's we know of, and the program ends with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from posse.engine.decisions import Decision
from posse.world import World

_FIRST = 600.0
_LONGEST = 21_600.0
# More of them at once, and it is not for the gangs that the engine fails.
_MOST = 16


class Stumble(Exception):
    """The engine failed, most likely over this gang; what it raised is the cause."""

    def __init__(self, gang: str, why: str) -> None:
        super().__init__(f"the engine failed over {gang or 'no gang in particular'}: {why}")
        self.gang = gang
        self.why = why


def guarded(decisions: Iterator[Decision], at: Callable[[], str]) -> Iterator[Decision]:
    """The same decisions; `at`: the gang that is being looked at."""
    try:
        yield from decisions
    except Exception as error:
        said = str(error)
        why = f"{type(error).__name__}: {said}" if said else type(error).__name__
        raise Stumble(at(), why) from error


@dataclass(frozen=True, slots=True)
class _Suspicion:
    why: str
    seconds: float
    until: float


class Suspects:
    def __init__(self, world: World) -> None:
        self._world = world
        self._gangs: dict[str, _Suspicion] = {}

    def suspect(self, stumble: Stumble) -> bool:
        """Set the gang aside, each time for longer; whether that can help."""
        now, known = self._world.monotonic(), self._gangs.get(stumble.gang)
        if not stumble.gang or (known is not None and known.until > now):
            return False
        if sum(1 for each in self._gangs.values() if each.until > now) >= _MOST:
            return False
        seconds = _FIRST if known is None else min(2 * known.seconds, _LONGEST)
        self._gangs[stumble.gang] = _Suspicion(stumble.why, seconds, now + seconds)
        return True

    def aside(self) -> dict[str, tuple[str, float]]:
        """Of each gang that is set aside now: what is said of it, and for how many seconds."""
        now = self._world.monotonic()
        return {
            gang: (
                f"the scheduler failed while it decided on it ({each.why}); that is a mistake of"
                f" the scheduler's, whose log says more; it is tried again every"
                f" {each.seconds / 60:.0f} minutes",
                each.until - now,
            )
            for gang, each in sorted(self._gangs.items())
            if each.until > now
        }
