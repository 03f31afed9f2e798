"""Trouble between a service and the API server: what a network and a busy server really do.

A request is lost before it arrives, or its answer is lost after it did what it asked; it is
refused, or it comes late; a watch is cut, ends, or falls silent for a while. Whoever made a write
is known to the server's journal by `writer`, so that a witness can tell whose write it sees.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from enum import Enum

import msgspec

from posse.kube.errors import Unreachable
from posse.kube.transport import Headers, Query, Response, Stream, Transport
from posse.virtual.pausing import SERVICE

writer: ContextVar[str] = ContextVar("writer", default="")
"""The service whose request the API server is carrying out."""


class Loss(Enum):
    REQUEST = "never arrived"
    ANSWER = "was carried out, and nobody heard"


class Refusal(msgspec.Struct, frozen=True):
    """The server answers so, and does nothing."""

    status: int
    reason: str
    retry_after: int | None = None

    def response(self) -> Response:
        headers = {"content-type": "application/json"}
        if self.retry_after is not None:
            headers["retry-after"] = str(self.retry_after)
        return Response(self.status, headers, self.body())

    def body(self) -> bytes:
        return msgspec.json.encode(
            {
                "kind": "Status",
                "apiVersion": "v1",
                "status": "Failure",
                "reason": self.reason,
                "message": f"not now ({self.reason})",
                "code": self.status,
            }
        )


class Delay(msgspec.Struct, frozen=True):
    """Seconds on the way there, and on the way back."""

    there: float = 0.0
    back: float = 0.0


CONFLICT = Refusal(409, "Conflict")
GONE = Refusal(410, "Expired")
TOO_MANY = Refusal(429, "TooManyRequests", retry_after=1)
INTERNAL = Refusal(500, "InternalError")
UNAVAILABLE = Refusal(503, "ServiceUnavailable")

Fault = Loss | Refusal | Delay
Plan = Callable[[str, str], Fault | None]
"""What befalls a request: method and path in, nothing for a good end."""


def peace(method: str, path: str) -> None:
    return None


class Line:
    """One service's connection to the API server, with everything that can befall it."""

    def __init__(
        self, transport: Transport, service: str, overhear: Callable[[str, str], None]
    ) -> None:
        self.plan: Plan = peace
        self._transport = transport
        self._service = service
        self._overhear = overhear
        self._dead = False
        self._streams: dict[_Watched, None] = {}
        self._silenced: tuple[str, ...] = ()  # how their paths end
        self._heard = asyncio.Event()
        self._heard.set()

    # What a story does to it.

    def cut(self) -> None:
        """Every watch breaks off in the middle."""
        for stream in list(self._streams):
            stream.cut()

    def silence(self, *resources: str) -> None:
        """Watches, all or those of these resources, stay open and tell nothing until `listen`."""
        self._silenced = tuple(f"/{resource}" for resource in resources) or ("",)
        self._heard.clear()

    def listen(self) -> None:
        self._silenced = ()
        self._heard.set()

    def kill(self) -> None:
        """Nothing is sent any more, whatever the service still tries as it ends."""
        self._dead = True

    # A transport.

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
        fault = Loss.REQUEST if self._dead else self.plan(method, path)
        delay = fault if isinstance(fault, Delay) else Delay()
        if fault is Loss.REQUEST:
            raise Unreachable(f"{method} {path}: lost on its way")
        if isinstance(fault, Refusal):
            return fault.response()
        if method != "GET":
            self._overhear(method, path)
        if delay.there:
            await asyncio.sleep(delay.there)
        with _as_writer(self._service):
            answer = await self._transport.request(
                method, path, query=query, headers=headers, body=body, timeout=timeout
            )
        if fault is Loss.ANSWER:
            raise Unreachable(f"{method} {path}: the answer was lost")
        if delay.back:
            await asyncio.sleep(delay.back)
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
        fault = Loss.REQUEST if self._dead else self.plan("WATCH", path)
        if isinstance(fault, Loss):
            raise Unreachable(f"{method} {path}: lost on its way")
        if isinstance(fault, Refusal):
            yield _Refused(fault)
            return
        with _as_writer(self._service):
            opening = self._transport.stream(method, path, query=query, headers=headers, body=body)
            stream = await opening.__aenter__()
        watched = _Watched(stream, lambda: self._hearing(path))
        self._streams[watched] = None
        try:
            yield watched
        finally:
            del self._streams[watched]
            await opening.__aexit__(None, None, None)

    async def close(self) -> None:
        await self._transport.close()

    async def _hearing(self, path: str) -> None:
        while any(path.endswith(end) for end in self._silenced):
            await self._heard.wait()


class _as_writer:  # noqa: N801 - a with-statement reads better so
    """The server's side of a request is nobody's task to pause, and knows whose request it is."""

    def __init__(self, service: str) -> None:
        self._service = service

    def __enter__(self) -> None:
        self._tokens = (writer.set(self._service), SERVICE.set(None))

    def __exit__(self, *_: object) -> None:
        writer.reset(self._tokens[0])
        SERVICE.reset(self._tokens[1])


class _Refused:
    def __init__(self, refusal: Refusal) -> None:
        self.status = refusal.status
        self.headers: Headers = refusal.response().headers
        self._body = refusal.body()

    async def chunks(self) -> AsyncIterator[bytes]:
        yield self._body


class _Watched:
    """A stream that can be cut, and that is silent while its line is."""

    def __init__(self, stream: Stream, hearing: Callable[[], Awaitable[None]]) -> None:
        self.status = stream.status
        self.headers = stream.headers
        self._stream = stream
        self._hearing = hearing
        self._is_cut = False
        self._waiting: asyncio.Timeout | None = None

    def cut(self) -> None:
        again, self._is_cut = self._is_cut, True
        if self._waiting is not None and not again:
            self._waiting.reschedule(asyncio.get_running_loop().time())

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        inner = self._stream.chunks()
        try:
            while not self._is_cut:
                try:
                    async with asyncio.timeout(None) as self._waiting:
                        chunk = await anext(inner)
                        await self._hearing()
                except StopAsyncIteration:
                    return
                except TimeoutError:
                    break
                finally:
                    self._waiting = None
                yield chunk
            raise Unreachable("the watch was cut")
        finally:
            if isinstance(inner, AsyncGenerator):
                await inner.aclose()
