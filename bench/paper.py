"""An API server of paper: it lists what it was given and never tells of anything new.

Enough for a scheduler to begin its work in this process, without the memory and the time of a
server beside it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from posse.kube.transport import Headers, Query, Response, Stream
from posse.objects.kinds import Kind

Document = dict[str, Any]

_NOT_FOUND = msgspec.json.encode(
    {"kind": "Status", "status": "Failure", "reason": "NotFound", "message": "no such", "code": 404}
)


class Paper:
    """`collections`: how many objects there are of each kind, and what the one of a number is."""

    def __init__(self, collections: dict[Kind, tuple[int, Callable[[int], Document]]]) -> None:
        # CPU seconds that went into the pages, which are no work of whoever reads them.
        self.spent = 0.0
        self._lists = {kind.path(): made for kind, made in collections.items()}
        self._served: dict[str, list[Document]] = {}
        for kind in collections:
            root = kind.path().rpartition("/")[0]
            self._served.setdefault(root, []).append({"name": kind.plural, "kind": kind.kind})

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
        await asyncio.sleep(0)
        if path in self._served:
            return Response(200, {}, msgspec.json.encode({"resources": self._served[path]}))
        if path in self._lists:
            return Response(200, {}, self._page(path, query or {}))
        return Response(404, {}, _NOT_FOUND)

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
        yield _Silence()

    async def close(self) -> None:
        pass

    def _page(self, path: str, query: Query) -> bytes:
        began = time.process_time()
        number, make = self._lists[path]
        begin = int(query.get("continue", "0"))
        end = min(number, begin + int(query.get("limit", number)))
        more = str(end) if end < number else ""
        items = [make(each) for each in range(begin, end)]
        meta = {"resourceVersion": "1", "continue": more}
        page = msgspec.json.encode({"metadata": meta, "items": items})
        self.spent += time.process_time() - began
        return page


class _Silence:
    def __init__(self) -> None:
        self.status = 200
        self.headers: Headers = {}

    async def chunks(self) -> AsyncIterator[bytes]:
        await asyncio.Event().wait()
        yield b""
