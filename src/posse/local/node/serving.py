"""An ASGI application on a loopback socket with TLS, inside an event loop that others share."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import uvicorn


class _Server(uvicorn.Server):
    """Signals belong to the program, not to one of its parts."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def listen(port: int, host: str = "127.0.0.1") -> socket.socket:
    """A bound socket; port 0 takes a free one. OSError when the port is taken."""
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
    except OSError:
        bound.close()
        raise
    return bound


async def serve(app: Any, bound: socket.socket, *, certificate: Path, key: Path) -> None:
    """Serve until cancelled; open streams are cut then."""
    server = _Server(
        uvicorn.Config(
            app,
            lifespan="off",
            log_level="warning",
            access_log=False,
            server_header=False,
            ssl_certfile=str(certificate),
            ssl_keyfile=str(key),
            timeout_graceful_shutdown=1,
        )
    )
    serving = asyncio.create_task(server.serve(sockets=[bound]))
    try:
        await asyncio.shield(serving)
    finally:
        server.should_exit = True
        await serving
