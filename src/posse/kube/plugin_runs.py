"""Running a credential plugin, no more often than needed.

One run serves everyone who waits for it. What it gave is used until shortly before it expires, or
until the server refuses it. A plugin that fails while what it gave before is still valid costs
nothing but a warning.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from posse.kube.credentials import Credentials, KeyPair, bearer
from posse.kube.errors import ConfigError, SignInFailed
from posse.kube.plugins import Granted, Plugin, Terminal, read_answer
from posse.world import World

_log = logging.getLogger(__name__)

_PATIENCE = 60.0
_PATIENCE_WITH_PEOPLE = 300.0
_LONGEST_OUTPUT = 1 << 20
_REAPING = 5.0
_MARGIN = 60.0

Run = Callable[[Plugin], Awaitable[bytes]]


class _Issued(msgspec.Struct, frozen=True):
    credentials: Credentials
    expires: float
    renew_at: float


class PluginSignIn:
    def __init__(self, plugin: Plugin, world: World, run: Run | None = None) -> None:
        self._plugin = plugin
        self._world = world
        self._run = run or run_plugin
        self._issued: _Issued | None = None
        self._running: asyncio.Task[_Issued] | None = None

    async def current(self) -> Credentials:
        issued = self._issued
        if issued is None or self._world.now() >= issued.renew_at:
            issued = await self._shared()
        return issued.credentials

    async def renewed(self, refused: Credentials) -> Credentials | None:
        issued = self._issued
        # Whoever was refused at the same time may have run it already.
        if issued is None or issued.credentials is refused:
            issued = await self._shared()
        return None if issued.credentials == refused else issued.credentials

    async def close(self) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait([self._running])

    async def _shared(self) -> _Issued:
        """A run goes on when one who waits for it gives up: the others, and the next, need it."""
        if self._running is None:
            self._running = asyncio.create_task(self._renew())
            self._running.add_done_callback(self._done)
        return await asyncio.shield(self._running)

    def _done(self, task: asyncio.Task[_Issued]) -> None:
        self._running = None
        if not task.cancelled():
            task.exception()  # seen, even if nobody waits any more

    async def _renew(self) -> _Issued:
        before = self._issued
        try:
            granted = read_answer(self._plugin, await self._run(self._plugin))
            credentials = _credentials(granted)
        except (ConfigError, ValueError) as error:
            failure = _failure(self._plugin, error)
            now = self._world.now()
            if before is None or now >= before.expires:
                raise failure from None
            _log.warning("%s; using what it gave before", failure)
            self._issued = _Issued(before.credentials, before.expires, _next(now, before.expires))
        else:
            renew_at = _next(self._world.now(), granted.expires)
            self._issued = _Issued(credentials, granted.expires, renew_at)
        return self._issued


def _next(now: float, expires: float) -> float:
    """When to run again: shortly before the end, however long the time until then is.

    A plugin may give the same token until that has expired; the shrinking margin makes asking it
    early a matter of a few runs.
    """
    return expires - min(_MARGIN, max(0.0, expires - now) / 10)


def _credentials(granted: Granted) -> Credentials:
    authorization = bearer(granted.token, "the token that it gave") if granted.token else ""
    if not granted.key:
        return Credentials(authorization)
    return Credentials(authorization, KeyPair(granted.certificate.encode(), granted.key.encode()))


def _failure(plugin: Plugin, error: Exception) -> SignInFailed:
    return SignInFailed(
        f"user {plugin.user!r} signs in with {Path(plugin.command).name!r}, but {error}"
    )


async def run_plugin(plugin: Plugin) -> bytes:
    """The plugin's output; ValueError, which shows nothing of it, when there is none to use."""
    interactive = plugin.terminal is not Terminal.NEVER and os.isatty(0)
    if plugin.terminal is Terminal.ALWAYS and not interactive:
        raise ValueError("it needs a terminal, and there is none here")
    program = plugin.command if os.sep in plugin.command else shutil.which(plugin.command)
    question = plugin.question(interactive=interactive)
    try:
        if program is None:
            raise FileNotFoundError
        process = await asyncio.create_subprocess_exec(
            program,
            *plugin.args,
            stdin=None if interactive else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            # Where a person is asked something, this is where it is asked.
            stderr=None if interactive else asyncio.subprocess.DEVNULL,
            env={**os.environ, **dict(plugin.env), "KUBERNETES_EXEC_INFO": question},
            # Of its own, so that all it started can be ended; but a terminal has one session.
            start_new_session=not interactive,
        )
    except FileNotFoundError:
        hint = f": {plugin.install_hint}" if plugin.install_hint else ""
        raise ValueError(f"{plugin.command} is not installed{hint}") from None
    except (OSError, ValueError) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or "it is not a program"
        raise ValueError(f"{plugin.command} cannot be run: {why}") from None
    patience = _PATIENCE_WITH_PEOPLE if interactive else _PATIENCE
    try:
        async with asyncio.timeout(patience):
            output = await _output(process)
            code = await process.wait()
    except TimeoutError:
        raise ValueError(f"it did not end within {patience:.0f} s") from None
    finally:
        await _end(process, group=not interactive)
    if code != 0:
        how = f"with exit code {code}" if code > 0 else f"by signal {-code}"
        raise ValueError(f"it ended {how}; run it by hand to see why")
    return output


async def _output(process: asyncio.subprocess.Process) -> bytes:
    assert process.stdout is not None
    output = bytearray()
    while chunk := await process.stdout.read(1 << 16):
        output += chunk
        if len(output) > _LONGEST_OUTPUT:
            raise ValueError("it printed far more than an ExecCredential")
    return bytes(output)


async def _end(process: asyncio.subprocess.Process, *, group: bool) -> None:
    """Ends a process that is still there, and waits until it and its pipe are gone."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            if group:
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
    assert process.stdout is not None
    with suppress(TimeoutError):
        async with asyncio.timeout(_REAPING):
            while await process.stdout.read(1 << 16):
                continue
            await process.wait()
