"""What requests are signed with as it changes, and what follows a 401."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import ssl
import stat
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from posse.kube import Cache, connect
from posse.kube.config import Settings, load_kubeconfig
from posse.kube.credentials import StoredSignIn
from posse.kube.errors import ConfigError, SignInFailed, Unauthorized
from posse.kube.impersonating import Impersonation
from posse.kube.plugins import GROUP, Plugin
from posse.objects.kinds import CONFIG_MAP
from posse.world import World
from tests.unit.kube.certificates import Authority
from tests.unit.kube.modelserver import Answer, ModelServer, Request, status
from tests.unit.kube.serving import listening, serving, to

REFUSED = status(401, "Unauthorized")


@pytest.fixture
def server() -> ModelServer:
    return ModelServer()


def accepting(*tokens: str) -> Callable[[Request], Answer | None]:
    accepted = [f"Bearer {token}" for token in tokens]

    def answers(request: Request) -> Answer | None:
        good = request.headers.get("authorization") in accepted
        return None if good else Answer(401, REFUSED)

    return answers


def signatures(server: ModelServer) -> list[str]:
    return [r.headers.get("authorization", "").removeprefix("Bearer ") for r in server.requests]


def overwrite(file: Path, content: str) -> None:
    """In place, at the same size and with the old date: no sign of a change."""
    was = file.stat()
    file.write_text(content)
    os.utime(file, ns=(was.st_atime_ns, was.st_mtime_ns))


def token_plugin(folder: Path, **status_fields: str) -> Plugin:
    """Gives what is in the file `token`, and counts its runs in `runs`."""
    program = folder / "get-token"
    program.write_text(
        f"#!{sys.executable} -IS\n"
        "import json, pathlib\n"
        f"here = pathlib.Path({str(folder)!r})\n"
        "with (here / 'runs').open('a') as runs: runs.write('.')\n"
        f"status = {{'token': (here / 'token').read_text(), **{status_fields!r}}}\n"
        f"print(json.dumps({{'apiVersion': '{GROUP}/v1', 'kind': 'ExecCredential',"
        " 'status': status}))\n"
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return Plugin(user="jane", command=str(program))


def settings_of(kind: str, folder: Path, port: int) -> Settings:
    server = f"http://127.0.0.1:{port}"
    if kind == "file":
        return Settings(server=server, token_file=folder / "token")
    return Settings(server=server, plugin=token_plugin(folder))


both = pytest.mark.parametrize("kind", ["file", "plugin"])


@both
async def test_a_401_is_answered_with_what_is_there_now(
    server: ModelServer, tmp_path: Path, kind: str
) -> None:
    (tmp_path / "token").write_text("old")
    async with serving(server) as port, to(settings_of(kind, tmp_path, port)) as transport:
        server.answers = accepting("old")
        assert (await transport.request("GET", "/x")).status == 404
        overwrite(tmp_path / "token", "new")
        server.answers = accepting("new")
        assert (await transport.request("POST", "/x", body=b"{}")).status == 404
        async with transport.stream("GET", "/x") as stream:
            assert stream.status == 404
    assert signatures(server) == ["old", "old", "new", "new"]
    assert server.requests[2].body == b"{}"


@both
async def test_a_401_at_the_start_of_a_watch(
    server: ModelServer, tmp_path: Path, kind: str
) -> None:
    (tmp_path / "token").write_text("old")
    server.put("configmaps", "a")
    async with serving(server) as port:
        connection = connect(settings_of(kind, tmp_path, port), World.real())
        await connection.list(CONFIG_MAP)
        overwrite(tmp_path / "token", "new")
        server.answers = accepting("new")
        watch = connection.watch(CONFIG_MAP, resource_version="0")
        assert (await anext(watch)).identity.name == "a"
        await watch.aclose()
        await connection.close()
    assert signatures(server) == ["old", "old", "new"]


@both
async def test_a_401_in_the_middle_of_a_watch(
    server: ModelServer, tmp_path: Path, kind: str
) -> None:
    (tmp_path / "token").write_text("old")
    async with serving(server) as port:
        connection = connect(settings_of(kind, tmp_path, port), World.real())
        server.put("configmaps", "a")
        watch = connection.watch(CONFIG_MAP, resource_version="0")
        assert (await anext(watch)).identity.name == "a"
        overwrite(tmp_path / "token", "new")
        server.answers = accepting("new")
        server.tell("ERROR", REFUSED)
        server.close_watches()
        server.put("configmaps", "b")
        assert (await anext(watch)).identity.name == "b"
        await watch.aclose()
        await connection.close()
    assert signatures(server) == ["old", "old", "new"]
    assert [request.query["resourceVersion"] for request in server.requests] == ["0", "1", "1"]


async def test_a_watch_that_is_refused_again_and_again_ends_unauthorized(
    server: ModelServer, tmp_path: Path
) -> None:
    async with serving(server) as port:
        connection = connect(Settings(server=f"http://127.0.0.1:{port}", token="t"), World.real())
        line = json.dumps({"type": "ERROR", "object": REFUSED}).encode() + b"\n"
        server.answers = lambda request: Answer(200, raw=line)
        with pytest.raises(Unauthorized):
            await anext(connection.watch(CONFIG_MAP, resource_version="0"))
        await connection.close()
    assert len(server.requests) == 2


@both
async def test_a_cache_goes_on_with_the_new_token_without_another_list(
    server: ModelServer, tmp_path: Path, kind: str
) -> None:
    (tmp_path / "token").write_text("old")
    server.put("configmaps", "a")
    seen = asyncio.Event()
    async with serving(server) as port:
        connection = connect(settings_of(kind, tmp_path, port), World.real())
        cache = Cache(connection, CONFIG_MAP, dict, on_change=lambda change: seen.set())
        running = asyncio.create_task(cache.run())
        async with asyncio.timeout(20):
            await cache.synced()
            while not server.watchers:  # noqa: ASYNC110 - the server does not tell
                await asyncio.sleep(0.01)
            seen.clear()
            overwrite(tmp_path / "token", "new")
            server.answers = accepting("new")
            server.put("configmaps", "b")
            await seen.wait()
            server.close_watches()
            seen.clear()
            server.put("configmaps", "c")
            await seen.wait()
        running.cancel()
        await asyncio.wait([running])
        await connection.close()
    assert [name for _, name in cache.objects] == ["a", "b", "c"]
    assert [request.watching for request in server.requests].count(False) == 1


@both
async def test_a_second_401_is_the_answer(server: ModelServer, tmp_path: Path, kind: str) -> None:
    (tmp_path / "token").write_text("old")
    server.answers = accepting("none")
    async with serving(server) as port:
        connection = connect(settings_of(kind, tmp_path, port), World.real())
        with pytest.raises(Unauthorized):
            await connection.get(CONFIG_MAP, "a", "ns")
        assert signatures(server) == ["old"]  # the same again is not worth sending
        overwrite(tmp_path / "token", "new")
        with pytest.raises(Unauthorized):
            await connection.get(CONFIG_MAP, "a", "ns")
        await connection.close()
    assert signatures(server) == ["old", "old", "new"]


async def test_many_refused_at_once_share_one_run(server: ModelServer, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("old")
    async with serving(server) as port, to(settings_of("plugin", tmp_path, port)) as transport:
        await transport.request("GET", "/x")
        (tmp_path / "token").write_text("new")
        server.answers = accepting("new")
        found = await asyncio.gather(*(transport.request("GET", "/x") for _ in range(20)))
    assert [answer.status for answer in found] == [404] * 20
    assert (tmp_path / "runs").read_text() == ".."


async def test_a_plugin_that_fails_after_a_401_leaves_the_401(
    server: ModelServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "token").write_text("old")
    async with serving(server) as port, to(settings_of("plugin", tmp_path, port)) as transport:
        await transport.request("GET", "/x")
        (tmp_path / "token").unlink()
        server.answers = accepting("new")
        assert (await transport.request("GET", "/x")).status == 401
    assert "exit code 1" in caplog.text
    assert len(server.requests) == 2


async def test_a_plugin_that_fails_at_first_sends_nothing(
    server: ModelServer, tmp_path: Path
) -> None:
    async with serving(server) as port, to(settings_of("plugin", tmp_path, port)) as transport:
        with pytest.raises(SignInFailed, match="jane"):
            await transport.request("GET", "/x")
        with pytest.raises(ConfigError):
            async with transport.stream("GET", "/x"):
                pytest.fail("there is nothing to sign it with")
    assert server.requests == []


async def test_a_plugin_of_a_kubeconfig_from_end_to_end(
    server: ModelServer, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("t0k")
    token_plugin(tmp_path)
    async with serving(server) as port:
        user = {"exec": {"apiVersion": f"{GROUP}/v1", "command": "./get-token", "args": None,
                         "interactiveMode": "Never"}}  # fmt: skip
        document = {
            "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
            "users": [{"name": "u", "user": user | {"as": "jane", "as-groups": ["a", "b"]}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        }
        (tmp_path / "config").write_text(yaml.safe_dump(document))
        async with to(load_kubeconfig([tmp_path / "config"])) as transport:
            await transport.request("GET", "/x")
    assert signatures(server) == ["t0k"]
    assert server.requests[0].headers["impersonate-user"] == "jane"


async def test_each_value_of_who_to_act_as_is_a_header() -> None:
    heads: list[str] = []

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")

    async with listening(respond) as port:
        acting_as = Impersonation(user="jane", groups=("a", "b"), extra=(("k", ("v", "w")),))
        settings = Settings(server=f"http://127.0.0.1:{port}", token="t", acting_as=acting_as)
        async with to(settings) as transport:
            await transport.request("GET", "/", headers={"accept": "application/json"})
    lines = [line for line in heads[0].split("\r\n") if line.startswith("Impersonate")]
    assert lines == [
        "Impersonate-User: jane", "Impersonate-Group: a", "Impersonate-Group: b",
        "Impersonate-Extra-k: v", "Impersonate-Extra-k: w",
    ]  # fmt: skip


async def test_a_name_and_a_password(server: ModelServer) -> None:
    async with serving(server) as port:
        settings = Settings(server=f"http://127.0.0.1:{port}", username="me", password="p:ü")
        async with to(settings) as transport:
            await transport.request("GET", "/x")
    assert signatures(server) == ["Basic bWU6cDrDvA=="]


@asynccontextmanager
async def knowing(
    authority: Authority, folder: Path, known: list[str]
) -> AsyncIterator[tuple[Settings, list[str]]]:
    """A server that knows clients by the names on their certificates, and the names it saw."""
    seen: list[str] = []

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        certificate = writer.get_extra_info("peercert")
        name = dict(pair for part in certificate["subject"] for pair in part)["commonName"]
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                seen.append(name)
                line = "200 OK" if name in known else "401 Unauthorized"
                writer.write(f"HTTP/1.1 {line}\r\ncontent-length: 2\r\n\r\n{{}}".encode())
        except (asyncio.IncompleteReadError, ConnectionError):
            return

    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=authority.pem.decode())
    tls.verify_mode = ssl.CERT_REQUIRED
    tls.load_cert_chain(*authority.write(folder, "localhost", address="127.0.0.1"))
    async with listening(respond, tls) as port:
        yield Settings(server=f"https://127.0.0.1:{port}", ca_data=authority.pem), seen


def put(folder: Path, certificate: bytes, key: bytes) -> None:
    (folder / "crt").write_bytes(certificate)
    (folder / "key").write_bytes(key)


def rotating(settings: Settings, folder: Path) -> Settings:
    return Settings(
        server=settings.server,
        ca_data=settings.ca_data,
        client_cert_file=folder / "crt",
        client_key_file=folder / "key",
    )


async def test_a_replaced_client_certificate_is_used_at_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    authority = Authority()
    first, second = authority.issue("first"), authority.issue("second")
    put(tmp_path, *first)
    async with (
        knowing(authority, tmp_path, ["first", "second"]) as (settings, seen),
        to(rotating(settings, tmp_path)) as transport,
    ):
        await transport.request("GET", "/")
        (tmp_path / "crt").write_bytes(second[0])
        with caplog.at_level(logging.WARNING):
            await transport.request("GET", "/")  # the key is still the old one
            await transport.request("GET", "/")
        assert caplog.text.count("client certificate cannot be used") == 1
        (tmp_path / "key").write_bytes(second[1])
        await transport.request("GET", "/")
    assert seen == ["first", "first", "first", "second"]


async def test_a_plugin_may_give_certificates_which_a_401_renews(tmp_path: Path) -> None:
    authority = Authority()

    def gives(name: str) -> None:
        certificate, key = (part.decode() for part in authority.issue(name))
        token_plugin(tmp_path, clientCertificateData=certificate, clientKeyData=key)

    gives("first")
    (tmp_path / "token").write_text("")
    known = ["first"]
    async with knowing(authority, tmp_path, known) as (settings, seen):
        signed = Settings(
            server=settings.server,
            ca_data=settings.ca_data,
            plugin=Plugin(user="jane", command=str(tmp_path / "get-token")),
        )
        async with to(signed) as transport:
            assert (await transport.request("GET", "/")).status == 200
            known[:] = ["second"]
            gives("second")
            assert (await transport.request("GET", "/")).status == 200
            async with transport.stream("GET", "/") as stream:
                assert stream.status == 200
    assert seen == ["first", "first", "second", "second"]


async def test_a_certificate_of_a_plugin_that_cannot_be_used_is_not_shown(tmp_path: Path) -> None:
    plugin = token_plugin(tmp_path, clientCertificateData="hush", clientKeyData="hush")
    (tmp_path / "token").write_text("t")
    async with to(Settings(server="https://127.0.0.1:1", plugin=plugin)) as transport:
        with pytest.raises(SignInFailed, match="client certificate cannot be used") as caught:
            await transport.request("GET", "/")
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "words"),
    [("", "empty"), (" \n", "empty"), ("hush\nhush", "no token has"), ("hü sh", "no token has")],
)
def test_a_token_file_without_a_token_is_refused_and_not_shown(
    tmp_path: Path, content: str, words: str
) -> None:
    (tmp_path / "token").write_text(content)
    with pytest.raises(ConfigError, match=words) as caught:
        StoredSignIn(Settings(server="https://h", token_file=tmp_path / "token"))
    assert "sh" not in str(caught.value).replace(str(tmp_path), "")


async def test_a_token_file_that_spoils_leaves_the_token_and_says_so_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "token").write_text("good")
    sign_in = StoredSignIn(Settings(server="https://h", token_file=tmp_path / "token"))
    for content in ("", "", "hush hush", "hush hush"):
        (tmp_path / "token").write_text(content)
        for _ in range(2):
            assert (await sign_in.current()).authorization == "Bearer good"
    assert len(caplog.records) == 2
    assert "hush" not in caplog.text
    (tmp_path / "token").write_text("better")
    assert (await sign_in.current()).authorization == "Bearer better"


async def test_a_token_beside_a_file_serves_until_the_file_is_there(tmp_path: Path) -> None:
    settings = Settings(server="https://h", token="written", token_file=tmp_path / "token")
    sign_in = StoredSignIn(settings)
    assert (await sign_in.current()).authorization == "Bearer written"
    (tmp_path / "token").write_text("filed")
    assert (await sign_in.current()).authorization == "Bearer filed"


def test_nothing_secret_is_shown() -> None:
    settings: dict[str, Any] = {"token": "hush", "password": "hush", "client_key_data": b"hush"}
    assert "hush" not in repr(Settings(server="https://h", **settings))
    signed = StoredSignIn(Settings(server="https://h", token="hush"))
    assert "hush" not in repr(signed.known)
