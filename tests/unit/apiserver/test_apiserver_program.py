"""The program as a process: TLS, a graceful end, and nothing acknowledged is ever lost."""

from __future__ import annotations

import asyncio
import json
import signal
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from posse.kube.certificates import create_authority
from posse.kube.config import Settings
from posse.kube.errors import Unreachable
from posse.kube.http import HttpTransport
from posse.world import World
from tests.unit.apiserver.asking import CONFIG_MAPS, TOKEN, config_map

pytestmark = pytest.mark.process

PROGRAM = """
import asyncio, json, sys
from pathlib import Path
from posse.local.apiserver.program import ApiServerConfig, run
from posse.local.supervisor import lifeline
from posse.world import World

home, token = Path(sys.argv[1]), sys.argv[2]
config = ApiServerConfig(
    data_dir=home / "data",
    certificate=home / "server.crt",
    key=home / "server.key",
    tokens={token: "tester"},
    on_ready=lambda port: print(port, flush=True),
)
asyncio.run(lifeline.hold(run(config, World.real())))
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    authority = create_authority(World.real())
    certificate, key = authority.issue(["localhost"], ["127.0.0.1"], days=1)
    (tmp_path / "ca.crt").write_bytes(authority.certificate_pem)
    (tmp_path / "server.crt").write_bytes(certificate)
    (tmp_path / "server.key").write_bytes(key)
    return tmp_path


class Running:
    def __init__(self, process: asyncio.subprocess.Process, transport: HttpTransport) -> None:
        self.process = process
        self.transport = transport

    async def post(self, name: str) -> int:
        body = json.dumps(config_map(name)).encode()
        headers = {"content-type": "application/json"}
        said = await self.transport.request("POST", CONFIG_MAPS, headers=headers, body=body)
        return said.status

    async def names(self) -> list[str]:
        said = await self.transport.request("GET", CONFIG_MAPS)
        return [one["metadata"]["name"] for one in json.loads(said.body)["items"]]


@asynccontextmanager
async def running(home: Path) -> AsyncIterator[Running]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PROGRAM, str(home), TOKEN, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(30):
            port = int(await process.stdout.readline())
        settings = Settings(
            server=f"https://127.0.0.1:{port}", ca_file=home / "ca.crt", token=TOKEN
        )
        transport = HttpTransport(settings)
        try:
            yield Running(process, transport)
        finally:
            await transport.close()
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def test_it_serves_ends_gracefully_and_comes_back_with_everything(home: Path) -> None:
    async with running(home) as server:
        assert await server.post("a") == 201
        server.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(10):
            assert await server.process.wait() == 0
    async with running(home) as server:
        assert await server.names() == ["a"]
    assert (home / "data").stat().st_mode & 0o777 == 0o700
    assert (home / "data" / "store.db").stat().st_mode & 0o777 == 0o600


class Writers:
    """Write under fresh names until the server is gone, and keep what it acknowledged."""

    def __init__(self) -> None:
        self.acknowledged: list[str] = []
        self._sent = 0

    async def run(self, server: Running, until: int) -> None:
        """Eight at a time; the server is killed once so many writes were acknowledged."""
        enough = asyncio.Event()

        async def write() -> None:
            while True:
                self._sent += 1
                name = f"c{self._sent}"
                try:
                    assert await server.post(name) == 201
                except Unreachable:
                    return
                self.acknowledged.append(name)
                if len(self.acknowledged) >= until:
                    enough.set()

        writing = asyncio.gather(*(write() for _ in range(8)))
        async with asyncio.timeout(30):
            await enough.wait()
        server.process.kill()
        await writing


async def test_what_was_acknowledged_survives_kill_9(home: Path) -> None:
    writers = Writers()
    for until in (50, 130):
        async with running(home) as server:
            await writers.run(server, until)
    async with running(home) as server:
        there = await server.names()
    assert [name for name in writers.acknowledged if name not in there] == []


async def test_plain_text_is_not_spoken(home: Path) -> None:
    async with running(home) as server:
        port = int(server.transport._base.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"ok" not in await reader.read(1000)
        writer.close()
        context = ssl.create_default_context(cafile=str(home / "ca.crt"))
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n")
        assert b" 403 " in await reader.readline()
        writer.close()
