"""Over real sockets on loopback: TLS, tokens, streams, and the ways an answer can fail to come."""

from __future__ import annotations

import asyncio
import gzip
import os
import ssl
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from posse.kube import connect
from posse.kube.config import ConfigError, Settings
from posse.kube.connection import Connection
from posse.kube.errors import Unreachable
from posse.kube.http import HttpTransport
from posse.kube.transport import may_leave
from posse.objects.kinds import CONFIG_MAP
from posse.world import World
from tests.unit.kube.certificates import Authority
from tests.unit.kube.modelserver import Answer, ModelServer
from tests.unit.kube.serving import Respond, listening, serving, to


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture
def server() -> ModelServer:
    return ModelServer()


@asynccontextmanager
async def raw(respond: Respond) -> AsyncIterator[HttpTransport]:
    """A server of bare sockets, and a transport to it."""
    async with (
        listening(respond) as port,
        to(Settings(server=f"http://127.0.0.1:{port}")) as transport,
    ):
        yield transport


async def test_the_verbs_over_tls_with_a_token(
    server: ModelServer, authority: Authority, tmp_path: Path
) -> None:
    certificate, key = authority.write(tmp_path, "localhost", address="127.0.0.1")
    async with serving(server, ssl_certfile=certificate, ssl_keyfile=key) as port:
        connection = connect(
            Settings(server=f"https://127.0.0.1:{port}/", ca_data=authority.pem, token="t0k"),
            World.real(),
        )
        await connection.create(CONFIG_MAP, {"metadata": {"name": "a b", "namespace": "ns"}})
        assert (await connection.get(CONFIG_MAP, "a b", "ns"))["metadata"]["uid"] == "u1"
        watch = connection.watch(CONFIG_MAP, resource_version="0")
        assert (await anext(watch)).type == "ADDED"
        server.put("configmaps", "b")
        assert (await anext(watch)).resource_version == "2"
        await watch.aclose()
        await connection.close()
    assert {request.headers["authorization"] for request in server.requests} == {"Bearer t0k"}
    assert server.requests[0].headers["user-agent"].startswith("posse/")


async def test_a_server_of_another_authority_is_not_trusted(
    server: ModelServer, authority: Authority, tmp_path: Path
) -> None:
    certificate, key = Authority("stranger").write(tmp_path, "localhost", address="127.0.0.1")
    async with serving(server, ssl_certfile=certificate, ssl_keyfile=key) as port:
        url = f"https://127.0.0.1:{port}"
        async with to(Settings(server=url, ca_data=authority.pem, token="t")) as transport:
            with pytest.raises(Unreachable, match="certificate"):
                await transport.request("GET", "/")
        assert server.requests == []
        async with to(Settings(server=url, insecure=True)) as transport:
            assert (await transport.request("GET", "/")).status == 404


async def test_a_server_known_by_another_name(
    server: ModelServer, authority: Authority, tmp_path: Path
) -> None:
    certificate, key = authority.write(tmp_path, "inner.example")
    (tmp_path / "ca.crt").write_bytes(authority.pem)
    async with serving(server, ssl_certfile=certificate, ssl_keyfile=key) as port:
        url = f"https://127.0.0.1:{port}"
        async with to(Settings(server=url, ca_file=tmp_path / "ca.crt")) as transport:
            with pytest.raises(Unreachable):
                await transport.request("GET", "/")
        named = Settings(server=url, ca_file=tmp_path / "ca.crt", tls_server_name="inner.example")
        async with to(named) as transport:
            assert (await transport.request("GET", "/")).status == 404
            async with transport.stream("GET", "/") as stream:
                assert stream.status == 404


