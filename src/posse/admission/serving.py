"""The webhook on a socket, over TLS whose certificate may be replaced while it serves."""

from __future__ import annotations

import asyncio
import socket
import ssl

import uvicorn

from posse.admission.app import Webhook
from posse.kube.clients import ClientConnection
from posse.kube.credentials import KeyPair
from posse.kube.servers import PartServer
from posse.kube.tls import load_pair

_MOST_AT_ONCE = 256
_FAREWELL = 5  # seconds for questions under way when the program is asked to end


class Shown:
    """What is shown to whoever connects. Open connections keep what they were shown."""

    def __init__(self) -> None:
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._loaded = asyncio.Event()

    def show(self, certificate: bytes, key: bytes) -> None:
        load_pair(self.context, KeyPair(certificate, key))
        self._loaded.set()

    @property
    def is_loaded(self) -> bool:
        return self._loaded.is_set()

    async def loaded(self) -> None:
        await self._loaded.wait()


async def serve(app: Webhook, bound: socket.socket, shown: Shown) -> None:
    """Until cancelled; questions under way are answered first."""
    config = uvicorn.Config(
        app,
        http=ClientConnection,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=_MOST_AT_ONCE,
        timeout_keep_alive=90,
        timeout_graceful_shutdown=_FAREWELL,
    )
    config.load()
    config.ssl = shown.context
    await PartServer(config).until_cancelled(bound)
