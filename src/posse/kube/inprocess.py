"""Requests straight into an ASGI application of the same event loop.

The application runs in a task of its own, as it would behind a socket: a caller who gives up on a
request does not undo it, and one who leaves a stream disconnects it. No thread, no port, no clock,
so a whole cluster fits into one deterministic loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import unquote, urlencode

from posse.kube.errors import Unreachable
from posse.kube.transport import Headers, Query, Response

_log = logging.getLogger(__name__)

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

_ANSWER_TIMEOUT = 30.0
_CHUNKS_AHEAD = 16


class AsgiTransport:
    def __init__(self, app: App, headers: Headers | None = None) -> None:
        self._app = app
        self._headers = dict(headers or {})
        # In order of arrival: closing ends them in the same order every time.
        self._running: dict[Exchange, None] = {}

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
        exchange = self._begin(method, path, query, headers, body)
        try:
            async with asyncio.timeout(_ANSWER_TIMEOUT if timeout is None else timeout):
                await exchange.started()
                content = b"".join([chunk async for chunk in exchange.chunks()])
        except TimeoutError:
            raise Unreachable(f"{method} {path}: no answer in time") from None
        finally:
            exchange.disconnect()
        return Response(exchange.status, exchange.headers, content)

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        headers: Headers | None = None,
        body: bytes | None = None,
    ) -> AsyncIterator[Exchange]:
        exchange = self._begin(method, path, query, headers, body)
        try:
            await exchange.started()
            yield exchange
        finally:
            await exchange.end()

    async def close(self) -> None:
        """Ends what is still running: streams, and requests whose callers gave up."""
        while self._running:
            await next(iter(self._running)).end()

    def _begin(
        self,
        method: str,
        path: str,
        query: Query | None,
        headers: Headers | None,
        body: bytes | None,
    ) -> Exchange:
        sent = {"host": "localhost"} | self._headers | dict(headers or {})
        if body is not None:
            sent["content-length"] = str(len(body))
        scope: dict[str, Any] = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote(path),
            "raw_path": path.encode("ascii"),
            "query_string": urlencode(query or {}).encode("ascii"),
            "root_path": "",
            "headers": [(k.lower().encode(), v.encode("latin-1")) for k, v in sent.items()],
            "client": ("127.0.0.1", 0),
            "server": ("localhost", 80),
        }
        exchange = Exchange(body or b"")
        self._running[exchange] = None
        exchange.run(self._app, scope, done=lambda: self._running.pop(exchange, None))
        return exchange


class Exchange:
    """One request and its response: the application's side and the caller's side of it."""

    def __init__(self, body: bytes) -> None:
        self.status = 0
        self.headers: Headers = {}
        self._body: bytes | None = body
        self._chunks: deque[bytes] = deque()
        self._complete = False
        self._over = False  # the application's task has ended
        self._gone = asyncio.Event()
        self._moved = asyncio.Event()
        self._room = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def run(self, app: App, scope: dict[str, Any], *, done: Callable[[], Any]) -> None:
        self._task = asyncio.create_task(self._serve(app, scope))
        self._task.add_done_callback(lambda _: done())

    async def started(self) -> None:
        """Returns when status and headers are there; Unreachable when they never will be."""
        try:
            async with asyncio.timeout(_ANSWER_TIMEOUT):
                while not self.status:
                    if self._over:
                        raise Unreachable("the server ended without an answer")
                    await self._next_move()
        except TimeoutError:
            raise Unreachable("the server did not begin to answer in time") from None

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body; what has gathered since the last chunk comes as one."""
        while True:
            if self._chunks:
                chunk = b"".join(self._chunks)
                self._chunks.clear()
                self._room.set()
                if chunk:
                    yield chunk
            elif self._complete:
                return
            elif self._over:
                raise Unreachable("the server cut its answer short")
            else:
                await self._next_move()

    def disconnect(self) -> None:
        self._gone.set()
        self._room.set()

    async def end(self) -> None:
        """Disconnects, and returns when the application's task is over."""
        self.disconnect()
        if self._task is None:
            return
        await asyncio.sleep(0)  # lets an application that waits for the disconnect see it
        self._task.cancel()
        await asyncio.wait({self._task})

    async def _next_move(self) -> None:
        self._moved.clear()
        await self._moved.wait()

    async def _serve(self, app: App, scope: dict[str, Any]) -> None:
        try:
            await app(scope, self._receive, self._send)
        except Exception:  # noqa: BLE001 - whatever it is, it is the application's 500
            _log.exception("%s %s failed", scope["method"], scope["path"])
        finally:
            self._over = True
            self._moved.set()
        if not self.status:
            self.status = 500
            self._chunks.append(b"Internal Server Error")
            self._complete = True

    async def _receive(self) -> Message:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        """Takes what the application sends, and lets it wait while the caller is behind."""
        if message["type"] == "http.response.start":
            self.headers = {
                name.decode("latin-1").lower(): value.decode("latin-1")
                for name, value in message.get("headers", ())
            }
            self.status = message["status"]
        elif message["type"] == "http.response.body":
            self._chunks.append(message.get("body", b""))
            self._complete = not message.get("more_body", False)
        self._moved.set()
        if len(self._chunks) >= _CHUNKS_AHEAD and not self._complete and not self._gone.is_set():
            self._room.clear()
            await self._room.wait()
        if self._gone.is_set():
            self._chunks.clear()
