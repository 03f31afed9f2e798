"""How requests reach an API server.

Two implementations: `kube.http` over sockets, `kube.inprocess` straight into an ASGI application.
Everything above works on either, and knows neither.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar
from typing import Protocol

import msgspec

Query = Mapping[str, str]
Headers = Mapping[str, str]

may_leave: ContextVar[Callable[[], bool] | None] = ContextVar("may_leave", default=None)
"""Asked once more when a body is about to go out: a request may have waited for a connection, or
its process may have stood still, since whoever sent it was allowed to. After a no the request is
Unreachable, and the server has at most an unfinished one, which it does not carry out."""


class Response(msgspec.Struct, frozen=True):
    status: int
    headers: Headers  # names in lower case
    body: bytes


class Stream(Protocol):
    """A response whose body is still arriving."""

    status: int
    headers: Headers

    def chunks(self) -> AsyncIterator[bytes]:
        """The body as it comes; ends when the server ends it, raises Unreachable when cut."""
        ...


class Transport(Protocol):
    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        headers: Headers | None = None,
        body: bytes | None = None,
        timeout: float | None = None,
    ) -> Response: ...

    def stream(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        headers: Headers | None = None,
        body: bytes | None = None,
    ) -> AbstractAsyncContextManager[Stream]: ...

    async def close(self) -> None: ...
