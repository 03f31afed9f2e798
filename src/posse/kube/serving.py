"""/healthz, /readyz and /metrics: what a service tells of itself, to whoever may reach the port.

It answers with numbers and one sentence, never with the name of anybody's object. A service that
lives answers at all; a service that is ready has nothing to complain of.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import socket
from collections.abc import AsyncIterator, Callable

import msgspec
import uvicorn
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics import disable_created_metrics

from posse.kube.inprocess import Message, Receive, Send
from posse.kube.servers import PartServer

_log = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"
EVERYWHERE = "::"
"""Every address of both families; of IPv4 alone where the machine has no other."""
_EVERY_IPV4 = "0.0.0.0"
_NO_IPV6 = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL)
_PLAIN = "text/plain; charset=utf-8"
_MOST_AT_ONCE = 64


class Address(msgspec.Struct, frozen=True):
    """Where to listen. Port 0 is any free one."""

    host: str = LOOPBACK
    port: int = 0


class Diagnostics:
    """The ASGI application. `unready` answers with what is wrong, or ""."""

    def __init__(self, registry: CollectorRegistry, unready: Callable[[], str]) -> None:
        self._registry = registry
        self._unready = unready

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        status, kind, body = self._answer(scope)
        headers = [
            (b"content-type", kind.encode()),
            (b"content-length", str(len(body)).encode()),
            (b"cache-control", b"no-store"),
        ]
        if status == 405:
            headers.append((b"allow", b"GET, HEAD"))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        sent = b"" if scope["method"] == "HEAD" else body
        await send({"type": "http.response.body", "body": sent})

    def _answer(self, scope: Message) -> tuple[int, str, bytes]:
        known = {"/healthz": self._health, "/readyz": self._readiness, "/metrics": self._metrics}
        answer = known.get(scope["path"])
        if answer is None:
            return 404, _PLAIN, b"there are /healthz, /readyz and /metrics\n"
        if scope["method"] not in ("GET", "HEAD"):
            return 405, _PLAIN, b"only GET and HEAD\n"
        return answer(scope)

    def _health(self, scope: Message) -> tuple[int, str, bytes]:
        return 200, _PLAIN, b"ok\n"

    def _readiness(self, scope: Message) -> tuple[int, str, bytes]:
        problem = self._unready()
        return (503, _PLAIN, f"{problem}\n".encode()) if problem else (200, _PLAIN, b"ok\n")

    def _metrics(self, scope: Message) -> tuple[int, str, bytes]:
        accepted = dict(scope["headers"]).get(b"accept", b"").decode("latin-1")
        encode, kind = choose_encoder(accepted)
        return 200, kind, encode(self._registry)


def listen(address: Address) -> socket.socket:
    """A bound socket; OSError says in one line where it could not listen, and why."""
    try:
        try:
            return _bound(address.host, address.port)
        except OSError as error:
            if address.host != EVERYWHERE or error.errno not in _NO_IPV6:
                raise
        return _bound(_EVERY_IPV4, address.port)
    except OSError as error:
        why = "the port is taken" if error.errno == errno.EADDRINUSE else error.strerror or error
        where = f"{address.host}:{address.port}"
        raise OSError(f"cannot listen on {where}: {why}") from error


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            # `::` is every address, those of the other family too.
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        bound.bind((host, port))
    except OSError:
        bound.close()
        raise
    return bound


@contextlib.asynccontextmanager
async def serving(app: Diagnostics, address: Address) -> AsyncIterator[int]:
    """Serves for the length of the block, which gets the port."""
    disable_created_metrics()  # type: ignore[no-untyped-call]
    bound = listen(address)
    bound.listen()  # whoever comes from here on is answered, if a moment later
    server = PartServer(
        uvicorn.Config(
            app,
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=_MOST_AT_ONCE,
            timeout_graceful_shutdown=1,
        )
    )
    port: int = bound.getsockname()[1]
    _log.info("/healthz, /readyz and /metrics on %s:%d", address.host, port)
    task = asyncio.create_task(server.serve(sockets=[bound]), name="diagnostics")
    try:
        yield port
    finally:
        server.should_exit = True
        await asyncio.gather(task, return_exceptions=True)
        bound.close()