async def test_client_certificates_from_files_and_from_data(
    server: ModelServer,
    authority: Authority,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    certificate, key = authority.write(tmp_path, "localhost", address="127.0.0.1")
    mine, my_key = authority.write(tmp_path, "me")
    (tmp_path / "ca.crt").write_bytes(authority.pem)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    modes: list[int] = []
    load = ssl.SSLContext.load_cert_chain

    def spy(self: ssl.SSLContext, certfile: str, *rest: Any, **named: Any) -> None:
        modes.append(Path(certfile).stat().st_mode & 0o777)
        load(self, certfile, *rest, **named)

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", spy)
    async with serving(
        server,
        ssl_certfile=certificate,
        ssl_keyfile=key,
        ssl_ca_certs=str(tmp_path / "ca.crt"),
        ssl_cert_reqs=ssl.CERT_REQUIRED,
    ) as port:
        modes.clear()
        base = Settings(server=f"https://127.0.0.1:{port}", ca_data=authority.pem)
        async with to(base) as transport:
            with pytest.raises(Unreachable):
                await transport.request("GET", "/")
        for options in (
            {"client_cert_file": mine, "client_key_file": my_key},
            {"client_cert_data": mine.read_bytes(), "client_key_data": my_key.read_bytes()},
            {"client_cert_file": mine, "client_key_data": my_key.read_bytes()},
        ):
            settings = Settings(server=base.server, ca_data=authority.pem, **options)
            async with to(settings) as transport:
                assert (await transport.request("GET", "/")).status == 404
    assert modes == [0o600] * 3
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"ca_data": b"no certificate"}, "certificate authority"),
        ({"ca_file": Path("/nonexistent/ca")}, "certificate authority"),
        ({"client_cert_data": b"x"}, "go together"),
        ({"client_cert_data": b"x", "client_key_data": b"y"}, "client certificate"),
        ({"token_file": Path("/nonexistent/token")}, "cannot be read"),
        ({"server": "ftp://x"}, "not the address"),
        ({"server": "https://"}, "not the address"),
        ({"server": "https://h:port"}, "not the address"),
    ],
)
def test_settings_that_cannot_work_are_refused_in_one_line(
    options: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        HttpTransport(Settings(**({"server": "https://h"} | options)))
    assert "\n" not in str(caught.value)


async def test_a_token_file_is_read_again_when_it_is_replaced(
    server: ModelServer, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("first\n")
    async with serving(server) as port:
        settings = Settings(server=f"http://127.0.0.1:{port}", token_file=token)
        async with to(settings) as transport:
            await transport.request("GET", "/")
            fresh = tmp_path / "fresh"
            fresh.write_text("second")
            fresh.replace(token)
            await transport.request("GET", "/")
            token.unlink()
            await transport.request("GET", "/")
    assert [request.headers["authorization"] for request in server.requests] == [
        "Bearer first", "Bearer second", "Bearer second",
    ]  # fmt: skip


async def test_a_server_below_a_path_and_exact_queries(server: ModelServer) -> None:
    async with serving(server) as port:
        settings = Settings(server=f"127.0.0.1:{port}/k8s/clusters/c-1/")
        async with to(settings) as transport:
            await transport.request(
                "GET", "/api/v1/a%2Fb", query={"labelSelector": "a=b+c&d,e in (ü)"}
            )
    asked = server.requests[0]
    assert asked.path == "/k8s/clusters/c-1/api/v1/a/b"
    assert asked.query == {"labelSelector": "a=b+c&d,e in (ü)"}


async def test_compressed_answers_are_unpacked(server: ModelServer) -> None:
    server.answers = lambda request: Answer(
        200, raw=gzip.compress(b'{"a":1}'), headers={"content-encoding": "gzip"}
    )
    async with serving(server) as port, to(Settings(server=f"http://127.0.0.1:{port}")) as client:
        assert (await client.request("GET", "/")).body == b'{"a":1}'


async def test_a_redirect_takes_no_token_anywhere(server: ModelServer) -> None:
    server.answers = lambda request: Answer(302, raw=b"", headers={"location": "/elsewhere"})
    settings_of = "http://127.0.0.1:{}".format
    async with serving(server) as port, to(Settings(server=settings_of(port), token="t")) as client:
        assert (await client.request("GET", "/")).status == 302
    assert [request.path for request in server.requests] == ["/"]


async def test_connections_are_kept_and_used_again() -> None:
    accepted = 0

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal accepted
        accepted += 1
        while await reader.readuntil(b"\r\n\r\n"):
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")

    async def until_closed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await respond(reader, writer)
        except asyncio.IncompleteReadError:
            return

    async with raw(until_closed) as transport:
        for _ in range(5):
            assert (await transport.request("GET", "/")).body == b"{}"
        async with transport.stream("GET", "/") as stream:
            assert [chunk async for chunk in stream.chunks()] == [b"{}"]
        await transport.request("GET", "/")
    assert accepted == 1


async def test_nobody_listening_is_unreachable() -> None:
    async with to(Settings(server="http://127.0.0.1:1")) as transport:
        with pytest.raises(Unreachable, match=r"127\.0\.0\.1:\d+: connection refused"):
            await transport.request("GET", "/")
        with pytest.raises(Unreachable):
            async with transport.stream("GET", "/"):
                pytest.fail("there is no server")


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE"])
async def test_a_connection_closed_without_a_word_is_unreachable_and_not_tried_again(
    method: str,
) -> None:
    """The first answer is good, so the second request goes out on a connection that was kept."""
    heads: list[bytes] = []

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")
        heads.append(await reader.readuntil(b"\r\n\r\n"))

    async with raw(respond) as transport:
        await transport.request("GET", "/first")
        with pytest.raises(Unreachable):
            await transport.request(method, "/second")
    assert len(heads) == 2


async def test_silence_is_unreachable_after_the_timeout() -> None:
    release = asyncio.Event()

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await release.wait()

    async with raw(respond) as transport:
        with pytest.raises(Unreachable, match="in time"):
            await transport.request("GET", "/", timeout=0.1)
        release.set()


@pytest.mark.parametrize(
    "sent",
    [
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc",
    ],
)
async def test_a_stream_that_is_cut_is_unreachable(sent: bytes) -> None:
    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(sent)
        await writer.drain()

    async with raw(respond) as transport:
        seen = []
        with pytest.raises(Unreachable):
            async with transport.stream("GET", "/") as stream:
                async for chunk in stream.chunks():
                    seen.append(chunk)  # noqa: PERF401 - it ends by raising
        assert b"".join(seen) in (b"abc", b"")
        with pytest.raises(Unreachable):
            await transport.request("GET", "/")


async def test_leaving_a_stream_closes_its_connection() -> None:
    closed = asyncio.Event()

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n")
        assert await reader.read() == b""
        closed.set()

    async with raw(respond) as transport:
        async with transport.stream("GET", "/") as stream:
            assert await anext(aiter(stream.chunks())) == b"a"
        await asyncio.wait_for(closed.wait(), 5)


async def test_an_answer_that_is_no_http_is_unreachable() -> None:
    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(os.urandom(64))

    async with raw(respond) as transport:
        with pytest.raises(Unreachable):
            await transport.request("GET", "/")


@pytest.mark.parametrize("allowed", [True, False])
async def test_a_body_is_asked_about_as_it_leaves(server: ModelServer, allowed: bool) -> None:
    asked: list[int] = []

    def permitted() -> bool:
        asked.append(len(server.requests))
        return allowed

    async with (
        serving(server) as port,
        to(Settings(server=f"http://127.0.0.1:{port}")) as transport,
    ):
        connection = Connection(transport, World.real())
        permission = may_leave.set(permitted)
        try:
            made = {"metadata": {"name": "a", "namespace": "ns"}}
            if allowed:
                await connection.create(CONFIG_MAP, made)
            else:
                with pytest.raises(Unreachable):
                    await transport.request("POST", "/api/v1/namespaces/ns/configmaps", body=b"{}")
        finally:
            may_leave.reset(permission)
        assert asked == [0]
        assert len(server.requests) == (1 if allowed else 0)
        # Reading goes on over the same transport.
        assert (await transport.request("GET", "/api/v1/configmaps")).status == 200


@pytest.mark.parametrize(
    ("content", "why"),
    [(None, "No such file or directory"), ("not a certificate", "no certificate")],
)
def test_an_authority_that_cannot_be_used_is_named(
    tmp_path: Path, content: str | None, why: str
) -> None:
    file = tmp_path / "ca.crt"
    if content is not None:
        file.write_text(content)
    with pytest.raises(ConfigError, match=f"authority in {file} cannot be used: .*{why}"):
        HttpTransport(Settings(server="https://127.0.0.1:1", ca_file=file))
