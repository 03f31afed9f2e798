"""A transport that loses requests, or their answers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from posse.kube.errors import Unreachable
from posse.kube.transport import Headers, Query, Response, Stream, Transport


class FaultyTransport:
    """`before` is asked ahead of each request and stream, `after` when the server has acted."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.before: Callable[[str, str], bool] = lambda method, path: False
        self.after: Callable[[str, str], bool] = lambda method, path: False
        self.attempts: list[tuple[str, str]] = []

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
        self.attempts.append((method, path))
        if self.before(method, path):
            raise Unreachable("refused")
        answer = await self._inner.request(
            method, path, query=query, headers=headers, body=body, timeout=timeout
        )
        if self.after(method, path):
            raise Unreachable("the answer was lost")
        return answer

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        headers: Headers | None = None,
        body: bytes | None = None,
    ) -> AsyncIterator[Stream]:
        self.attempts.append((method, path))
        if self.before(method, path):
            raise Unreachable("refused")
        async with self._inner.stream(
            method, path, query=query, headers=headers, body=body
        ) as stream:
            yield stream

    async def close(self) -> None:
        await self._inner.close()


def times(count: int) -> Callable[[str, str], bool]:
    """True for the first `count` requests."""
    left = count

    def fault(method: str, path: str) -> bool:
        nonlocal left
        left -= 1
        return left >= 0

    return fault
