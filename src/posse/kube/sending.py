"""Requests and streams, and what may be sent twice.

A GET may, and so may any request that the server refused with 429 and a time to come back, since
it was not executed. Every other write is sent once: if its answer is lost, the caller gets
Unreachable and must read back before deciding again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from posse.kube.errors import TooManyRequests, Unreachable, from_answer
from posse.kube.transport import Response, Transport
from posse.world import World

_ATTEMPTS = 4
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 10.0


class Sender:
    def __init__(self, transport: Transport, world: World) -> None:
        self._transport = transport
        self._world = world

    async def read(
        self, path: str, query: Mapping[str, str] | None = None, *, timeout: float | None = None
    ) -> Response:
        """A GET, sent again a few times while nobody answers or the server asks for patience."""
        pause = _FIRST_PAUSE
        for attempt in range(1, _ATTEMPTS + 1):
            wait = pause
            try:
                answer = await self._send("GET", path, query=query, timeout=timeout)
            except Unreachable:
                if attempt == _ATTEMPTS:
                    raise
            else:
                if answer.status < 300:
                    return answer
                error = from_answer(answer.status, answer.headers, answer.body)
                if attempt == _ATTEMPTS or error.code not in (429, 503):
                    raise error
                wait = pause if error.retry_after is None else error.retry_after
                if wait > _LONGEST_PAUSE:
                    raise error
            await asyncio.sleep(self._world.jitter(wait))
            pause *= 2
        raise AssertionError("the last attempt returns or raises")

    async def write(
        self,
        method: str,
        path: str,
        document: Any,
        *,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
        attempts: int = _ATTEMPTS,
    ) -> Response:
        """A write, sent again only after a 429 that says when: it was then not executed."""
        body = msgspec.json.encode(document)
        while True:
            attempts -= 1
            answer = await self._send(
                method, path, query=query, body=body, content_type=content_type
            )
            if answer.status < 300:
                return answer
            error = from_answer(answer.status, answer.headers, answer.body)
            after = error.retry_after
            if not isinstance(error, TooManyRequests) or after is None:
                raise error
            if attempts <= 0 or after > _LONGEST_PAUSE:
                raise error
            await asyncio.sleep(self._world.jitter(after))

    async def _send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "",
        timeout: float | None = None,
    ) -> Response:
        headers = {"accept": "application/json"}
        if body is not None:
            headers["content-type"] = content_type
        return await self._transport.request(
            method, path, query=query, headers=headers, body=body, timeout=timeout
        )

    @asynccontextmanager
    async def stream(
        self, path: str, query: Mapping[str, str], *, accept: str = "application/json"
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """The chunks of a body that is read as it arrives."""
        headers = {"accept": accept}
        async with self._transport.stream("GET", path, query=query, headers=headers) as stream:
            chunks = stream.chunks()
            try:
                if stream.status >= 300:
                    body = b"".join([chunk async for chunk in chunks])
                    raise from_answer(stream.status, stream.headers, body)
                yield chunks
            finally:
                if isinstance(chunks, AsyncGenerator):
                    await chunks.aclose()
