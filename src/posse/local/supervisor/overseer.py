"""The supervisor of one home: starts the cluster in order, keeps it running, ends it in order."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Sequence

from posse.kube.connection import Connection
from posse.kube.errors import KubeError
from posse.local.node.processes.ending import end_all
from posse.local.supervisor.connecting import connect
from posse.local.supervisor.errors import UNABLE, ClusterError
from posse.local.supervisor.home import Home
from posse.local.supervisor.logfiles import last_words
from posse.local.supervisor.options import Options
from posse.local.supervisor.preparing import prepare
from posse.local.supervisor.readiness import missing
from posse.local.supervisor.states import Address, ServiceState, State
from posse.local.supervisor.supervision import Supervision, environment
from posse.world import World

log = logging.getLogger(__name__)

POLL = 0.05
GLANCE = 1.0
LOCK = "supervisor"
SERVICES = ("apiserver", "scheduler", "controllers", "core", "node")


class Supervisor:
    """`program` is the command to which a service's name and `--home` are appended."""

    def __init__(self, home: Home, world: World, program: Sequence[str]) -> None:
        options = home.load(home.options, Options)
        if options is None:
            raise ClusterError(f"{home.path} holds no cluster; run `posse up`")
        self._home = home
        self._world = world
        self._options = options
        self._program = tuple(program)
        self._began = world.monotonic()
        self._state = State(os.getpid())
        self._address: Address | None = None
        self._unable: asyncio.Future[str] | None = None
        self._supervision = Supervision(
            world,
            argv=lambda service: (*self._program, service, "--home", str(home.path)),
            log_of=home.log,
            environment=environment(home.path, os.environ),
            changed=self._tell,
        )

    async def run(self, on_ready: Callable[[], None] | None = None) -> None:
        """Until cancelled; then everything is stopped before it returns."""
        with self._home.holding(LOCK) as ours, self._home.watching():
            if not ours:
                raise ClusterError(f"a cluster is already running in {self._home.path}")
            self._home.address.unlink(missing_ok=True)
            self._unable = asyncio.get_running_loop().create_future()
            self._tell()
            try:
                async with asyncio.TaskGroup() as tasks:
                    giving_up = tasks.create_task(self._give_up(self._unable))
                    tasks.create_task(self._look_after_home())
                    await self._bring_up(tasks, on_ready)
                    giving_up.cancel()
            except BaseExceptionGroup as group:
                reasons = group.subgroup(ClusterError)
                raise _first(reasons) if reasons is not None else group from None
            finally:
                await self._supervision.stop()
                await end_all(self._home.pods)
                self._home.state.unlink(missing_ok=True)

    async def _give_up(self, unable: asyncio.Future[str]) -> None:
        """A service that cannot work keeps a cluster from ever being ready: say so at once."""
        service = await unable
        raise ClusterError(last_words(self._home.log(service)) or f"the {service} cannot run")

    async def _look_after_home(self) -> None:
        """Files that others read are mended. Whoever deletes the home wants no cluster in it."""
        lock = self._home.lock(LOCK)
        ours = lock.stat().st_ino
        while lock.exists() and lock.stat().st_ino == ours:
            self._mend()
            await asyncio.sleep(GLANCE)
        raise ClusterError(f"{self._home.path} is gone, and the cluster with it")

    def _mend(self) -> None:
        home = self._home
        if home.load(home.state, State) is None:
            self._tell()
        try:
            if home.load(home.options, Options) is None:
                home.save(home.options, self._options)
            if self._address is not None and home.load(home.address, Address) is None:
                home.save(home.address, self._address)
        except OSError as error:
            log.warning("a file could not be mended: %s", error)

    async def _bring_up(
        self, tasks: asyncio.TaskGroup, on_ready: Callable[[], None] | None
    ) -> None:
        first, *others = SERVICES
        self._supervision.start(first)
        connection = await self._reach(first)
        try:
            await self._prepare(connection)
            for service in others:
                self._supervision.start(service)
            tasks.create_task(self._supervision.failed())
            await self._until_ready(connection)
        finally:
            await connection.close()
        self._say(ready=True)
        log.info("ready")
        if on_ready is not None:
            on_ready()

    async def _reach(self, first: str) -> Connection:
        self._say(failing=first, problem="the API server does not listen")
        self._address = await self._home.listening()
        return connect(self._home, self._address, "admin", self._world)

    async def _prepare(self, connection: Connection) -> None:
        while True:
            try:
                await prepare(connection)
            except KubeError as error:
                self._say(failing="apiserver", problem=f"the API server refused: {error}")
                log.warning("preparing the cluster: %s", error)
                await asyncio.sleep(POLL * 4)
            else:
                return

    async def _until_ready(self, connection: Connection) -> None:
        identity = self._home.name(self._world)
        names = self._options.names()
        while True:
            # The moment of our start on today's wall clock, which may have been set since.
            began = self._world.now() - (self._world.monotonic() - self._began)
            lack = await missing(
                connection, self._world, identity=identity, nodes=names, since=began
            )
            if lack is None:
                return
            self._say(failing=lack.service, problem=lack.what)
            await asyncio.sleep(POLL)

    def _say(self, *, ready: bool = False, failing: str = "", problem: str = "") -> None:
        if (ready, failing, problem) != (
            self._state.ready,
            self._state.failing,
            self._state.problem,
        ):
            self._state = State(os.getpid(), (), ready, failing, problem)
            self._tell()

    def _tell(self) -> None:
        services = tuple(
            ServiceState(c.name, c.pid, c.restarts, c.since, c.exit_code)
            for c in self._supervision.children.values()
        )
        for child in self._supervision.children.values():
            ended = child.pid == 0 and child.exit_code == UNABLE
            if ended and self._unable is not None and not self._unable.done():
                self._unable.set_result(child.name)
        state = self._state
        told = State(state.pid, services, state.ready, state.failing, state.problem)
        try:
            self._home.save(self._home.state, told)
        except OSError as error:  # a full disk must not end what runs
            log.warning("the state could not be written: %s", error)


def _first(group: BaseExceptionGroup[ClusterError]) -> BaseException:
    error = group.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error
