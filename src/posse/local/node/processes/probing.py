"""Startup, readiness and liveness probes: commands in the container, HTTP, and open ports.

A container is ready once its startup and readiness probes have said so; one that fails its startup
or liveness probe too often is ended, and its restart policy decides what comes next.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import ssl
from collections.abc import Callable
from typing import Any

import msgspec

from posse.local.node.naming import Reach
from posse.local.node.processes.attempts import Attempt
from posse.local.node.processes.launching import spec_of
from posse.local.node.processes.shim import files
from posse.objects import raw

log = logging.getLogger(__name__)

Manifest = dict[str, Any]

_FIRST_NUMBER = 100  # lower ones are the shim's own


class Pace(msgspec.Struct, frozen=True):
    """When a probe is asked, and how often it must say something before that counts."""

    delay: float
    period: float
    timeout: float
    successes: int
    failures: int


def pace_of(probe: Manifest) -> Pace:
    def number(field: str, default: int, least: int) -> int:
        value = raw.number(probe, field)
        return default if value is None else max(least, value)

    return Pace(
        number("initialDelaySeconds", 0, 0),
        number("periodSeconds", 10, 1),
        number("timeoutSeconds", 1, 1),
        number("successThreshold", 1, 1),
        number("failureThreshold", 3, 1),
    )


class Prober:
    def __init__(
        self,
        on_ready: Callable[[Attempt, bool], None],
        on_dead: Callable[[Attempt, str], None],
    ) -> None:
        self._on_ready = on_ready
        self._on_dead = on_dead
        self._tasks: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._bells: dict[tuple[str, str], asyncio.Event] = {}
        self._numbers = itertools.count(_FIRST_NUMBER)
        self._failed: asyncio.Queue[BaseException] = asyncio.Queue()

    async def run(self) -> None:
        """Errors of the probing itself are told, and stop nothing else."""
        while True:
            log.error("a probe failed", exc_info=await self._failed.get())

    def begin(
        self, pod: Manifest, attempt: Attempt, reach: Reach | None, *, ready: bool = False
    ) -> bool:
        """Ask from now on; `ready` is what is known so far. False while nobody knows."""
        container = spec_of(pod, attempt.container)
        probes = {
            kind: probe
            for kind in ("startup", "readiness", "liveness")
            if (probe := raw.mapping(container, f"{kind}Probe"))
        }
        if not probes:
            return True
        self.end(attempt)
        key = (attempt.uid, attempt.container)
        self._bells[key] = asyncio.Event()
        asking = _Asking(pod, container, attempt, reach or Reach("127.0.0.1"), self)
        task = asyncio.create_task(self._ask(asking, probes, ready=ready))
        self._tasks[key] = task
        task.add_done_callback(self._ended)
        return ready or not ("startup" in probes or "readiness" in probes)

    def end(self, attempt: Attempt) -> None:
        key = (attempt.uid, attempt.container)
        self._bells.pop(key, None)
        if (task := self._tasks.pop(key, None)) is not None:
            task.cancel()

    def forget(self, uid: str) -> None:
        for key in [key for key in self._tasks if key[0] == uid]:
            self._bells.pop(key, None)
            self._tasks.pop(key).cancel()

    def rung(self, attempt: Attempt) -> None:
        if (bell := self._bells.get((attempt.uid, attempt.container))) is not None:
            bell.set()

    def bell_of(self, attempt: Attempt) -> asyncio.Event:
        return self._bells[attempt.uid, attempt.container]

    def number(self) -> int:
        return next(self._numbers)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failed.put_nowait(error)

    async def _ask(self, asking: _Asking, probes: dict[str, Manifest], *, ready: bool) -> None:
        attempt = asking.attempt
        if "startup" in probes and not ready and not await self._started(asking, probes["startup"]):
            return
        async with asyncio.TaskGroup() as tasks:
            if "readiness" in probes:
                tasks.create_task(self._readiness(asking, probes["readiness"], ready=ready))
            elif not ready:
                self._on_ready(attempt, True)
            if "liveness" in probes:
                tasks.create_task(self._liveness(asking, probes["liveness"]))

    async def _started(self, asking: _Asking, probe: Manifest) -> bool:
        pace, failures = pace_of(probe), 0
        await asyncio.sleep(pace.delay)
        while True:
            complaint = await asking.ask("startupProbe", probe, pace.timeout)
            if complaint is None:
                return True
            failures += 1
            if failures >= pace.failures:
                self._on_dead(asking.attempt, f"Startup probe failed: {complaint}")
                return False
            await asyncio.sleep(pace.period)

    async def _readiness(self, asking: _Asking, probe: Manifest, *, ready: bool) -> None:
        pace, run = pace_of(probe), 0
        await asyncio.sleep(pace.delay)
        while True:
            good = await asking.ask("readinessProbe", probe, pace.timeout) is None
            run = run + 1 if good != ready else 0
            if run >= (pace.successes if good else pace.failures):
                ready, run = good, 0
                self._on_ready(asking.attempt, ready)
            await asyncio.sleep(pace.period)

    async def _liveness(self, asking: _Asking, probe: Manifest) -> None:
        pace, failures = pace_of(probe), 0
        await asyncio.sleep(pace.delay)
        while True:
            complaint = await asking.ask("livenessProbe", probe, pace.timeout)
            failures = 0 if complaint is None else failures + 1
            if failures >= pace.failures:
                self._on_dead(asking.attempt, f"Liveness probe failed: {complaint}")
                return
            await asyncio.sleep(pace.period)


class _Asking:
    """Ways to ask one container."""

    def __init__(
        self, pod: Manifest, container: Manifest, attempt: Attempt, reach: Reach, prober: Prober
    ) -> None:
        self._pod = pod
        self._container = container
        self._reach = reach
        self._prober = prober
        self.attempt = attempt

    async def ask(self, field: str, probe: Manifest, timeout: float) -> str | None:
        """None when all is well, else the complaint."""
        try:
            async with asyncio.timeout(timeout):
                if "exec" in probe:
                    return await self._command(field)
                if http := raw.mapping(probe, "httpGet"):
                    return await self._http(http)
                where = raw.mapping(probe, "tcpSocket") or raw.mapping(probe, "grpc")
                return await self._connects(where)
        except TimeoutError:
            return f"timed out after {timeout:g}s"
        except (OSError, ValueError, asyncio.IncompleteReadError) as error:
            return str(error)

    async def _command(self, field: str) -> str | None:
        number = self._prober.number()
        answer = self.attempt.place.path / f"run-{number}.json"
        bell = self._prober.bell_of(self.attempt)
        argv = self.attempt.launch.get("commands", {}).get(field, [])
        try:
            if not argv or not self.attempt.order({"run": number, "argv": argv}):
                return "the command could not be run"
            while (said := files.read_json(str(answer))) is None:
                await bell.wait()
                bell.clear()
        except BaseException:
            self.attempt.order({"abandon": number})
            raise
        answer.unlink(missing_ok=True)
        return None if said["code"] == 0 else f"the command ended with {said['code']}"

    async def _connects(self, where: Manifest) -> str | None:
        host = raw.text(where, "host") or self._reach.address
        _, writer = await asyncio.open_connection(host, self._port(where))
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        return None

    async def _http(self, get: Manifest) -> str | None:
        host, port = raw.text(get, "host") or self._reach.address, self._port(get)
        context = None
        if raw.text(get, "scheme").upper() == "HTTPS":
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        headers = {"Host": f"{host}:{port}", "User-Agent": "kube-probe/posse", "Accept": "*/*"}
        headers |= {
            raw.text(h, "name"): raw.text(h, "value") for h in raw.mappings(get, "httpHeaders")
        }
        lines = [f"GET {raw.text(get, 'path') or '/'} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        reader, writer = await asyncio.open_connection(host, port, ssl=context)
        try:
            writer.write(("\r\n".join([*lines, "Connection: close"]) + "\r\n\r\n").encode())
            words = (await reader.readline()).split()
        finally:
            writer.close()
        code = int(words[1]) if len(words) > 1 else 0
        return None if 200 <= code < 400 else f"HTTP probe failed with statuscode: {code}"

    def _port(self, where: Manifest) -> int:
        asked = where.get("port")
        if isinstance(asked, str) and not asked.isdecimal():
            for port in raw.mappings(self._container, "ports"):
                if raw.text(port, "name") == asked:
                    asked = port.get("containerPort")
        number = int(asked or 0)
        return self._reach.ports.get(number, number)
