"""Directories that pods have filled, removed without holding anybody up.

A directory is moved aside at once, so that it is gone for everybody, and its contents go in a
process of their own: a pod may have left a million files, or modes that let nobody in.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from pathlib import Path

from posse.world import World

log = logging.getLogger(__name__)

TRASH = ".removed"


class Trash:
    def __init__(self, pods: Path, world: World) -> None:
        self._place = pods / TRASH
        self._world = world
        self._some = asyncio.Event()
        self._some.set()  # what an earlier agent left

    def throw(self, path: Path) -> None:
        self._place.mkdir(mode=0o700, parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            path.rename(self._place / f"{path.name}-{self._world.suffix(12)}")
            self._some.set()

    async def run(self) -> None:
        while True:
            await self._some.wait()
            self._some.clear()
            await empty(self._place)


async def empty(place: Path) -> None:
    """Remove everything in `place`. Links are removed, never followed."""
    for entry in _entries(place):
        for command in (("chmod", "-R", "u+rwX"), ("rm", "-rf")):
            process = await asyncio.create_subprocess_exec(
                *command,
                "--",
                str(entry),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
            )
            await process.wait()
        if entry.exists():
            log.warning("%s could not be removed", entry)


def _entries(place: Path) -> list[Path]:
    return sorted(place.iterdir()) if place.is_dir() else []
