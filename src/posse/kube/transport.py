"""How requests reach an API server.

Two implementations: `kube.http` over sockets, `kube.inprocess` straight into an ASGI application.
Everything above works on either, and knows neither.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import msgspec

Query = Mapping[str, str]
Headers = Mapping[str, str]


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
