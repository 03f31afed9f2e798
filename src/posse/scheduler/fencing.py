"""No write leaves a scheduler that is not surely the leader.

The check sits in the transport, under every retry, so that nothing above can forget it or outwait
it: a request that was to be sent again after a pause is asked anew.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from posse.kube.transport import Headers, Query, Response, Stream, Transport


class LeadershipLost(Exception):
    """The lease may be somebody else's by now. Not a KubeError: no retry may swallow it."""


class WriteWhileFrozen(Exception):
    """Somebody forgot that the policy lets nothing be carried out."""


class Fence:
    """A transport that reads always, and writes only while `held` says so, never if `frozen`."""

    def __init__(
        self, transport: Transport, held: Callable[[], bool], *, frozen: bool = False
    ) -> None:
        self._transport = transport
        self._held = held
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
        if not self._held():
            raise LeadershipLost
        self.in_flight += 1
        try:
            return await self._transport.request(
                method, path, query=query, headers=headers, body=body, timeout=timeout
            )
        finally:
            self.in_flight -= 1

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
