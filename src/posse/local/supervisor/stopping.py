"""`down`: nothing of the cluster runs when this returns, and the user's context is back."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import msgspec

from posse.kube.config import ConfigError
from posse.local.node.processes.ending import end_all, remove_all
from posse.local.supervisor import contexts
from posse.local.supervisor.errors import ClusterError
from posse.local.supervisor.home import Home, until
from posse.local.supervisor.overseer import LOCK, SERVICES
from posse.local.supervisor.states import State

PATIENCE = 60.0
LAST_MOMENT = 5.0


class Stopped(msgspec.Struct, frozen=True):
    was_running: bool
    purged: bool
    left: tuple[str, ...] = ()
    """What a purge left in the home: it is the user's."""


async def down(home: Home, *, purge: bool = False) -> Stopped:
    """Stop the cluster if it runs. `purge` deletes what it kept; what a user put there, or had
    recorded, stays."""
    if not home.path.exists():
        return Stopped(False, False)
    home.prepare()
    busy = f"another `up` or `down` of {home.path} has not ended; try again"
    async with home.waiting_for("command", PATIENCE * 2, busy):
        state = home.load(home.state, State)
        running = home.held(LOCK)
        if running:
            pid = home.holder(LOCK) or (state.pid if state is not None else None)
            if pid is None:
                raise ClusterError(f"a supervisor runs in {home.path} but says not who it is")
            await end_supervisor(home, pid)
        await services_gone(home)
        await end_all(home.pods)
        complaint = _put_contexts_back(home)
        for path in (home.state, home.address):
            path.unlink(missing_ok=True)
        if purge:
            await remove_all(home.pods)
            _purge(home)
    left = _left(home) if purge else ()
    if complaint:
        raise ClusterError(f"the cluster has stopped, but its context is left: {complaint}")
    return Stopped(running, purge, left)


async def end_supervisor(home: Home, pid: int) -> None:
    """SIGTERM, patience, SIGKILL; its services end with it either way."""
    for number, patience in ((signal.SIGTERM, PATIENCE), (signal.SIGKILL, 10.0)):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            break
        if await _free(home, LOCK, patience):
            break
    # The lock is released a moment before the process is gone.
    await _within(LAST_MOMENT, lambda: _gone(pid))


def _put_contexts_back(home: Home) -> str:
    """A kubeconfig that cannot be edited keeps nothing else from being stopped and purged."""
    try:
        contexts.remove(home)
    except ConfigError as error:
        return str(error)
    return ""


async def services_gone(home: Home) -> None:
    """A service whose supervisor was killed needs a moment to notice."""
    for service in SERVICES:
        if not await _free(home, service, 15.0):
            raise ClusterError(f"the {service} of {home.path} has not ended; try again")


async def _free(home: Home, lock: str, seconds: float) -> bool:
    return await _within(seconds, lambda: not home.held(lock))


async def _within(seconds: float, holds: Callable[[], bool]) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await until(holds)
    except TimeoutError:
        return False
    return True


def _gone(pid: int) -> bool:
    """The process has ended; if it is this one's child, nobody else will reap it."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return not _alive(pid)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        stat = Path(f"/proc/{pid}/stat").read_text()
    except ProcessLookupError:
        return False
    except OSError:  # no /proc here, or the process has just left it: the signal's word counts
        return not Path("/proc/self/stat").exists()
    return stat.rpartition(")")[2].split()[0] != "Z"


def _left(home: Home) -> tuple[str, ...]:
    return tuple(sorted(path.name for path in home.path.iterdir())) if home.path.exists() else ()


def _purge(home: Home) -> None:
    for directory in (home.pki, home.partial, home.path / "tokens", home.path / "logs"):
        shutil.rmtree(directory, ignore_errors=True)
    for path in (home.options, home.identity):
        path.unlink(missing_ok=True)
    for path in sorted(home.path.glob(f"{home.store.name}*")):
        path.unlink(missing_ok=True)
    shutil.rmtree(home.path / "locks", ignore_errors=True)
    if not any(home.path.iterdir()):
        home.path.rmdir()
