"""Whether something more urgent is being written, so that what can wait lets it go first."""

from __future__ import annotations

import asyncio
from contextlib import suppress

# Seconds without anything urgent that make a lull: between two pieces of one burst there is less.
SETTLES = 0.05


class Lull:
    """Quiet while nobody is busy; whoever waits for quiet waits no longer than it can bear."""

    def __init__(self) -> None:
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._busy: set[str] = set()
        self._settling: asyncio.TimerHandle | None = None

    def end(self, who: str) -> None:
        """`who`: a name for what is urgent."""
        self._busy.add(who)
        self._quiet.clear()
        if self._settling is not None:
            self._settling.cancel()
            self._settling = None

    def begin(self, who: str) -> None:
        """As far as this one is concerned."""
        self._busy.discard(who)
        if not self._busy and not self._quiet.is_set() and self._settling is None:
            self._settling = asyncio.get_running_loop().call_later(SETTLES, self._quiet.set)

    async def wait(self, deadline: float) -> bool:
        """Until it is quiet or, by the loop's clock, the deadline has come: whether it is quiet."""
        if not self._quiet.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout_at(deadline):
                    await self._quiet.wait()
        return self._quiet.is_set()
