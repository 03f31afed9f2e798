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

from posse.local.certificates import Authority, create_authority
from posse.local.supervisor import contexts, lifeline
from posse.local.supervisor.errors import ClusterError
from posse.local.supervisor.home import TOKENS, Home
from posse.local.supervisor.logfiles import LARGEST, rotate, tail
from posse.local.supervisor.options import Options
from posse.local.supervisor.overseer import LOCK, Supervisor
from posse.local.supervisor.services import PROGRAM
from posse.local.supervisor.states import Address, State
from posse.local.supervisor.stopping import end_supervisor
from posse.world import World

log = logging.getLogger(__name__)

CEILING = 120.0
POLL = 0.05
CERTIFICATE_DAYS = 3650


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
    busy = f"another `up` or `down` of {home.path} has not ended; try again"
    async with home.waiting_for("command", ceiling, busy):
        already = home.held(LOCK)
        if already:
            _compare(home, options)
            process = None
        else:
            _check_port(options.port)
            establish(home, options, world)
            process = _spawn(home, program)
        try:
            state, address = await _until_ready(home, process, ceiling)
        except BaseException:
            if process is not None:
                await _withdraw(home, process)
            raise
        file = contexts.add(home, address.server, select=select, kubeconfig=kubeconfig)
    return Started(address.server, state.pid, len(options.manifests()), already, file)


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
    if home.held(LOCK):
        raise ClusterError(f"a cluster is already running in {home.path}; run `posse down` first")
    _check_port(options.port)
    establish(home, options, world)
    ready = asyncio.Event()
    supervising = asyncio.create_task(Supervisor(home, world, program).run(ready.set))
    waiting = asyncio.create_task(ready.wait())
    try:
        await asyncio.wait((supervising, waiting), return_when=asyncio.FIRST_COMPLETED)
        address = home.load(home.address, Address)
        if ready.is_set() and address is not None:
            file = contexts.add(home, address.server, select=select, kubeconfig=kubeconfig)
            if on_ready is not None:
                nodes = len(options.manifests())
                on_ready(Started(address.server, os.getpid(), nodes, False, file))
        await supervising
    finally:
        for task in (waiting, supervising):
            task.cancel()
        await asyncio.gather(waiting, supervising, return_exceptions=True)
        contexts.remove(home)


def establish(home: Home, options: Options, world: World) -> None:
    """Write everything that the services read: options, certificates, tokens, identity."""
    try:
        home.state.unlink(missing_ok=True)
        home.save(home.options, options)
        home.name(world)
        for user in TOKENS:
            home.secret(user, world)
        _certify(home, world)
    except OSError as error:
        raise ClusterError(f"cannot write to {home.path}: {error.strerror or error}") from error


def _certify(home: Home, world: World) -> None:
    if not home.authority.exists():
        create_authority(world).store(home.pki)
    authority = Authority.load(home.pki, world)
    for service in ("apiserver", "node"):
        if home.certificate(service).exists() and home.key(service).exists():
            continue
        certificate, key = authority.issue(
            ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"],
            ["127.0.0.1"],
            days=CERTIFICATE_DAYS,
        )
        home.write(home.key(service), key)
        home.write(home.certificate(service), certificate)


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
                if process is not None and _ended(process):
                    raise ClusterError(
                        "the supervisor ended before the cluster was ready; "
                        f"see {home.log('supervisor')}",
                        tail(home.log("supervisor")),
                    )
                await asyncio.sleep(POLL)
    except TimeoutError:
        failing = state.failing if state is not None and state.failing else "supervisor"
        problem = state.problem if state is not None and state.problem else "it said nothing"
        raise ClusterError(
            f"the cluster is not ready after {ceiling:g}s: {problem}; see {home.log(failing)}",
            tail(home.log(failing)),
        ) from None


def _ended(process: int) -> bool:
    try:
        return os.waitpid(process, os.WNOHANG)[0] == process
    except ChildProcessError:
        return True


async def _withdraw(home: Home, process: int) -> None:
    """What could not be started is not left half-started."""
    if not _ended(process):
        await end_supervisor(home, process)
