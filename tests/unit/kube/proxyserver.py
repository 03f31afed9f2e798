"""A forward proxy on loopback: tunnels by CONNECT, and plain requests by their absolute URL."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from tests.unit.kube.serving import listening


class ProxyServer:
    """`refuses` is the status line of every answer, if it is set."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.refuses = ""

    @asynccontextmanager
    async def running(self, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
        async with listening(self._serve, tls) as port:
            yield f"{'http' if tls is None else 'https'}://127.0.0.1:{port}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        line, *rest = head.strip().split("\r\n")
        method, target, _ = line.split()
        self.asked.append(f"{method} {target}")
        self.headers.append({n.lower(): v for n, v in (field.split(": ", 1) for field in rest)})
        if self.refuses:
            writer.write(f"HTTP/1.1 {self.refuses}\r\ncontent-length: 0\r\n\r\n".encode())
            await writer.drain()
            return
        parts = urlsplit(f"//{target}" if method == "CONNECT" else target)
        there, onward = await asyncio.open_connection(parts.hostname, parts.port)
        if method == "CONNECT":
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            onward.write(head.replace(target, parts.path, 1).encode())
        await asyncio.gather(_pump(reader, onward), _pump(there, writer))


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    try:
        while data := await source.read(1 << 16):
            sink.write(data)
            await sink.drain()
    except (ConnectionError, ssl.SSLError):
        return  # either side may leave without a word
    finally:
        sink.close()
