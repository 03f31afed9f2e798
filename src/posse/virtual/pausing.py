"""Stopping a service as SIGSTOP stops a process: none of its tasks takes a step until it goes on.

Time passes meanwhile, and what was sent to it waits. A task belongs to the service in whose context
it was made; every task that a service makes inherits that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from contextvars import ContextVar
from types import TracebackType
from typing import Any

SERVICE: ContextVar[Pause | None] = ContextVar("service", default=None)


class Pause:
    """Whether one service stands still."""

    def __init__(self) -> None:
        self._over: asyncio.Future[None] | None = None

    def begin(self) -> None:
        if self._over is None:
            self._over = asyncio.get_running_loop().create_future()

    def end(self) -> None:
        if self._over is not None:
            self._over.set_result(None)
            self._over = None

    @property
    def over(self) -> asyncio.Future[None] | None:
        """Done when the pause is over; None when there is none."""
        return self._over


class _Pausable(Coroutine[Any, Any, Any]):
    """A coroutine that waits at each of its steps while its service is paused.

    What was to be thrown into it meanwhile, such as a cancellation, is thrown when it goes on.
    """

    def __init__(self, inner: Coroutine[Any, Any, Any], pause: Pause) -> None:
        self._inner = inner
        self._pause = pause
        self._thrown: BaseException | None = None

    def send(self, value: Any) -> Any:
        if (over := self._pause.over) is not None:
            return _await(over)
        thrown, self._thrown = self._thrown, None
        return self._inner.send(value) if thrown is None else self._inner.throw(thrown)

    def throw(self, typ: Any, val: Any = None, tb: TracebackType | None = None, /) -> Any:
        error: BaseException = typ if isinstance(typ, BaseException) else (val or typ())
        if (over := self._pause.over) is not None:
            self._thrown = error
            return _await(over)
        return self._inner.throw(error)

    def close(self) -> None:
        self._inner.close()

    def __await__(self) -> Generator[Any, None, Any]:
        raise TypeError("only a task runs this")


def _await(over: asyncio.Future[None]) -> asyncio.Future[None]:
    """Yield a future of its own to each waiting task: cancelling one leaves the others alone."""
    mine: asyncio.Future[None] = over.get_loop().create_future()

    def release(_: asyncio.Future[None]) -> None:
        if not mine.done():
            mine.set_result(None)

    over.add_done_callback(release)
    mine._asyncio_future_blocking = True
    return mine


def pausable_tasks(
    loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any
) -> asyncio.Task[Any]:
    """A task factory."""
    pause = SERVICE.get()
    if pause is not None:
        coroutine = _Pausable(coroutine, pause)
    return asyncio.Task(coroutine, loop=loop, **options)
