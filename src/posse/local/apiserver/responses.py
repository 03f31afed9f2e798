"""Answers on their way out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import msgspec
import yaml

from posse.local.apiserver.requests import Send
from posse.local.apiserver.statuses import Refusal

JSON = b"application/json"
_encode = msgspec.json.Encoder().encode


class Reply:
    """A whole answer."""

    __slots__ = ("body", "content_type", "headers", "status")

    def __init__(
        self,
        status: int,
        body: bytes,
        *,
        content_type: bytes = JSON,
        warnings: Iterable[str] = (),
    ) -> None:
        self.status = status
        self.body = body
        self.content_type = content_type
        self.headers: list[tuple[bytes, bytes]] = []
        self.add_warnings(warnings)

    def add_warnings(self, warnings: Iterable[str]) -> None:
        self.headers += [(b"warning", warning_header(text)) for text in warnings]

    async def send(self, send: Send) -> None:
        await send(
            {
                "type": "http.response.start",
                "status": self.status,
                "headers": [
                    (b"content-type", self.content_type),
                    (b"content-length", b"%d" % len(self.body)),
                    (b"cache-control", b"no-cache, private"),
                    *self.headers,
                ],
            }
        )
        await send({"type": "http.response.body", "body": self.body})

    def as_yaml(self) -> Reply:
        """The same answer written as YAML."""
        if self.content_type == JSON:
            document = yaml.safe_dump(msgspec.json.decode(self.body), sort_keys=False)
            self.body = document.encode()
            self.content_type = b"application/yaml"
        return self


class CutOff(Exception):
    """A stream that ends without having been finished: the connection goes with it."""


class Streamed:
    """An answer that goes on: `produce` is given how to send one chunk."""

    def __init__(
        self,
        produce: Callable[[Callable[[bytes], Awaitable[None]]], Awaitable[None]],
        *,
        content_type: bytes = JSON,
    ) -> None:
        self._produce = produce
        self._content_type = content_type

    async def send(self, send: Send) -> None:
        headers = [(b"content-type", self._content_type), (b"cache-control", b"no-cache, private")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})

        async def chunk(body: bytes) -> None:
            await send({"type": "http.response.body", "body": body, "more_body": True})

        try:
            await self._produce(chunk)
        except CutOff:
            return
        await send({"type": "http.response.body", "body": b""})


Answer = Reply | Streamed


def json_reply(value: Any, status: int = 200, warnings: Iterable[str] = ()) -> Reply:
    return Reply(status, _encode(value), warnings=warnings)


def text_reply(text: str, status: int = 200) -> Reply:
    return Reply(status, text.encode(), content_type=b"text/plain; charset=utf-8")


def refused(refusal: Refusal, warnings: Iterable[str] = ()) -> Reply:
    reply = json_reply(refusal.status, refusal.code, warnings)
    if refusal.retry_after is not None:
        reply.headers.append((b"retry-after", b"%d" % refusal.retry_after))
    if refusal.code == 401:
        reply.headers.append((b"www-authenticate", b"Bearer"))
    return reply


def warning_header(text: str) -> bytes:
    """RFC 7234's Warning as Kubernetes sends it; nothing in it may break out of the header."""
    printable = "".join(c if c.isprintable() else "?" for c in text)
    escaped = printable.replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{escaped}"'.encode()
