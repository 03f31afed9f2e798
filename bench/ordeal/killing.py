"""kill -9 of whatever runs, at any moment."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections import Counter
from contextlib import suppress
from pathlib import Path

from posse.local.supervisor.home import Home
from posse.local.supervisor.options import Options
from posse.local.supervisor.overseer import SERVICES
from posse.local.supervisor.starting import up
from posse.local.supervisor.states import State
from posse.world import World

SUPERVISOR = "supervisor"


class Killer:
    """A killed service is started again by its supervisor; a killed supervisor, by us."""

    def __init__(
        self,
        home: Home,
        options: Options,
        kubeconfig: Path,
        chance: random.Random,
        *,
        pause: float,
        supervisors: float,
    ) -> None:
        self.kills: Counter[str] = Counter()
        self._home = home
        self._options = options
        self._kubeconfig = kubeconfig
        self._chance = chance
        self._pause = pause
        self._supervisors = supervisors

    async def start(self) -> None:
        await up(self._home, self._options, World.real(), kubeconfig=self._kubeconfig)

    async def run(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            await asyncio.sleep(self._chance.expovariate(1 / self._pause))
            if self._chance.random() < self._supervisors:
                await self._kill_supervisor()
            else:
                self._kill_services(self._chance.sample(SERVICES, self._chance.choice((1, 1, 2))))

    def _kill_services(self, names: list[str]) -> None:
        state = self._home.load(self._home.state, State)
        for service in state.services if state is not None else ():
            if service.name in names and service.pid:
                with suppress(ProcessLookupError):
                    os.kill(service.pid, signal.SIGKILL)
                    self.kills[service.name] += 1

    async def _kill_supervisor(self) -> None:
        state = self._home.load(self._home.state, State)
        assert state is not None
        os.kill(state.pid, signal.SIGKILL)
        os.waitpid(state.pid, 0)  # noqa: ASYNC222 it is dead already
        self.kills[SUPERVISOR] += 1
        await self.start()


def processes_of(home: Home) -> list[int]:
    """Every process that names this home on its command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):
                if str(home.path).encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
    return [pid for pid in found if pid != os.getpid()]
