"""The runtime whose containers are processes of this machine.

Its memory is the disk: what runs is known by the shims' locks, what has ended by their files, what
a pod was given by its record. An agent that starts anew reads all of it and goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Sequence
from typing import Any

from posse.kube.cache import Cache
from posse.kube.connection import Connection
from posse.local.node import naming
from posse.local.node.naming import NameBook, Reach
from posse.local.node.processes import logs, memory
from posse.local.node.processes.attempts import (
    Attempt,
    read_exit,
    running_in,
    spawn,
    write_exit,
)
from posse.local.node.processes.gpus import Allotment
from posse.local.node.processes.isolation.modes import Isolation
from posse.local.node.processes.layout import AttemptPlace, PodPlace, pods_below
from posse.local.node.processes.names import write_names
from posse.local.node.processes.preparing import Preparer, RuntimeConfig
from posse.local.node.processes.probing import Prober
from posse.local.node.processes.removing import Trash
from posse.local.node.processes.shim import files
from posse.local.node.runtime import Exit, Host, LogRequest
from posse.objects import raw
from posse.objects.kinds import SERVICE
from posse.world import World

log = logging.getLogger(__name__)

Manifest = dict[str, Any]

MEMORY_EVERY = 1.0
NAMES_SETTLE = 0.1


class _Pod:
    """What this agent holds for one pod."""

    def __init__(self, place: PodPlace) -> None:
        self.place = place
        self.manifest: Manifest | None = None
        self.reach: Reach | None = None
        self.running: dict[str, Attempt] = {}


class ProcessRuntime:
    scheme = "posse"

    def __init__(
        self, config: RuntimeConfig, connection: Connection, world: World, isolation: Isolation
    ) -> None:
        self._config = config
        self._world = world
        self._isolation = isolation
        self._host: Host | None = None
        self._pods: dict[str, _Pod] = {}
        self._gpus = Allotment(config.gpus)
        self._trash = Trash(config.pods, world)
        self._preparer = Preparer(
            config, connection, world, isolation, self._gpus, self._trash, self._warn
        )
        self._prober = Prober(self._found_ready, self._found_dead)
        self._stale = asyncio.Event()
        self._book: NameBook | None = None
        self._farewells: set[asyncio.Task[None]] = set()
        self._services: Cache[Manifest] = Cache(
            connection, SERVICE, dict[str, Any], on_change=lambda _: self.pods_changed()
        )
        config.pods.mkdir(mode=0o700, parents=True, exist_ok=True)

    # The agent's side.

    def attach(self, host: Host) -> None:
        self._host = host

    @property
    def _agent(self) -> Host:
        assert self._host is not None
        return self._host

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._services.run())
            tasks.create_task(self._trash.run())
            tasks.create_task(self._prober.run())
            tasks.create_task(self._look_after_memory())
            tasks.create_task(self._keep_names())

    async def recover(self, uids: Sequence[str]) -> None:
        await self._services.synced()
        known = set(uids)
        for place in pods_below(self._config.pods):
            if place.uid in known:
                pod = self._pod(place.uid)
                for at in place.latest():
                    self._watch(pod, at)
            else:
                self._bid_farewell(place, running_in(place))

    def pods_changed(self) -> None:
        self._book = None
        self._stale.set()

    def address(self, pod: Manifest, node: str) -> str:
        """Also the moment of admission: the pod's ports are settled, and written down."""
        mine = self._pod(str(pod["metadata"]["uid"]))
        mine.manifest = pod
        if mine.reach is None:
            known = _recorded(mine.place, self._isolation.name)
            mine.reach = self._isolation.reach(pod, known)
            mine.place.make()
            if mine.reach != known:
                _record(mine.place, self._isolation.name, mine.reach)
            self.pods_changed()
        return mine.reach.address

    async def start(self, pod: Manifest, container: str, attempt: int) -> bool:
        mine = self._pod(str(pod["metadata"]["uid"]))
        mine.manifest = pod
        at = mine.place.attempt(container, attempt)
        if not at.launch.exists():
            reach = mine.reach
            if reach is None:
                raise RuntimeError(f"{mine.place.uid} was never admitted")
            await self._preparer.prepare(pod, mine.place, at, reach, self._names)
        elif at.alive() or at.exit.exists() or at.state.exists():
            return self._resume(mine, at)
        complaint = await spawn(at)
        if complaint:
            log.warning("%s: %s", at.path, complaint)
            write_exit(at, Exit(128, "StartError", complaint))
        return self._resume(mine, at)

    async def adopt(self, pod: Manifest, container: str, attempt: int, started_at: float) -> bool:
        mine = self._pod(str(pod["metadata"]["uid"]))
        mine.manifest = pod
        at = mine.place.attempt(container, attempt)
        return self._resume(mine, at, ready=_was_ready(pod, container))

    async def stop(self, uid: str, grace: float) -> None:
        mine = self._pods.get(uid)
        if mine is None:
            return
        late = _sidecars(mine.manifest)
        first = [a for a in mine.running.values() if a.container not in late]
        await asyncio.gather(*(attempt.end(grace) for attempt in first))
        for name in late:
            if (attempt := mine.running.get(name)) is not None:
                await attempt.end(grace)
        self._gpus.release(uid)

    def forget(self, uid: str) -> None:
        mine = self._pods.pop(uid, None)
        if mine is None:
            return
        self._gpus.release(uid)
        if mine.reach is not None:
            self._isolation.release(mine.reach)
        self.pods_changed()
        self._prober.forget(uid)
        self._preparer.forget(uid)
        self._bid_farewell(mine.place, list(mine.running.values()))

    def close(self) -> None:
        for mine in self._pods.values():
            for attempt in mine.running.values():
                attempt.unwatch()
            mine.running.clear()

    async def logs(self, pod: Manifest, container: str, wanted: LogRequest) -> AsyncIterator[bytes]:
        place = PodPlace(self._config.pods / str(pod["metadata"]["uid"]))
        at = _asked(place, pod, container, previous=wanted.previous)
        if at is None:
            return
        async for data in logs.read(at.log, wanted, over=lambda: not at.alive()):
            yield data

    # Starting.

    def _pod(self, uid: str) -> _Pod:
        if uid not in self._pods:
            self._pods[uid] = _Pod(PodPlace(self._config.pods / uid))
        return self._pods[uid]

    # What runs.

    def _resume(self, mine: _Pod, at: AttemptPlace, *, ready: bool = False) -> bool:
        """Watch an attempt whose shim was started; if it is over already, tell so soon."""
        known = mine.running.get(at.container)
        if known is None or known.number != at.number:
            known = self._watch(mine, at)
        if known is None:
            how = read_exit(at, files.read_json(str(at.launch)) or {})
            if how is None:
                lost = Attempt(mine.place.uid, at, self._over, self._rung)
                lost.conclude()
            else:
                agent, uid = self._agent, mine.place.uid
                asyncio.get_running_loop().call_soon(
                    agent.exited, uid, at.container, at.number, how
                )
            return False
        assert mine.manifest is not None
        return self._prober.begin(mine.manifest, known, mine.reach, ready=ready)

    def _watch(self, mine: _Pod, at: AttemptPlace) -> Attempt | None:
        attempt = Attempt(mine.place.uid, at, self._over, self._rung)
        if not attempt.watch():
            return None
        mine.running[at.container] = attempt
        if attempt.launch.get("gpus"):
            self._gpus.keep(mine.place.uid, at.container, attempt.launch["gpus"])
        return attempt

    def _over(self, attempt: Attempt, how: Exit) -> None:
        mine = self._pods.get(attempt.uid)
        if mine is not None and mine.running.get(attempt.container) is attempt:
            del mine.running[attempt.container]
        self._prober.end(attempt)
        self._agent.exited(attempt.uid, attempt.container, attempt.number, how)

    def _warn(self, pod: Manifest, reason: str, message: str) -> None:
        self._agent.warn(pod, reason, message)

    def _rung(self, attempt: Attempt) -> None:
        self._prober.rung(attempt)

    def _found_ready(self, attempt: Attempt, ready: bool) -> None:
        self._agent.ready(attempt.uid, attempt.container, attempt.number, ready)

    def _found_dead(self, attempt: Attempt, why: str) -> None:
        mine = self._pods.get(attempt.uid)
        if mine is not None and mine.manifest is not None:
            self._agent.warn(mine.manifest, "Unhealthy", why)
        attempt.order({"stop": attempt.launch.get("grace", 30.0), "reason": "Error", "why": why})

    def _bid_farewell(self, place: PodPlace, running: Sequence[Attempt]) -> None:
        """End what runs of a pod that is gone, then remove everything it had."""

        async def end() -> None:
            await asyncio.gather(*(attempt.end(0.0) for attempt in running))
            self._trash.throw(place.path)

        task = asyncio.create_task(end())
        self._farewells.add(task)
        task.add_done_callback(self._farewells.discard)

    # What is looked after.

    async def _look_after_memory(self) -> None:
        while True:
            await asyncio.sleep(MEMORY_EVERY)
            limited: dict[int, Attempt] = {}
            for mine in self._pods.values():
                for attempt in mine.running.values():
                    if attempt.launch.get("memory_limit") and (warden := attempt.warden):
                        limited[warden] = attempt
            if not limited:
                continue
            limits = {pid: int(a.launch["memory_limit"]) for pid, a in limited.items()}
            for pid in memory.exceeding(limits):
                why = f"memory limit of {limits[pid]} bytes exceeded"
                limited[pid].order({"stop": 0, "reason": "OOMKilled", "why": why})

    async def _keep_names(self) -> None:
        while True:
            await self._stale.wait()
            await asyncio.sleep(NAMES_SETTLE)
            self._stale.clear()
            book = self._names()
            for mine in list(self._pods.values()):
                if mine.running and mine.manifest is not None and mine.reach is not None:
                    with contextlib.suppress(OSError):
                        write_names(mine.manifest, mine.place, mine.reach, book)

    def _names(self) -> NameBook:
        if self._book is None:
            api = self._config.api_server
            server = None if api is None else Reach(api[0], {443: api[1]})
            self._book = naming.read(
                self._agent.bound(), self._services.objects.values(), self._reach_of, server
            )
        return self._book

    def _reach_of(self, pod: Manifest) -> Reach | None:
        mine = self._pods.get(str(pod["metadata"]["uid"]))
        if mine is not None and mine.reach is not None:
            return mine.reach
        address = raw.text(raw.mapping(pod, "status"), "podIP")
        return Reach(address) if address and mine is None else None


