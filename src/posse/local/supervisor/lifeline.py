"""No service outlives its supervisor, however that one ends.

Each service holds the reading end of a pipe as its standard input; the supervisor holds the other
and never writes. When the supervisor is gone, killed or not, the kernel closes it, the service
reads the end and stops. On Linux the kernel is also asked to kill the service then, for the case
that it is too busy to read.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys
from collections.abc import Coroutine
from typing import Any

VARIABLE = "POSSE_LIFELINE"
_PR_SET_PDEATHSIG = 1


async def hold(service: Coroutine[Any, Any, None]) -> None:
    """Run a service until it ends, is told to stop by a signal, or loses its supervisor."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    held = os.environ.get(VARIABLE) == "stdin"
    if held:
        _die_with_parent()
        loop.add_reader(sys.stdin.fileno(), _listen, sys.stdin.fileno(), stop)
    working = asyncio.create_task(service)
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
    finally:
        if held:
            loop.remove_reader(sys.stdin.fileno())
        stopping.cancel()
        if not working.done():
            working.cancel()
        await asyncio.gather(working, stopping, return_exceptions=True)
    if not working.cancelled() and (error := working.exception()) is not None:
        raise error


def _listen(descriptor: int, stop: asyncio.Event) -> None:
    try:
        data = os.read(descriptor, 4096)
    except BlockingIOError:
        return
    except OSError:
        data = b""
    if not data:
        asyncio.get_running_loop().remove_reader(descriptor)
        stop.set()


def _die_with_parent() -> None:
    if sys.platform != "linux":
        return
    library = ctypes.CDLL(None, use_errno=True)
    if hasattr(library, "prctl"):
        library.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
