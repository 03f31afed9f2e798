"""An HTTP server as one part of a program: it leaves signals alone, and ends when it is told."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator

import uvicorn


class PartServer(uvicorn.Server):
    """Signals belong to the program, not to one of its parts."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def until_cancelled(self, bound: socket.socket) -> None:
        """Serves on a bound socket; what is under way may then end as the configuration says."""
        serving = asyncio.ensure_future(self.serve(sockets=[bound]))
        try:
            await asyncio.shield(serving)
        finally:
            self.should_exit = True
            await serving
