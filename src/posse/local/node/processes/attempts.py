"""One attempt of a container as an agent sees it: from outside, through its shim's files."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from posse.local.node.processes.layout import AttemptPlace, PodPlace
from posse.local.node.processes.leftovers import end_leftovers
from posse.local.node.processes.logs import last_lines
from posse.local.node.processes.shim import __main__ as shim_program
from posse.local.node.processes.shim import files
from posse.local.node.runtime import Exit

log = logging.getLogger(__name__)

SHIM = str(Path(shim_program.__file__).resolve())
LAST_WORDS = 4096
LOST = Exit(
    137,
    "ContainerStatusUnknown",
    "The container could not be located when its end was looked for: its shim was gone",
)


class Attempt:
    """A running attempt; `over` is set, and `on_over` called, once it has ended for certain."""

    def __init__(
        self,
        uid: str,
        place: AttemptPlace,
        on_over: Callable[[Attempt, Exit], None],
        on_bell: Callable[[Attempt], None],
    ) -> None:
        self.uid = uid
        self.place = place
        self.over = asyncio.Event()
        self.launch: dict[str, Any] = files.read_json(str(place.launch)) or {}
        self._on_over = on_over
        self._on_bell = on_bell
        self._bell: int | None = None
        self._ending: asyncio.Task[None] | None = None

    @property
    def container(self) -> str:
        return self.place.container

    @property
    def number(self) -> int:
        return self.place.number

    @property
    def warden(self) -> int:
        """The process above all others of the container; 0 while there is none."""
        return int((files.read_json(str(self.place.state)) or {}).get("warden", 0))

    def watch(self) -> bool:
        """Be told when the shim is gone; False where it is gone already."""
        path = self.place.path / files.BELL
        try:
            bell = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        # The shim opens the bell before it takes its lock: if the lock is held now, its end of the
        # bell is open as well, and the kernel will tell when that is not so any more.
        if not self.place.alive():
            os.close(bell)
            return False
        self._bell = bell
        asyncio.get_running_loop().add_reader(bell, self._rung)
        return True

    def unwatch(self) -> None:
        if self._bell is not None:
            asyncio.get_running_loop().remove_reader(self._bell)
            os.close(self._bell)
            self._bell = None

    def order(self, words: dict[str, Any]) -> bool:
        """Tell the shim something; False where nobody listens."""
        try:
            control = os.open(
                self.place.path / files.CONTROL, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC
            )
        except OSError:
            return False
        try:
            os.write(control, json.dumps(words).encode() + b"\n")
        except OSError as error:
            log.warning("%s takes no orders: %s", self.place.path, error)
            return False
        finally:
            os.close(control)
        return True

    async def end(self, grace: float, patience: float = 15.0) -> None:
        """Nothing of it runs when this returns."""
        if self._bell is None and not self.watch():
            self.conclude()
        self.order({"stop": grace})
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace + patience):
                await self.over.wait()
                return
        log.warning("the shim in %s did not end its container and is killed", self.place.path)
        self.kill_shim()
        await self.over.wait()

    def kill_shim(self) -> None:
        """Only while its lock is held is the pid that it wrote its own."""
        pid = int((files.read_json(str(self.place.state)) or {}).get("shim", 0))
        if pid and self.place.alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def conclude(self) -> None:
        """The shim is gone: find out how it ended, and tell."""
        if self._ending is None:
            self._ending = asyncio.create_task(self._conclude())

    def _rung(self) -> None:
        assert self._bell is not None
        try:
            rung = os.read(self._bell, 4096)
        except BlockingIOError:
            return
        if rung:
            self._on_bell(self)
            return
        self.unwatch()
        self.conclude()

    async def _conclude(self) -> None:
        try:
            how = read_exit(self.place, self.launch)
            if how is None:
                mark = str((self.launch.get("env") or {}).get("POSSE_CONTAINER", ""))
                await end_leftovers(mark)
                how = LOST
                with contextlib.suppress(OSError):
                    write_exit(self.place, how)
        except Exception:  # an end that cannot be told properly is told all the same
            log.exception("%s", self.place.path)
            how = LOST
        self.over.set()
        self._on_over(self, how)


def running_in(place: PodPlace) -> list[Attempt]:
    """Watched attempts of a pod of which nobody has to be told."""
    attempts = [Attempt(place.uid, at, lambda *_: None, lambda _: None) for at in place.latest()]
    return [attempt for attempt in attempts if attempt.watch()]


async def spawn(place: AttemptPlace) -> str:
    """Start the shim of a directory; the answer is its complaint, empty when it runs."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        "-S",
        SHIM,
        str(place.path),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        env={},
        cwd="/",
    )
    _, complaint = await process.communicate()
    if process.returncode == 0:
        return ""
    return complaint.decode("utf-8", "replace").strip() or "the shim could not be started"


def read_exit(place: AttemptPlace, launch: dict[str, Any]) -> Exit | None:
    """How the attempt ended, with its last words; None where nobody wrote it down."""
    said = files.read_json(str(place.exit))
    if said is None:
        return None
    code, message = int(said["code"]), str(said.get("message") or "")
    return Exit(
        code,
        str(said.get("reason") or ""),
        message or _last_words(place, launch, failed=code != 0),
        said.get("started_at"),
        said.get("finished_at"),
    )


def write_exit(place: AttemptPlace, how: Exit) -> None:
    words = {"code": how.code, "reason": how.reason, "message": how.message}
    files.write_json(str(place.exit), words)


def _last_words(place: AttemptPlace, launch: dict[str, Any], *, failed: bool) -> str:
    try:
        descriptor = os.open(place.last_words, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        said = b""
    else:
        with os.fdopen(descriptor, "rb") as file:
            said = file.read(LAST_WORDS)
    if not said and failed and launch.get("termination_policy") == "FallbackToLogsOnError":
        said = last_lines(place.log, lines=80, size=2048)
    return said.decode("utf-8", "replace")
