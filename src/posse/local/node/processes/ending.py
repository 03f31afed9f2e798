"""The end of everything that runs in a home, whoever is left to ask for it."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

from posse.local.node.processes.attempts import running_in
from posse.local.node.processes.layout import pods_below
from posse.local.node.processes.removing import empty

LONGEST_GRACE = 20.0


async def end_all(pods: Path, longest: float = LONGEST_GRACE) -> None:
    """No container of these pods runs when this returns; each had its grace, up to `longest`."""
    running = [attempt for place in pods_below(pods) for attempt in running_in(place)]
    await asyncio.gather(
        *(attempt.end(min(float(attempt.launch.get("grace", 0.0)), longest)) for attempt in running)
    )


async def remove_all(pods: Path) -> None:
    await empty(pods)
    _drop(pods)


def _drop(directory: Path) -> None:
    with contextlib.suppress(OSError):  # what could not be removed has been said
        directory.rmdir()
