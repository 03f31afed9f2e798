"""One HTTP request as the handlers see it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qsl, unquote

from posse.local.apiserver import statuses

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

BODY_LIMIT = 3 << 20
_NO = ("0", "false")


class Disconnected(Exception):
    """The client went away before it had said what it wants."""


class Request:
    """`segments` are the decoded parts of the path: a slash inside a name stays inside it."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.method: str = scope["method"]
        raw: bytes = scope.get("raw_path") or b""
        path = raw.partition(b"?")[0].decode("latin-1")
        self.path = path or scope["path"]
        parts = self.path.split("/")
        self.segments = [unquote(part) if path else part for part in parts if part]
        self.headers: dict[str, str] = {
            name.decode("latin-1").lower(): value.decode("latin-1")
            for name, value in scope["headers"]
        }
        query = scope.get("query_string", b"")
        self.query: dict[str, str] = {}
        if query:
            for name, value in parse_qsl(query.decode("latin-1"), keep_blank_values=True):
                self.query.setdefault(name, value)
        self.receive = receive
        self.user = ""
        self.warnings: list[str] = []
        """What the client is told besides the answer, whichever it is."""

    def header(self, name: str) -> str:
        return self.headers.get(name, "")

    def flag(self, name: str) -> bool | None:
        """A boolean of the query: whatever does not say no says yes, a name alone included."""
        value = self.query.get(name)
        return None if value is None else value.lower() not in _NO

    def whole(self, name: str) -> int | None:
        """An integer of the query; absent and empty are the same."""
        value = self.query.get(name)
        if not value:
            return None
        digits = value[1:] if value[0] in "+-" else value
        if not (digits.isascii() and digits.isdigit()) or len(digits) > 18:
            raise statuses.bad_request(f'strconv.ParseInt: parsing "{value}": invalid syntax')
        return int(value)

    async def body(self) -> bytes:
        """The whole body, never more than the limit in memory."""
        declared = self.headers.get("content-length", "")
        if declared.isdigit() and int(declared) > BODY_LIMIT:
            raise statuses.too_large(BODY_LIMIT)
        chunks: list[bytes] = []
        size = 0
        while True:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise Disconnected
            chunk: bytes = message.get("body", b"")
            size += len(chunk)
            if size > BODY_LIMIT:
                raise statuses.too_large(BODY_LIMIT)
            chunks.append(chunk)
            if not message.get("more_body", False):
                return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    async def gone(self) -> None:
        """Returns when the client has gone away."""
        while (await self.receive())["type"] != "http.disconnect":
            continue
