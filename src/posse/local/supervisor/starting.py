"""`up`: a cluster that is ready when this returns, once, however often it is asked for."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from posse.local.supervisor import contexts, lifeline
from posse.local.supervisor.errors import UNABLE, ClusterError
from posse.local.supervisor.establishing import establish
from posse.local.supervisor.home import Home
from posse.local.supervisor.logfiles import LARGEST, last_words, rotate, tail
from posse.local.supervisor.options import Options
from posse.local.supervisor.overseer import LOCK, Supervisor
from posse.local.supervisor.services import PROGRAM
from posse.local.supervisor.states import Address, State
from posse.local.supervisor.stopping import end_supervisor, services_gone
from posse.world import World

log = logging.getLogger(__name__)

CEILING = 120.0
POLL = 0.05


class Started(msgspec.Struct, frozen=True):
    server: str
    pid: int  # the supervisor's
    nodes: int
    already: bool  # it was running when it was asked for
    kubeconfig: Path


async def up(
    home: Home,
    options: Options,
    world: World,
    *,
    select: bool = True,
    kubeconfig: Path | None = None,
    ceiling: float = CEILING,
    program: Sequence[str] = PROGRAM,
) -> Started:
    """Start the cluster of this home, or find it running as asked; raises ClusterError."""
    options.check()
    home.prepare()
    async with home.waiting_for("command", ceiling, _busy(home)):
        already = home.held(LOCK)
        if already:
            _compare(home, options)
            process = None
        else:
            await _make_ready(home, options, world, kubeconfig)
            process = _spawn(home, program)
        try:
            state, address = await _until_ready(home, process, ceiling)
            file = contexts.add(home, address.server, select=select, kubeconfig=kubeconfig)
        except BaseException:
            if process is not None:
                await _withdraw(home, process)
            raise
    return Started(address.server, state.pid, len(options.names()), already, file)


async def foreground(
    home: Home,
    options: Options,
    world: World,
    *,
    select: bool = True,
    kubeconfig: Path | None = None,
    on_ready: Callable[[Started], None] | None = None,
    program: Sequence[str] = PROGRAM,
) -> None:
    """The same cluster under this very process, until it is cancelled."""
    options.check()
    home.prepare()
    ready = asyncio.Event()
    waiting = asyncio.create_task(ready.wait())
    supervising: asyncio.Task[None] | None = None
    try:
        async with home.waiting_for("command", CEILING, _busy(home)):
            if home.held(LOCK):
                raise ClusterError(
                    f"a cluster is already running in {home.path}; run `posse down` first"
                )
            await _make_ready(home, options, world, kubeconfig)
            supervising = asyncio.create_task(Supervisor(home, world, program).run(ready.set))
            await asyncio.wait((supervising, waiting), return_when=asyncio.FIRST_COMPLETED)
            address = home.load(home.address, Address)
            if ready.is_set() and address is not None:
                file = contexts.add(home, address.server, select=select, kubeconfig=kubeconfig)
                if on_ready is not None:
                    nodes = len(options.names())
                    on_ready(Started(address.server, os.getpid(), nodes, False, file))
        await supervising
    finally:
        tasks = [waiting] if supervising is None else [waiting, supervising]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if supervising is not None:
            contexts.remove(home)


def _busy(home: Home) -> str:
    return f"another `up` or `down` of {home.path} has not ended; try again"


async def _make_ready(home: Home, options: Options, world: World, kubeconfig: Path | None) -> None:
    """Whatever can be found out before anything is started is found out here."""
    contexts.check(kubeconfig)
    # Those of a killed supervisor need a moment to notice, and to let go of their port.
    await services_gone(home)
    _check_port(options.port)
    establish(home, options, world)


def _compare(home: Home, options: Options) -> None:
    running = home.load(home.options, Options)
    address = home.load(home.address, Address)
    if running is None:
        raise ClusterError(f"{home.options} cannot be read; run `posse down` first")
    difference = options.difference(running, address.port if address else running.port)
    if difference is not None:
        raise ClusterError(f"a cluster is running and {difference}; run `posse down` first")


def _check_port(port: int) -> None:
    """A taken port is said before anything is started."""
    if port == 0:
        return
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            why = "is taken by another program" if error.errno == errno.EADDRINUSE else str(error)
            raise ClusterError(
                f"port {port} {why}; choose another with --port, or 0 for any free one"
            ) from error


def _spawn(home: Home, program: Sequence[str]) -> int:
    """The supervisor as a process of its own session, which no terminal can reach."""
    output = home.log("supervisor")
    if output.exists() and output.stat().st_size > LARGEST:
        rotate(output)
    command = [*program, "supervise", "--home", str(home.path)]
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(output), flags, 0o600),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    environment = {**os.environ, "POSSE_HOME": str(home.path)}
    environment.pop(lifeline.VARIABLE, None)
    try:
        return os.posix_spawn(command[0], command, environment, file_actions=actions, setsid=True)
    except OSError as error:
        raise ClusterError(f"cannot start {command[0]}: {error.strerror or error}") from error


async def _until_ready(home: Home, process: int | None, ceiling: float) -> tuple[State, Address]:
    state: State | None = None
    try:
        async with asyncio.timeout(ceiling):
            while True:
                state = home.load(home.state, State)
                address = home.load(home.address, Address)
                if state is not None and state.ready and address is not None:
                    return state, address
                if process is None:
                    if not home.held(LOCK):
                        raise ClusterError("the cluster that was starting has ended; try again")
                elif (code := _exit_code(process)) is not None:
                    raise _ended_early(home, code)
                await asyncio.sleep(POLL)
    except TimeoutError:
        failing = state.failing if state is not None and state.failing else "supervisor"
        problem = state.problem if state is not None and state.problem else "it said nothing"
        raise ClusterError(
            f"the cluster is not ready after {ceiling:g}s: {problem}; see {home.log(failing)}",
            tail(home.log(failing)),
        ) from None


def _ended_early(home: Home, code: int) -> ClusterError:
    file = home.log("supervisor")
    if code == UNABLE:
        return ClusterError(last_words(file) or f"the cluster cannot run; see {file}")
    return ClusterError(
        f"the supervisor ended before the cluster was ready; see {file}", tail(file)
    )


def _exit_code(process: int) -> int | None:
    """Of a child that has ended."""
    try:
        pid, status = os.waitpid(process, os.WNOHANG)
    except ChildProcessError:
        return -1
    return os.waitstatus_to_exitcode(status) if pid == process else None


async def _withdraw(home: Home, process: int) -> None:
    """What could not be started is not left half-started."""
    if _exit_code(process) is None:
        await end_supervisor(home, process)
    home.address.unlink(missing_ok=True)
