"""One client's connection: the head of a request is of bounded size and comes in bounded time.

Whoever reaches the port may connect, token or not. Nobody who says little, says it slowly or
never stops talking may take memory or sockets from the others.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_LARGEST_HEAD = 1 << 20
_HEAD_WITHIN = 32.0  # seconds
_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-type: text/plain; charset=utf-8\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
)


class ClientConnection(HttpToolsProtocol):
    _head = 0  # bytes of a head that is not whole yet
    _in_head = True
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_came()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._in_head:
            self._head += len(data)
            if self._head > _LARGEST_HEAD:
                self.transport.write(_TOO_LARGE)
                self.transport.close()
                return
        super().data_received(data)

    def on_message_begin(self) -> None:
        self._head = 0
        self._expect_head()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._head_came()
        super().on_headers_complete()

    def _expect_head(self) -> None:
        self._in_head = True
        if self._deadline is None:
            self._deadline = self.loop.call_later(_HEAD_WITHIN, self._give_up)

    def _head_came(self) -> None:
        self._in_head = False
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        self._deadline = None
        self.transport.close()
