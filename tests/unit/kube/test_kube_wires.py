"""Writes over kept connections: an answer belongs to its request, or there is none."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from posse.kube.config import Settings
from posse.kube.errors import Unreachable
from posse.kube.http import HttpTransport
from tests.unit.kube.serving import Respond, listening, to

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"


class Server:
    """Reads whole requests, one connection after the other, and answers as it is told."""

    def __init__(self, *answers: bytes) -> None:
        self.accepted = 0
        self.bodies: list[bytes] = []
        self.heads: list[bytes] = []
        self._answers = list(answers)

    async def respond(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        while True:
            try:
                head = await reader.readuntil(b"\r\n\r\n")
            except asyncio.IncompleteReadError:
                return
            length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
            self.heads.append(head)
            self.bodies.append(await reader.readexactly(length))
            answer = self._answers.pop(0) if self._answers else OK
            writer.write(answer)
            await writer.drain()
            if b"close" in answer or not answer:
                return


@asynccontextmanager
async def raw(respond: Respond) -> AsyncIterator[HttpTransport]:
    async with (
        listening(respond) as port,
        to(Settings(server=f"http://127.0.0.1:{port}/base/", token="t0k")) as transport,
    ):
        yield transport


async def test_writes_share_a_connection_that_is_kept() -> None:
    server = Server()
    async with raw(server.respond) as transport:
        for number in range(5):
            answer = await transport.request("POST", "/a", body=b"%d" % number, query={"x": "1 2"})
            assert (answer.status, answer.body) == (200, b"{}")
    assert server.accepted == 1
    assert server.bodies == [b"0", b"1", b"2", b"3", b"4"]
    assert server.heads[0].startswith(b"POST /base/a?x=1+2 HTTP/1.1\r\n")
    assert b"authorization: Bearer t0k\r\n" in server.heads[0]
    assert b"user-agent: posse/" in server.heads[0]


async def test_writes_at_the_same_time_have_a_connection_each() -> None:
    arrived, release = 0, asyncio.Event()

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal arrived
        head = await reader.readuntil(b"\r\n\r\n")
        arrived += 1
        if arrived == 3:
            release.set()
        await release.wait()
        name = head.split()[1]
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(name) + name)
        await writer.drain()

    async with raw(respond) as transport:
        answers = await asyncio.gather(
            *(transport.request("PUT", f"/{name}", body=b"") for name in "abc")
        )
    assert [answer.body for answer in answers] == [b"/base/a", b"/base/b", b"/base/c"]


@pytest.mark.parametrize(
    ("sent", "body"),
    [
        (b"HTTP/1.1 201 Created\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n", b"ab"),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\ncontent-length: 1\r\n\r\na", b"a"),
        (b"HTTP/1.1 201 Created\r\nconnection: close\r\n\r\nuntil the end", b"until the end"),
        (b"HTTP/1.1 201 Created\r\ncontent-length: 0\r\n\r\n", b""),
    ],
)
async def test_the_ways_to_send_a_body(sent: bytes, body: bytes) -> None:
    async with raw(Server(sent).respond) as transport:
        answer = await transport.request("POST", "/", body=b"{}")
        assert (answer.status, answer.body) == (201, body)
        assert (await transport.request("POST", "/", body=b"{}")).body == b"{}"


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_a_connection_closed_without_a_word_is_unreachable_and_not_tried_again(
    method: str,
) -> None:
    server = Server(OK, b"")
    async with raw(server.respond) as transport:
        await transport.request(method, "/", body=b"1")
        with pytest.raises(Unreachable):
            await transport.request(method, "/", body=b"2")
        assert (await transport.request(method, "/", body=b"3")).status == 200
    assert server.bodies == [b"1", b"2", b"3"]


@pytest.mark.parametrize(
    "sent",
    [
        b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 9\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n",
        b"\x16\x03\x01 this is close to no HTTP",
    ],
)
async def test_half_an_answer_is_none(sent: bytes) -> None:
    async with raw(Server(sent).respond) as transport:
        with pytest.raises(Unreachable):
            await transport.request("POST", "/", body=b"{}")
        assert (await transport.request("POST", "/", body=b"{}")).status == 200


async def test_an_answer_that_comes_too_late_is_nobodys() -> None:
    bodies: list[bytes] = []

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            try:
                head = await reader.readuntil(b"\r\n\r\n")
            except asyncio.IncompleteReadError:
                return
            bodies.append(head.split()[1])
            if bodies[-1].endswith(b"slow"):
                await asyncio.sleep(0.2)
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n" + bodies[-1][-5:])

    async with raw(respond) as transport:
        with pytest.raises(Unreachable, match="in time"):
            await transport.request("POST", "/-slow", body=b"", timeout=0.05)
        assert (await transport.request("POST", "/-fast", body=b"")).body == b"-fast"
        await asyncio.sleep(0.3)
        assert (await transport.request("POST", "/-next", body=b"")).body == b"-next"


async def test_who_gives_up_leaves_no_answer_behind() -> None:
    server = Server()
    release = asyncio.Event()

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not server.accepted:
            server.accepted += 1
            await reader.readuntil(b"\r\n\r\n")
            await release.wait()
            writer.write(b"HTTP/1.1 500 Wrong\r\ncontent-length: 0\r\n\r\n")
            return
        await server.respond(reader, writer)

    async with raw(respond) as transport:
        task = asyncio.create_task(transport.request("POST", "/", body=b""))
        await asyncio.sleep(0.05)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        release.set()
        assert (await transport.request("POST", "/", body=b"")).status == 200


async def test_what_nobody_asked_for_ends_the_connection() -> None:
    server = Server(OK + b"HTTP/1.1 500 Wrong\r\ncontent-length: 0\r\n\r\n")
    async with raw(server.respond) as transport:
        assert (await transport.request("POST", "/", body=b"")).status == 200
        assert (await transport.request("POST", "/", body=b"")).status == 200
    assert server.accepted == 2


async def test_nobody_listening_is_unreachable() -> None:
    async with to(Settings(server="http://127.0.0.1:1")) as transport:
        with pytest.raises(Unreachable, match=r"127\.0\.0\.1"):
            await transport.request("POST", "/", body=b"")


@pytest.mark.parametrize(
    ("path", "headers"), [("/a b", {}), ("/a\r\nx: y", {}), ("/", {"x": "a\r\ny: b"})]
)
async def test_no_second_line_can_be_smuggled_in(path: str, headers: dict[str, str]) -> None:
    server = Server()
    async with raw(server.respond) as transport:
        with pytest.raises(ValueError, match="line break"):
            await transport.request("POST", path, headers=headers, body=b"")
    assert server.accepted == 0
