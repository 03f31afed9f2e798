"""No write leaves a scheduler that is not surely the leader.

The check sits in the transport, under every retry, so that nothing above can forget it or outwait
it: a request that was to be sent again after a pause is asked anew. And a write that was let
through may still be waiting for a connection when the lease runs out, the more so in a process
that was stopped for a while: it is cut off then, and asked about once more as it leaves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from posse.kube.errors import Unreachable
from posse.kube.transport import Headers, Query, Response, Stream, Transport, may_leave


class LeadershipLost(Exception):
    """The lease may be somebody else's by now. Not a KubeError: no retry may swallow it."""


class WriteWhileFrozen(Exception):
    """Somebody forgot that the policy lets nothing be carried out."""


class Fence:
    """A transport that reads always, and writes only while time is `left`, never if `frozen`."""

    def __init__(
        self, transport: Transport, left: Callable[[], float], *, frozen: bool = False
    ) -> None:
        self._transport = transport
        self._left = left
        self._frozen = frozen
        self._sent = 0
        self._flying: dict[int, asyncio.Task[Any]] = {}
        self._cut_off: dict[int, None] = {}
        self._alarm: asyncio.TimerHandle | None = None

    @property
    def in_flight(self) -> int:
        """Writes that have been sent and not been answered."""
        return len(self._flying)

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        headers: Headers | None = None,
        body: bytes | None = None,
        timeout: float | None = None,
    ) -> Response:
        if method == "GET":
            return await self._transport.request(
                method, path, query=query, headers=headers, body=body, timeout=timeout
            )
        if self._frozen:
            raise WriteWhileFrozen(f"{method} {path}")
        if self._left() <= 0:
            raise LeadershipLost
        task = asyncio.current_task()
        assert task is not None
        asked, number = task.cancelling(), self._sent
        self._sent += 1
        self._flying[number] = task
        if self._alarm is None:
            self._watch()
        permission = may_leave.set(self._holds)
        try:
            return await self._transport.request(
                method, path, query=query, headers=headers, body=body, timeout=timeout
            )
        except Unreachable:
            if self._left() <= 0:
                raise LeadershipLost from None
            raise
        except asyncio.CancelledError:
            if number in self._cut_off and task.uncancel() <= asked:
                raise LeadershipLost from None
            raise
        finally:
            may_leave.reset(permission)
            del self._flying[number]
            self._cut_off.pop(number, None)

    def _holds(self) -> bool:
        return self._left() > 0

    def _watch(self) -> None:
        """Ends every write with LeadershipLost when no time is left, however often renewed before.

        One alarm serves all writes: it is set while any is in flight, and looks again when the
        time that was left has passed.
        """
        self._alarm = None
        if (left := self._left()) <= 0:
            for number, task in self._flying.items():
                self._cut_off[number] = None
                task.cancel()
        elif self._flying:
            self._alarm = asyncio.get_running_loop().call_later(left, self._watch)

    def stream(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        headers: Headers | None = None,
        body: bytes | None = None,
    ) -> AbstractAsyncContextManager[Stream]:
        return self._transport.stream(method, path, query=query, headers=headers, body=body)

    async def close(self) -> None:
        """The transport underneath belongs to whoever lent it."""
