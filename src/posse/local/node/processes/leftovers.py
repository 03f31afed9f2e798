"""Processes of a container whose shim was killed: found by the mark in their environment.

The first process of a container ends all others when its shim is gone. This is for the case that
it was killed as well.
"""

from __future__ import annotations

import asyncio
import contextlib

import psutil

from posse.local.node.processes.launching import MARK

ROUNDS = 100
PAUSE = 0.05


async def end_leftovers(mark: str) -> None:
    """Returns when no process bears the mark, or when not even SIGKILL has helped for a while."""
    for _ in range(ROUNDS):
        left = marked(mark)
        if not left:
            return
        for process in left:
            with contextlib.suppress(psutil.Error):
                process.kill()
        await asyncio.sleep(PAUSE)


def marked(mark: str) -> list[psutil.Process]:
    if not mark:
        return []
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.environ().get(MARK) == mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found
