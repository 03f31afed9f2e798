"""One watch, from its query to its batches of events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing

from posse.kube.decoding import Lines, T, WatchEvent, decode_event
from posse.kube.errors import ApiError, Unauthorized, Undecodable, Unreachable
from posse.kube.sending import Sender
from posse.objects.kinds import Kind

Batch = list[WatchEvent[T]]

_GRACE = 30.0


async def follow(
    sender: Sender, path: str, query: Mapping[str, str], kind: Kind, model: type[T]
) -> AsyncGenerator[Batch[T], None]:
    """The events that arrived together come together, until the server ends the watch.

    A server that in the middle of it no longer knows us is asked once more from where it was: the
    request that opens a watch is the one that can be signed anew.
    """
    asked = dict(query)
    for last in (False, True):
        try:
            async with aclosing(_open(sender, path, asked, kind, model)) as batches:
                async for batch in batches:
                    asked["resourceVersion"] = _newest(batch) or asked["resourceVersion"]
                    yield batch
            return
        except _SignedOut:
            if last:
                raise


async def _open(
    sender: Sender, path: str, query: Mapping[str, str], kind: Kind, model: type[T]
) -> AsyncGenerator[Batch[T], None]:
    lines = Lines()
    deadline = asyncio.get_running_loop().time() + int(query["timeoutSeconds"]) + _GRACE
    async with sender.stream(path, query) as chunks:
        while (chunk := await _next_by(chunks, deadline)) is not None:
            events: Batch[T] = []
            try:
                for line in lines.feed(chunk):
                    events.append(decode_event(line, kind, model))
            except (ApiError, Undecodable) as error:
                # What came before the error is true, and must not be lost with it.
                if events:
                    yield events
                if isinstance(error, Unauthorized):
                    raise _SignedOut(error.code, error.reason, error.message) from error
                raise
            if events:
                yield events
    if lines.rest().strip():
        raise Unreachable(f"a watch of {kind.qualified} was cut in the middle of an event")


class _SignedOut(Unauthorized):
    """A watch that was allowed is no longer."""


def _newest(batch: Batch[T]) -> str:
    return next((e.resource_version for e in reversed(batch) if e.resource_version), "")


async def _next_by(chunks: AsyncIterator[bytes], deadline: float) -> bytes | None:
    """The next chunk or None at the end.

    A server ends a watch at its timeoutSeconds; one that is still silent well after that is gone,
    whatever the socket says.
    """
    try:
        async with asyncio.timeout_at(deadline):
            return await anext(chunks, None)
    except TimeoutError:
        raise Unreachable("a watch outlived its timeout: the server is gone") from None
