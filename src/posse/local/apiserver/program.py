"""The API server as a service: one coroutine that serves on loopback until cancelled."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import msgspec
import uvicorn

from posse.kube.clients import ClientConnection
from posse.kube.config import Settings
from posse.kube.http import HttpTransport
from posse.kube.servers import PartServer
from posse.kube.transport import Transport
from posse.local.apiserver.app import ApiServer
from posse.local.apiserver.journal import SqliteJournal
from posse.local.apiserver.store import Object, Store
from posse.objects.raw import mapping, mappings, number, text
from posse.world import World

_HOST = "127.0.0.1"
_BACKLOG = 1024
_FAREWELL = 1  # seconds for answers under way when the server is asked to end
_KUBELET_PORT = 10250


class ApiServerConfig(msgspec.Struct, frozen=True, kw_only=True):
    data_dir: Path
    """Holds `store.db`; made, for its owner alone, if it is not there."""
    certificate: Path
    key: Path
    tokens: dict[str, str]
    """Who may ask: the user of each bearer token."""
    port: int = 0
    """0 takes a free one."""
    authority: Path | None = None
    """Who vouches for the agents of nodes."""
    kubelet_token: str = ""
    """What this server shows to the agents of nodes."""
    power_safe: bool = False
    """Answers survive a power cut too, at the price of slower writes."""
    on_ready: Callable[[int], None] | None = None
    """Told the port as soon as requests are answered."""


class _Server(PartServer):
    """Says when it listens."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_ready()


class NodeTransports:
    """One pooled transport for each agent, since many nodes may share one."""

    def __init__(self, config: ApiServerConfig) -> None:
        self._config = config
        self._open: dict[str, Transport] = {}

    def __call__(self, node: Object) -> Transport:
        server = _agent(node)
        if (transport := self._open.get(server)) is None:
            settings = Settings(
                server=server,
                ca_file=self._config.authority,
                token=self._config.kubelet_token or None,
                insecure=self._config.authority is None,
            )
            transport = self._open[server] = HttpTransport(settings)
        return transport

    async def close(self) -> None:
        for transport in self._open.values():
            await transport.close()


async def run(config: ApiServerConfig, world: World) -> None:
    """Serves until cancelled; then finishes the answers under way and writes what is owed.

    JournalError when the store cannot be used, OSError when the port cannot.
    """
    config.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    listening = _listen(config.port)
    transports = NodeTransports(config)
    try:
        journal = SqliteJournal(config.data_dir / "store.db", power_safe=config.power_safe)
        try:
            server = ApiServer(Store(journal), world, config.tokens, transports)
            await server.start()
            await _serve(config, server, listening)
        finally:
            journal.close()
    finally:
        listening.close()
        await transports.close()


async def _serve(config: ApiServerConfig, app: ApiServer, listening: socket.socket) -> None:
    port: int = listening.getsockname()[1]

    def ready() -> None:
        if config.on_ready is not None:
            config.on_ready(port)

    server = _Server(
        uvicorn.Config(
            app,
            http=ClientConnection,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            ssl_certfile=str(config.certificate),
            ssl_keyfile=str(config.key),
            backlog=_BACKLOG,
            timeout_keep_alive=120,
            timeout_graceful_shutdown=_FAREWELL,
        ),
        ready,
    )
    await server.until_cancelled(listening)


def _listen(port: int) -> socket.socket:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((_HOST, port))
    except OSError:
        listening.close()
        raise
    return listening


def _agent(node: Object) -> str:
    """Where the agent of a node listens: its internal address and the port it published."""
    status = mapping(node, "status")
    addresses = {text(one, "type"): text(one, "address") for one in mappings(status, "addresses")}
    host = addresses.get("InternalIP") or addresses.get("Hostname") or _HOST
    endpoint = mapping(status, "daemonEndpoints", "kubeletEndpoint")
    return f"https://{host}:{number(endpoint, 'Port') or _KUBELET_PORT}"
