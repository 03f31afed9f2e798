"""One contender, one workload, one mode: what it took.

Online, the scheduler runs and has bound a first small gang; the clock runs from the first request
that creates something to the last bind. In backlog, every pod exists before the scheduler starts;
the rate is that from the first bind to the last. All times are those at which one and the same
watch of the pods tells of them.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import Enum
from pathlib import Path

import msgspec
import psutil

from bench.peers import workload
from bench.peers.contenders import NULL, Contender
from bench.peers.ground import AT_ONCE, Ground
from bench.peers.workload import NAMESPACE, Gangs
from posse.kube import Cache, Change
from posse.objects.kinds import POD
from posse.objects.meta import ObjectMeta
from tests.kubernetes.programs import Program

_WARM_UP = Gangs(1, 2)
_WARM_WITHIN = 60.0
# What a scheduler still has to write after its last bind counts as its work.
_AFTERMATH = 1.5
_GANGS_AT_ONCE = 4


class Mode(Enum):
    ONLINE = "online"
    BACKLOG = "backlog"


class Unmeasured(Exception):
    """Why there is no figure."""


class Figures(msgspec.Struct, frozen=True):
    pods: int
    seconds: float
    """Online: first create to last bind. Backlog: first bind to last."""
    first: float
    """Online: first create to first bind. Backlog: start of the program to first bind."""
    p50: float
    p99: float
    """Of gangs: from its first object (online), or the program's start (backlog), to its last
    bind."""
    cpu: float
    rss: int

    @property
    def rate(self) -> float:
        return self.pods / self.seconds if self.seconds > 0 else math.inf


class _Spec(msgspec.Struct, rename="camel", gc=False):
    node_name: str = ""


class _Pod(msgspec.Struct, gc=False):
    metadata: ObjectMeta
    spec: _Spec


class Made(msgspec.Struct, gc=False):
    """All that is read of the answer to a create."""


class Sightings:
    """When each pod was first seen, and when and where it was first seen bound."""

    def __init__(self, ground: Ground) -> None:
        self.seen: dict[str, float] = {}
        self.bound: dict[str, float] = {}
        self.nodes: dict[str, str] = {}
        self._changed = asyncio.Event()
        self._cache = Cache(ground.connection, POD, _Pod, namespace=NAMESPACE, on_change=self._see)

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self._cache.run())
        try:
            await self._cache.synced()
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    @property
    def first(self) -> float:
        return min(self.bound.values())

    @property
    def last(self) -> float:
        return max(self.bound.values())

    def ends(self) -> dict[str, float]:
        """Of each gang, its last bind."""
        ends: dict[str, float] = {}
        for name, at in self.bound.items():
            gang = workload.gang_of(name)
            ends[gang] = max(at, ends.get(gang, at))
        return ends

    def forget(self) -> None:
        self.seen.clear()
        self.bound.clear()

    async def until(
        self, events: dict[str, float], count: int, program: Program | None = None
    ) -> None:
        """Until so many have been seen; Unmeasured when the program ends before."""
        while len(events) < count:
            self._changed.clear()
            if program is not None and not program.running:
                raise Unmeasured(f"{program.name} ended: {program.tail(1)[-160:]}")
            try:
                await asyncio.wait_for(self._changed.wait(), 1.0)
            except TimeoutError:
                continue

    def _see(self, change: Change[_Pod]) -> None:
        pod = change.new
        if pod is None:
            return
        name, now = pod.metadata.name, time.perf_counter()
        self.seen.setdefault(name, now)
        if pod.spec.node_name and name not in self.bound:
            self.bound[name] = now
            self.nodes[name] = pod.spec.node_name
        self._changed.set()


class Trial:
    """One contender at one workload."""

    def __init__(self, ground: Ground, contender: Contender, gangs: Gangs, limit: float) -> None:
        self._ground = ground
        self._contender = contender
        self._gangs = gangs
        self._limit = limit
        self._program = contender.program(ground.plane)
        self._sightings = Sightings(ground)

    async def run(self, mode: Mode) -> Figures:
        """Unmeasured says why there are no figures."""
        try:
            await self._ground.define(self._contender.groups())
            async with self._sightings.watching():
                return await (self._online() if mode is Mode.ONLINE else self._backlog())
        finally:
            self._program.stop()
            await self._ground.clear()

    async def _online(self) -> Figures:
        seen = self._sightings
        self._program.start()
        await create(self._ground, self._contender, _WARM_UP, "warm")
        await self._bound(_WARM_UP, _WARM_WITHIN)
        await asyncio.sleep(_AFTERMATH)
        seen.forget()
        cpu, began = cpu_of(self._program), time.perf_counter()
        creating = asyncio.create_task(create(self._ground, self._contender, self._gangs))
        try:
            await self._bound(self._gangs, self._limit)
            starts = await creating
        finally:
            creating.cancel()
            await asyncio.gather(creating, return_exceptions=True)
        seconds = seen.last - began
        return await self._figures(starts, seconds, seen.first - began, cpu)

    async def _backlog(self) -> Figures:
        seen = self._sightings
        await create(self._ground, self._contender, self._gangs)
        await seen.until(seen.seen, self._gangs.pods)
        began = time.perf_counter()
        self._program.start()
        await self._bound(self._gangs, self._limit)
        starts = dict.fromkeys(self._gangs.names(), began)
        return await self._figures(starts, seen.last - seen.first, seen.first - began, 0.0)

    async def _bound(self, gangs: Gangs, limit: float) -> None:
        bound = self._sightings.bound
        try:
            async with asyncio.timeout(limit):
                await self._sightings.until(bound, gangs.pods, self._program)
        except TimeoutError:
            raise Unmeasured(
                f"{len(bound):,} of {gangs.pods:,} pods bound after {limit:.0f} s"
            ) from None

    async def _figures(
        self, starts: dict[str, float], seconds: float, first: float, cpu_before: float
    ) -> Figures:
        seen, gangs = self._sightings, self._gangs
        await asyncio.sleep(_AFTERMATH)
        if self._contender.name != NULL:
            _refuse_overfull(seen)
        ends = seen.ends()
        taken = sorted(ends[gang] - starts[gang] for gang in gangs.names())
        return Figures(
            pods=gangs.pods,
            seconds=seconds,
            first=first,
            p50=quantile(taken, 0.5),
            p99=quantile(taken, 0.99),
            cpu=cpu_of(self._program) - cpu_before,
            rss=peak(self._program),
        )


def _refuse_overfull(sightings: Sightings) -> None:
    """What was bound without room was not scheduled."""
    for node, pods in Counter(sightings.nodes.values()).items():
        if pods > workload.PODS_PER_NODE:
            raise Unmeasured(f"{pods} pods on {node}, which has room for {workload.PODS_PER_NODE}")


async def create(
    ground: Ground, contender: Contender, gangs: Gangs, prefix: str = "gang"
) -> dict[str, float]:
    """Gang by gang, a few at a time, each PodGroup before its pods; when each was begun."""
    slots = asyncio.Semaphore(AT_ONCE)
    begun: dict[str, float] = {}
    names = iter(gangs.names(prefix))
    dialect = contender.dialect

    async def pod(gang: str, index: int) -> None:
        made = workload.pod(gang, index, contender.scheduler, dialect)
        async with slots:
            await ground.connection.create(POD, made, model=Made)

    async def worker() -> None:
        for gang in names:
            begun[gang] = time.perf_counter()
            made = workload.group(gang, gangs.size, dialect)
            await ground.connection.create(dialect.kind, made, model=Made)
            async with asyncio.TaskGroup() as pods:
                for index in range(gangs.size):
                    pods.create_task(pod(gang, index))

    async with asyncio.TaskGroup() as workers:
        for _ in range(_GANGS_AT_ONCE):
            workers.create_task(worker())
    return begun


def quantile(ordered: list[float], share: float) -> float:
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def cpu_of(program: Program) -> float:
    times = psutil.Process(program.pid).cpu_times()
    return times.user + times.system


def peak(program: Program) -> int:
    """The most memory that it ever had, in bytes."""
    for line in Path(f"/proc/{program.pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise Unmeasured("this system does not tell a program's peak memory")
