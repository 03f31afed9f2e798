"""The runtime that runs nothing: containers are up at once and end when an annotation says so."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import Any

from posse.local.node.runtime import Exit, Host, LogRequest
from posse.objects.keys import SIMULATED_DURATION, SIMULATED_EXIT_CODE
from posse.objects.times import parse_duration
from posse.world import World

Manifest = dict[str, Any]

LINE = b"simulated: this container runs nothing\n"
# What a process that handles no signals ends with when it is told to stop.
STOPPED = Exit(143, "Error")


class SimulatedRuntime:
    """All pods of all simulated nodes. Its only state is timers; objects tell it the rest."""

    scheme = "simulated"

    def __init__(self, world: World) -> None:
        self._world = world
        self._host: Host | None = None
        self._running: dict[str, dict[str, _Container]] = {}
        self._addresses = _Addresses()

    def attach(self, host: Host) -> None:
        self._host = host

    async def run(self) -> None:
        return

    async def recover(self, uids: Sequence[str]) -> None:
        """Nothing outlives the agent."""

    def pods_changed(self) -> None:
        """Nobody here looks at other pods."""

    def address(self, pod: Manifest, node: str) -> str:
        return self._addresses.of(pod, node)

    async def start(self, pod: Manifest, container: str, attempt: int) -> bool:
        self._run(pod, container, attempt, elapsed=0.0)
        return True

    async def adopt(self, pod: Manifest, container: str, attempt: int, started_at: float) -> bool:
        self._run(pod, container, attempt, elapsed=max(0.0, self._world.now() - started_at))
        return True

    async def stop(self, uid: str, grace: float) -> None:
        for name in list(self._running.get(uid, {})):
            self._end(uid, name, STOPPED)

    def forget(self, uid: str) -> None:
        for container in self._running.pop(uid, {}).values():
            container.end()
        self._addresses.free(uid)

    def close(self) -> None:
        for uid in list(self._running):
            self.forget(uid)

    async def logs(self, pod: Manifest, container: str, wanted: LogRequest) -> AsyncIterator[bytes]:
        line = _line(pod, container, wanted)
        if line:
            yield line
        running = self._running.get(pod["metadata"]["uid"], {}).get(container)
        if wanted.follow and not wanted.previous and running is not None:
            await running.over.wait()

    def _run(self, pod: Manifest, name: str, attempt: int, *, elapsed: float) -> None:
        uid = pod["metadata"]["uid"]
        container = _Container(attempt)
        previous = self._running.setdefault(uid, {}).pop(name, None)
        if previous is not None:
            previous.end()
        self._running[uid][name] = container
        loop = asyncio.get_running_loop()
        if _is_init(pod, name):
            container.timer = loop.call_soon(self._end, uid, name, Exit(0))
            return
        duration = self._duration(pod)
        if duration is not None:
            how = Exit(self._exit_code(pod))
            left = max(0.0, duration - elapsed)
            container.timer = loop.call_later(left, self._end, uid, name, how)

    def _end(self, uid: str, name: str, how: Exit) -> None:
        container = self._running.get(uid, {}).pop(name, None)
        if container is None:
            return
        container.end()
        assert self._host is not None
        self._host.exited(uid, name, container.attempt, how)

    def _duration(self, pod: Manifest) -> float | None:
        text = _annotation(pod, SIMULATED_DURATION)
        if text is None:
            return None
        try:
            seconds = parse_duration(text)
            if seconds < 0:
                raise ValueError(f"{text!r} is negative")
        except ValueError as error:
            self._warn(pod, f"{SIMULATED_DURATION}: {error}; the pod runs until it is deleted")
            return None
        return seconds

    def _exit_code(self, pod: Manifest) -> int:
        text = _annotation(pod, SIMULATED_EXIT_CODE)
        if text is None:
            return 0
        if text.isascii() and text.isdecimal() and len(text) <= 3 and int(text) <= 255:
            return int(text)
        self._warn(pod, f"{SIMULATED_EXIT_CODE}: {text!r} is not a number from 0 to 255; 0 is used")
        return 0

    def _warn(self, pod: Manifest, message: str) -> None:
        assert self._host is not None
        self._host.warn(pod, "MalformedAnnotation", message)


class _Container:
    """One simulated container that is up."""

    __slots__ = ("attempt", "over", "timer")

    def __init__(self, attempt: int) -> None:
        self.attempt = attempt
        self.over = asyncio.Event()
        self.timer: asyncio.Handle | None = None

    def end(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
        self.over.set()


class _Addresses:
    """An address per pod: each node has a /24, from 10.244.0 upwards."""

    def __init__(self) -> None:
        self._nodes: dict[str, int] = {}
        self._taken: dict[str, str] = {}  # address -> uid
        self._held: dict[str, str] = {}  # uid -> address
        self._next: dict[str, int] = {}

    def of(self, pod: Manifest, node: str) -> str:
        uid = pod["metadata"]["uid"]
        if uid in self._held:
            return self._held[uid]
        said = (pod.get("status") or {}).get("podIP")
        if said and said not in self._taken:
            return self._hold(uid, said)
        index = self._nodes.setdefault(node, len(self._nodes))
        prefix = f"10.{(244 + index // 256) % 256}.{index % 256}"
        for _ in range(254):
            last = self._next.get(node, 0) % 254 + 1
            self._next[node] = last
            address = f"{prefix}.{last}"
            if address not in self._taken:
                return self._hold(uid, address)
        # More pods than addresses: a pod limit above 254 was asked for. Loopback serves all.
        return "127.0.0.1"

    def free(self, uid: str) -> None:
        address = self._held.pop(uid, None)
        if address is not None:
            del self._taken[address]

    def _hold(self, uid: str, address: str) -> str:
        self._held[uid], self._taken[address] = address, uid
        return address


def _line(pod: Manifest, container: str, wanted: LogRequest) -> bytes:
    started = _started(pod, container, previous=wanted.previous)
    if started is None or wanted.tail_lines == 0:
        return b""
    if wanted.since is not None and started.timestamp() < wanted.since:
        return b""
    line = LINE
    if wanted.timestamps:
        line = started.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ ").encode() + LINE
    return line if wanted.limit_bytes is None else line[: wanted.limit_bytes]


def _started(pod: Manifest, container: str, *, previous: bool) -> datetime | None:
    """When the container, or its previous attempt, says that it was started."""
    status = pod.get("status") or {}
    for entry in [
        *(status.get("initContainerStatuses") or []),
        *(status.get("containerStatuses") or []),
    ]:
        if entry.get("name") != container:
            continue
        last = entry.get("lastState") or {}
        state = last if previous else {**last, **(entry.get("state") or {})}
        part = state.get("running") or state.get("terminated") or {}
        try:
            return datetime.fromisoformat(part["startedAt"])
        except (KeyError, TypeError, ValueError):
            return None
    return None


def _is_init(pod: Manifest, name: str) -> bool:
    """An ordinary init container: it has nothing to do and completes at once."""
    return any(
        c.get("name") == name and c.get("restartPolicy") != "Always"
        for c in pod["spec"].get("initContainers") or []
    )


def _annotation(pod: Manifest, key: str) -> str | None:
    value = (pod["metadata"].get("annotations") or {}).get(key)
    return None if value is None else str(value)
