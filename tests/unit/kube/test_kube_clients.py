"""Clients that say nothing, or too much, before they have asked for anything."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from uvicorn import Config
from uvicorn.server import ServerState

from posse.kube.clients import ClientConnection

pytestmark = pytest.mark.looptime

REQUEST = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"


class Line(asyncio.Transport):
    """The server's end of a socket, as far as a protocol sees it."""

    def __init__(self) -> None:
        super().__init__({"sockname": ("127.0.0.1", 1), "peername": ("127.0.0.1", 2)})
        self.said = b""
        self.closed = False

    def write(self, data: Any) -> None:
        self.said += bytes(data)

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


async def _application(scope: Any, receive: Any, send: Any) -> None:
    await send(
        {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]}
    )
    await send({"type": "http.response.body", "body": b"ok"})


def client() -> tuple[ClientConnection, Line]:
    config = Config(_application, log_config=None, timeout_keep_alive=120)
    config.load()
    connection = ClientConnection(config=config, server_state=ServerState(), app_state={})
    line = Line()
    connection.connection_made(line)
    return connection, line


async def test_a_client_that_says_nothing_is_not_waited_for() -> None:
    _, line = client()
    await asyncio.sleep(30)
    assert not line.closed
    await asyncio.sleep(5)
    assert line.closed


async def test_a_client_that_says_it_slowly_is_not_waited_for() -> None:
    connection, line = client()
    for byte in REQUEST:
        if line.closed:
            break
        connection.data_received(bytes([byte]))
        await asyncio.sleep(1)
    assert line.closed
    assert line.said == b""


async def test_a_head_without_end_is_refused() -> None:
    connection, line = client()
    connection.data_received(REQUEST)
    for _ in range(20):
        connection.data_received(b"X: " + b"y" * 65_536 + b"\r\n")
        if line.closed:
            break
    assert line.closed
    assert line.said.startswith(b"HTTP/1.1 431 ")


async def test_a_client_may_think_between_its_requests() -> None:
    connection, line = client()
    for _ in range(3):
        connection.data_received(REQUEST + b"\r\n")
        await asyncio.sleep(100)
    assert not line.closed
    assert line.said.count(b"HTTP/1.1 200 OK") == 3
