"""Short requests over kept connections, with nothing on the way that they do not need.

A scheduler's work is thousands of small writes whose answers are a line: what a general client does
for each of them costs more than deciding did. So writes to a server without a proxy in between go
out here, each in one piece; whatever is long, compressed or goes through a proxy is not for here.

A wire carries one exchange at a time. One that ends in any other way than with a whole answer is
cut, so that no answer is ever taken for that to another request.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import Callable, Iterable
from typing import Protocol, cast
from urllib.parse import urlsplit

import httptools

from posse.kube.transport import Response

_UNSENDABLE = frozenset("\r\n\0")


class Prepare(Protocol):
    """What is done to a new socket."""

    def __call__(self, made: socket.socket) -> None: ...


class Wires:
    """The kept connections to one server, at most so many at once."""

    def __init__(
        self,
        base: str,
        server_name: str | None,
        *,
        most: int,
        keep: float,
        connect_within: float,
        prepare: Prepare,
    ) -> None:
        parts = urlsplit(base)
        secure = parts.scheme == "https"
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if secure else 80)
        self._named = parts.netloc.rpartition("@")[2]
        self._path = parts.path.rstrip("/")
        self._server_name = (server_name or self._host) if secure else None
        self._keep = keep
        self._connect_within = connect_within
        self._prepare = prepare
        self._room = asyncio.Semaphore(most)
        self._idle: deque[_Wire] = deque()
        self._tls: ssl.SSLContext | None = None

    async def ask(
        self,
        method: str,
        path: str,
        headers: Iterable[tuple[str, str]],
        body: bytes,
        tls: ssl.SSLContext | None,
        *,
        permitted: Callable[[], bool] | None,
        timeout: float,
    ) -> Response:
        """The answer. OSError or TimeoutError when there is none."""
        head = self._head(method, path, headers, len(body))
        async with self._room:
            loop = asyncio.get_running_loop()
            by = loop.time() + timeout
            wire = self._kept(tls, loop.time()) or await self._connected(tls, by)
            if permitted is not None and not permitted():
                self._idle.append(wire)
                raise ConnectionAbortedError("it was not to be sent any more")
            alarm = loop.call_at(by, wire.give_up)
            try:
                answer = await wire.exchange(head + body)
            except BaseException:
                wire.cut()
                raise
            finally:
                alarm.cancel()
            if wire.kept:
                wire.since = loop.time()
                self._idle.append(wire)
            else:
                wire.cut()
            return answer

    def close(self) -> None:
        while self._idle:
            self._idle.pop().cut()

    def _head(
        self, method: str, path: str, headers: Iterable[tuple[str, str]], length: int
    ) -> bytes:
        lines = [f"{method} {self._path}{path} HTTP/1.1", f"host: {self._named}"]
        lines += [f"{name}: {value}" for name, value in headers]
        lines.append(f"content-length: {length}")
        if " " in path or any(not _UNSENDABLE.isdisjoint(line) for line in lines):
            raise ValueError("a line break or a blank where a request cannot have one")
        return "\r\n".join([*lines, "", ""]).encode("utf-8")

    def _kept(self, tls: ssl.SSLContext | None, now: float) -> _Wire | None:
        """The wire that was used last, so that those which are too many grow old."""
        if tls is not self._tls:
            self.close()
            self._tls = tls
        while self._idle and (self._idle[0].lost or self._idle[0].since < now - self._keep):
            self._idle.popleft().cut()
        while self._idle:
            wire = self._idle.pop()
            if not wire.lost:
                return wire
        return None

    async def _connected(self, tls: ssl.SSLContext | None, by: float) -> _Wire:
        loop = asyncio.get_running_loop()
        async with asyncio.timeout_at(min(by, loop.time() + self._connect_within)):
            transport, wire = await loop.create_connection(
                _Wire,
                self._host,
                self._port,
                ssl=tls,
                server_hostname=self._server_name if tls is not None else None,
            )
        made = transport.get_extra_info("socket")
        if made is not None:
            self._prepare(made)
        return wire


class _Wire(asyncio.Protocol):
    def __init__(self) -> None:
        self.since = 0.0
        self.lost = False
        self.kept = False
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[Response] | None = None
        self._begin()

    async def exchange(self, request: bytes) -> Response:
        assert self._transport is not None
        if self.lost:
            raise ConnectionResetError("the server has closed the connection")
        self._begin()
        self._waiter = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        try:
            return await self._waiter
        finally:
            self._waiter = None

    def give_up(self) -> None:
        self._fail(TimeoutError())

    def cut(self) -> None:
        self.lost = True
        if self._transport is not None:
            self._transport.abort()

    def _begin(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []
        self._headed = False

    def _fail(self, error: Exception) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(error)

    def _answer(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            status = self._parser.get_status_code()
            self._waiter.set_result(Response(status, self._headers, b"".join(self._body)))

    # The event loop calls these.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are none by inheritance

    def data_received(self, data: bytes) -> None:
        if self._waiter is None or self._waiter.done():
            self.cut()  # nobody asked
            return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(ConnectionError(f"the answer is no HTTP: {error}"))

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True
        bounded = "content-length" in self._headers or "transfer-encoding" in self._headers
        if exc is None and self._headed and not bounded:
            self.kept = False
            self._answer()
        else:
            self._fail(exc or ConnectionResetError("the server has closed the connection"))

    # The parser calls these.

    def on_message_begin(self) -> None:
        self._headers, self._body, self._headed = {}, [], False

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self._headed = self._parser.get_status_code() >= 200

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        if not self._headed:
            return  # an interim answer; the real one follows
        asked = self._waiter is not None and not self._waiter.done()
        self.kept = asked and self._parser.should_keep_alive()
        self._answer()
