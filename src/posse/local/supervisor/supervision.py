"""Processes that are kept running.

A service that ends is started again after a pause that doubles while it keeps ending, and is short
again once it has lived for a while. Stopping goes in the reverse order of starting: whoever writes
stops before whoever stores.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from asyncio.subprocess import PIPE, STDOUT, Process
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from posse.local.supervisor import lifeline
from posse.local.supervisor.logfiles import BoundedLog
from posse.world import World

log = logging.getLogger(__name__)

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 5.0
SETTLED_AFTER = 30.0
GRACE = 10.0

# What a service may inherit; nothing else of the user's environment reaches it.
PASSED_ON = ("HOME", "LANG", "LC_ALL", "PATH", "PYTHONPATH", "TMPDIR", "TZ", "USER")


@dataclass(slots=True)
class Child:
    """One service as it stands."""

    name: str
    pid: int = 0
    restarts: int = 0
    since: float = 0.0  # wall seconds of its last start
    exit_code: int | None = None  # of its last end; negative: the signal

    @property
    def running(self) -> bool:
        return self.pid != 0


def environment(home: Path, inherited: Mapping[str, str]) -> dict[str, str]:
    kept = {name: inherited[name] for name in PASSED_ON if name in inherited}
    return {**kept, "POSSE_HOME": str(home), lifeline.VARIABLE: "stdin"}


class Supervision:
    """`argv` gives the command of a service; `changed` is called whenever a child has changed."""

    def __init__(
        self,
        world: World,
        *,
        argv: Callable[[str], Sequence[str]],
        log_of: Callable[[str], Path],
        environment: Mapping[str, str],
        changed: Callable[[], None],
    ) -> None:
        self._world = world
        self._argv = argv
        self._log_of = log_of
        self._environment = dict(environment)
        self._changed = changed
        self._keepers: dict[str, asyncio.Task[None]] = {}
        self.children: dict[str, Child] = {}

    def start(self, name: str) -> None:
        """Keep that service running from now on."""
        child = self.children[name] = Child(name)
        self._keepers[name] = asyncio.create_task(self._keep(child), name=f"keep {name}")

    async def failed(self) -> None:
        """Returns, by raising, when the keeping itself has failed."""
        if not self._keepers:
            return
        done, _ = await asyncio.wait(self._keepers.values(), return_when=asyncio.FIRST_COMPLETED)
        for keeper in done:
            keeper.result()

    async def stop(self) -> None:
        """Stop all, the last started first; returns when no process is left."""
        for name in reversed(list(self._keepers)):
            keeper = self._keepers.pop(name)
            keeper.cancel()
            await asyncio.gather(keeper, return_exceptions=True)

    async def _keep(self, child: Child) -> None:
        pause = FIRST_PAUSE
        output = BoundedLog(self._log_of(child.name))
        try:
            while True:
                began = self._world.monotonic()
                await self._live(child, output)
                if self._world.monotonic() - began >= SETTLED_AFTER:
                    pause = FIRST_PAUSE
                log.warning("%s ended with %s; again in %.1fs", child.name, child.exit_code, pause)
                await asyncio.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE)
                child.restarts += 1
        finally:
            output.close()

    async def _live(self, child: Child, output: BoundedLog) -> None:
        """One life of a service; cancelled, it stops the process first."""
        process = await asyncio.create_subprocess_exec(
            *self._argv(child.name),
            stdin=PIPE,
            stdout=PIPE,
            stderr=STDOUT,
            env=self._environment,
            cwd="/",
            start_new_session=True,
        )
        child.pid, child.since = process.pid, self._world.now()
        self._changed()
        copying = asyncio.create_task(_copy(process, output))
        try:
            await process.wait()
        except asyncio.CancelledError:
            await _end(process)
            raise
        finally:
            # Its last words are in the pipe; a grandchild that holds it open is not waited for.
            await asyncio.wait((copying,), timeout=1.0)
            copying.cancel()
            await asyncio.gather(copying, return_exceptions=True)
            child.pid, child.exit_code = 0, process.returncode
            self._changed()


async def _copy(process: Process, output: BoundedLog) -> None:
    assert process.stdout is not None
    while data := await process.stdout.read(65_536):
        try:
            output.write(data)
        except OSError as error:  # a full disk costs log lines, not the cluster
            log.warning("a log could not be written: %s", error)


async def _end(process: Process) -> None:
    """Ask, wait, insist. Shielded: being cancelled twice leaves no process behind."""

    async def ending() -> None:
        if process.returncode is None:
            process.terminate()
        try:
            async with asyncio.timeout(GRACE):
                await process.wait()
        except TimeoutError:
            log.warning("process %d did not stop in %.0fs and is killed", process.pid, GRACE)
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()

    await asyncio.shield(asyncio.create_task(ending()))
