"""Whether something more urgent is being written, so that what can wait lets it go first."""

from __future__ import annotations

import asyncio
from contextlib import suppress


class Lull:
    """Quiet until somebody is busy; whoever waits for quiet waits no longer than it can bear."""

    def __init__(self) -> None:
        self._quiet = asyncio.Event()
        self._quiet.set()

    def end(self) -> None:
        self._quiet.clear()

    def begin(self) -> None:
        self._quiet.set()

    async def wait(self, deadline: float) -> None:
        """Until it is quiet or, by the loop's clock, the deadline has come."""
        if self._quiet.is_set():
            return
        with suppress(TimeoutError):
            async with asyncio.timeout_at(deadline):
                await self._quiet.wait()
