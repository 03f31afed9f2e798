"""No write leaves a scheduler that is not surely the leader.

The check sits in the transport, under every retry, so that nothing above can forget it or outwait
it: a request that was to be sent again after a pause is asked anew. And a write that was let
through may still be waiting for a connection when the lease runs out, the more so in a process
that was stopped for a while: it is cut off then, and asked about once more as it leaves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager

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
        self.in_flight = 0
        """Writes that have been sent and not been answered."""

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
        self.in_flight += 1
        try:
            with self._cut_off():
                return await self._transport.request(
                    method, path, query=query, headers=headers, body=body, timeout=timeout
                )
        except Unreachable:
            if self._left() <= 0:
                raise LeadershipLost from None
            raise
        finally:
            self.in_flight -= 1

    @contextmanager
    def _cut_off(self) -> Iterator[None]:
        """Ends the write with LeadershipLost when no time is left, however often renewed before."""
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None
        asked, lost = task.cancelling(), False
        alarm: asyncio.TimerHandle

        def ring() -> None:
            nonlocal alarm, lost
            if (left := self._left()) > 0:
                alarm = loop.call_later(left, ring)
            else:
                lost = True
                task.cancel()

        alarm = loop.call_later(self._left(), ring)
        permission = may_leave.set(lambda: self._left() > 0)
        try:
            yield
        except asyncio.CancelledError:
            if lost and task.uncancel() <= asked:
                raise LeadershipLost from None
            raise
        finally:
            may_leave.reset(permission)
            alarm.cancel()

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
