"""An ASGI application on a loopback socket with TLS, inside an event loop that others share."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import uvicorn

from posse.kube.servers import PartServer


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
    server = PartServer(
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
    await server.until_cancelled(bound)