def _record(place: PodPlace, mode: str, reach: Reach) -> None:
    record = {"mode": mode, "address": reach.address, "ports": reach.ports}
    files.write_json(str(place.record), record)


def _recorded(place: PodPlace, mode: str) -> Reach | None:
    """What the pod was given; an address of another mode means nothing in this one."""
    record = files.read_json(str(place.record))
    if record is None or record.get("mode") != mode:
        return None
    ports = {int(port): int(mapped) for port, mapped in (record.get("ports") or {}).items()}
    return Reach(str(record["address"]), ports)


def _was_ready(pod: Manifest, container: str) -> bool:
    status = raw.mapping(pod, "status")
    for field in ("initContainerStatuses", "containerStatuses"):
        for entry in raw.mappings(status, field):
            if raw.text(entry, "name") == container:
                return entry.get("ready") is True
    return False


def _sidecars(pod: Manifest | None) -> list[str]:
    """Those that end after the others, the last one first."""
    return [
        raw.text(container, "name")
        for container in reversed(raw.mappings(pod, "spec", "initContainers"))
        if container.get("restartPolicy") == "Always"
    ]


def _asked(
    place: PodPlace, pod: Manifest, container: str, *, previous: bool
) -> AttemptPlace | None:
    """The attempt whose output is meant, by what the pod's status says of the container."""
    status = raw.mapping(pod, "status")
    for field in ("initContainerStatuses", "containerStatuses"):
        for entry in raw.mappings(status, field):
            if raw.text(entry, "name") == container:
                current = raw.number(entry, "restartCount") or 0
                waiting = bool(raw.mapping(entry, "state", "waiting"))
                # One that waits for its next start shows its last one either way.
                return place.attempt(container, current - (1 if previous and not waiting else 0))
    attempts = place.attempts(container)
    return attempts[-1] if attempts else None
