"""Servers on loopback for tests over real sockets, and a transport to each."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import uvicorn

from posse.kube.config import Settings
from posse.kube.http import HttpTransport

Respond = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serving(app: Any, **options: Any) -> AsyncIterator[int]:
    """The port of an ASGI application."""
    config = uvicorn.Config(app, port=0, log_level="error", lifespan="off", **options)
    program = uvicorn.Server(config)
    task = asyncio.create_task(program._serve())
    while not program.started:  # noqa: ASYNC110 - uvicorn tells in no other way
        await asyncio.sleep(0.01)
    try:
        yield program.servers[0].sockets[0].getsockname()[1]
    finally:
        program.should_exit = program.force_exit = True
        await task


@asynccontextmanager
async def listening(respond: Respond, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """The port of a server of bare sockets."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await respond(reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


@asynccontextmanager
async def to(settings: Settings) -> AsyncIterator[HttpTransport]:
    transport = HttpTransport(settings)
    try:
        yield transport
    finally:
        await transport.close()
