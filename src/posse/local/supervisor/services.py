"""The services of a home, each as the whole of a process.

A service reads what it needs from the files of its home: no secret is ever on a command line. Each
holds a lock while it runs, so that two of a kind never work on one home, not even while the ones of
a killed supervisor are still ending.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import resource
import sys
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from posse.kube.connection import Connection
from posse.local.supervisor import lifeline
from posse.local.supervisor.connecting import connect
from posse.local.supervisor.errors import UNABLE, ClusterError
from posse.local.supervisor.home import Home
from posse.local.supervisor.options import Options
from posse.local.supervisor.states import Address
from posse.world import World

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from posse.kube.metering import ServiceMetrics
    from posse.local.node.processes.machine import Machine

log = logging.getLogger(__name__)

M = TypeVar("M", bound="ServiceMetrics")

PROGRAM = (sys.executable, "-m", "posse")
"""The command to which the name of a service and `--home PATH` are appended."""

PREDECESSOR = 20.0
MANY_FILES = 16_384

Main = Callable[[Home, World], Coroutine[Any, Any, None]]

USERS = {
    "admin": "system:admin",
    "scheduler": "system:posse-scheduler",
    "controllers": "system:posse-controllers",
    "core": "system:posse-core",
    "node": "system:node-agent",
}


async def apiserver(home: Home, world: World) -> None:
    from posse.local.apiserver.journal import JournalError
    from posse.local.apiserver.program import ApiServerConfig, run

    options = _options(home)
    # A restarted server has to be where the others, and the user's kubeconfig, look for it.
    before = home.load(home.address, Address)
    config = ApiServerConfig(
        data_dir=home.path,
        certificate=home.certificate("apiserver"),
        key=home.key("apiserver"),
        tokens={home.secret(user, world): name for user, name in USERS.items()},
        port=before.port if before is not None else options.port,
        authority=home.authority,
        kubelet_token=home.secret("kubelet", world),
        on_ready=lambda port: _tell_address(home, Address(port)),
    )
    try:
        await run(config, world)
    except JournalError as error:
        raise ClusterError(str(error)) from error
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        raise ClusterError(f"port {config.port} is taken by another program") from error


def _tell_address(home: Home, address: Address) -> None:
    """Nothing is written where it is known: a full disk keeps no server from coming back."""
    if home.load(home.address, Address) != address:
        home.save(home.address, address)


async def scheduler(home: Home, world: World) -> None:
    from posse.scheduler.choices import PolicyError
    from posse.scheduler.config import SchedulerConfig
    from posse.scheduler.program import run

    # The embedded cluster has no other scheduler, so every pod is this one's.
    config = SchedulerConfig(
        identity=home.name(world),
        claim_all=True,
        policy_file=home.policy if home.policy.exists() else None,
        capture=home.captures if home.captures.is_dir() else None,
    )
    async with AsyncExitStack() as stack:
        metrics = None
        if port := _options(home).metrics_port:
            from posse.scheduler.metrics import SchedulerMetrics

            metrics = await _observe(stack, home, world, port, SchedulerMetrics)
        try:
            await _connected(
                home, world, "scheduler", lambda c: run(config, c, world, observer=metrics)
            )
        except PolicyError as error:
            raise ClusterError(str(error)) from error


async def controllers(home: Home, world: World) -> None:
    from posse.controllers.program import ControllersConfig, run

    config = ControllersConfig(identity=home.name(world))
    async with AsyncExitStack() as stack:
        metrics = None
        if port := _options(home).metrics_port:
            from posse.controllers.metrics import ControllersMetrics

            metrics = await _observe(stack, home, world, port + 1, ControllersMetrics)
        await _connected(
            home, world, "controllers", lambda c: run(config, c, world, observer=metrics)
        )


async def _observe(
    stack: AsyncExitStack,
    home: Home,
    world: World,
    port: int,
    measure: Callable[[CollectorRegistry, World], M],
) -> M:
    """The numbers of a service, served on loopback as long as the stack lasts."""
    from prometheus_client import CollectorRegistry

    from posse.kube.expiry import CertificateDays
    from posse.kube.serving import Address, Diagnostics, serving

    registry = CollectorRegistry()
    metrics = measure(registry, world)
    certificates = {name: home.certificate(name).read_bytes for name in ("apiserver", "node")}
    CertificateDays(registry, world, {"authority": home.authority.read_bytes, **certificates})
    told = Diagnostics(registry, metrics.unready)
    try:
        await stack.enter_async_context(serving(told, Address(port=port)))
    except OSError as error:
        raise ClusterError(str(error)) from error
    return metrics


async def core(home: Home, world: World) -> None:
    from posse.local.core.program import CoreConfig, run

    await _connected(home, world, "core", lambda c: run(CoreConfig(), c, world))


async def node(home: Home, world: World) -> None:
    from posse.local.node.program import NodeConfig, run

    options = _options(home)
    machine = await _this_machine(home, options, world) if options.machine else None
    config = NodeConfig(
        nodes=tuple(options.manifests()) if machine is None else (machine.node,),
        token=home.secret("kubelet", world),
        serve=True,
        certificate=home.certificate("node"),
        key=home.key("node"),
    )

    async def serve(connection: Connection) -> None:
        runtime = None if machine is None else machine.runtime(connection, world)
        await run(config, connection, world, runtime=runtime)

    with home.watching():
        await _connected(home, world, "node", serve)


async def _this_machine(home: Home, options: Options, world: World) -> Machine:
    from posse.local.node.processes.isolation.choosing import IsolationError, choose
    from posse.local.node.processes.machine import Machine, survey

    with home.watching():
        private = [Path(path) for path in options.private]
        try:
            isolation = await choose(options.isolation, world, home.path, private, home.watch)
        except IsolationError as error:
            raise ClusterError(str(error)) from error
    return Machine(
        node=survey(options.machine, home.path, isolation.name),
        isolation=isolation,
        home=home.path,
        lifeline=home.watch,
        allowed_host_paths=tuple(Path(path) for path in options.allow_host_paths),
        api_server=("127.0.0.1", (await home.listening()).port),
    )


MAINS: dict[str, Main] = {
    "apiserver": apiserver,
    "scheduler": scheduler,
    "controllers": controllers,
    "core": core,
    "node": node,
}


async def main(service: str, home: Path, world: World) -> None:
    """One service of a home, until it is told to stop or its supervisor is gone."""
    place = Home(home).absolute()
    busy = f"another {service} of {place.path} is still running"
    async with place.waiting_for(service, PREDECESSOR, busy):
        await lifeline.hold(MAINS[service](place, world))


async def supervise(home: Path, world: World, program: Sequence[str] = PROGRAM) -> None:
    """The supervisor of a home whose options have been written by `up`."""
    from posse.local.supervisor.overseer import Supervisor

    place = Home(home).absolute()
    await lifeline.hold(Supervisor(place, world, program).run())


def run(service: str, home: Path, program: Sequence[str] = PROGRAM) -> int:
    """The whole process of a service, or of the supervisor; returns its exit code."""
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        force=True,
    )
    os.umask(0o077)
    _allow_many_files()
    world = World.real()
    try:
        if service == "supervise":
            asyncio.run(supervise(home, world, program))
        else:
            with asyncio.Runner(loop_factory=_loop_factory()) as runner:
                runner.run(main(service, home, world))
    except ClusterError as error:
        log.error("%s", error)
        return UNABLE
    except Exception:  # the last line of the log says why a process ended
        log.exception("%s failed", service)
        return 1
    return 0


def _allow_many_files() -> None:
    """Every watch is a socket, and many systems start with room for a few hundred."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MANY_FILES if hard == resource.RLIM_INFINITY else min(MANY_FILES, hard)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError) as error:
        log.warning("no more than %d files can be open: %s", soft, error)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop


def _options(home: Home) -> Options:
    options = home.load(home.options, Options)
    if options is None:
        raise ClusterError(f"{home.path} holds no cluster; run `posse up`")
    return options


async def _connected(
    home: Home, world: World, user: str, use: Callable[[Connection], Awaitable[None]]
) -> None:
    connection = connect(home, await home.listening(), user, world)
    try:
        await use(connection)
    finally:
        await connection.close()
