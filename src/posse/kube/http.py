"""Requests over sockets: pooled connections, TLS and tokens as the settings say."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import ssl
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import aiohttp
from yarl import URL

from posse import __version__
from posse.kube.config import ConfigError, Settings
from posse.kube.errors import Unreachable
from posse.kube.transport import Headers, Query, Response

_log = logging.getLogger(__name__)

_CONNECTIONS = 64
_KEEP_ALIVE = 30.0
_CONNECT_TIMEOUT = 10.0
_REQUEST_TIMEOUT = 30.0
_READ_BUFFER = 1 << 18


class HttpTransport:
    """Created anywhere, connects in the event loop that first uses it."""

    def __init__(self, settings: Settings) -> None:
        self._base = _base_url(settings)
        self._token = _Token(settings)
        self._ssl = _tls(settings) if self._base.startswith("https:") else True
        self._server_name = settings.tls_server_name
        self._session: aiohttp.ClientSession | None = None

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        headers: Headers | None = None,
        body: bytes | None = None,
        timeout: float | None = None,
    ) -> Response:
        limits = aiohttp.ClientTimeout(
            total=_REQUEST_TIMEOUT if timeout is None else timeout, sock_connect=_CONNECT_TIMEOUT
        )
        try:
            async with self._open().request(
                method, data=body, timeout=limits, **self._target(path, query, headers)
            ) as answer:
                content = await answer.read()
                return Response(answer.status, _lowered(answer), content)
        except _NO_ANSWER as error:
            raise self._unreachable(error) from error

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        headers: Headers | None = None,
        body: bytes | None = None,
    ) -> AsyncIterator[HttpStream]:
        limits = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_TIMEOUT)
        try:
            async with asyncio.timeout(_REQUEST_TIMEOUT):
                answer = await self._open().request(
                    method, data=body, timeout=limits, **self._target(path, query, headers)
                )
        except _NO_ANSWER as error:
            raise self._unreachable(error) from error
        try:
            yield HttpStream(answer, self._unreachable)
        finally:
            # A body that was read to its end has given its connection back; any other is cut.
            answer.close()

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(
                limit=_CONNECTIONS,
                keepalive_timeout=_KEEP_ALIVE,
                socket_factory=_socket,
                ssl=self._ssl,
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                read_bufsize=_READ_BUFFER,
                headers={"user-agent": f"posse/{__version__}"},
            )
            # aiohttp would send a PUT or DELETE again when a kept connection turns out to be
            # closed; whether a write may be repeated is decided above, by those who know.
            self._session._retry_connection = False
        return self._session

    def _target(self, path: str, query: Query | None, headers: Headers | None) -> dict[str, Any]:
        url = f"{self._base}{path}?{urlencode(query)}" if query else f"{self._base}{path}"
        sent = dict(headers or {})
        if token := self._token.current():
            sent["authorization"] = f"Bearer {token}"
        return {
            "url": URL(url, encoded=True),
            "headers": sent,
            "allow_redirects": False,  # a token goes to the server that the user named, or nowhere
            "server_hostname": self._server_name,
        }

    def _unreachable(self, error: Exception) -> Unreachable:
        return Unreachable(f"{self._base}: {_why(error)}")


class HttpStream:
    def __init__(
        self, answer: aiohttp.ClientResponse, unreachable: Callable[[Exception], Unreachable]
    ) -> None:
        self.status = answer.status
        self.headers: Headers = _lowered(answer)
        self._answer = answer
        self._unreachable = unreachable

    async def chunks(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._answer.content.iter_any():
                yield chunk
        except _NO_ANSWER as error:
            raise self._unreachable(error) from error


_NO_ANSWER = (aiohttp.ClientError, TimeoutError, OSError)


class _Token:
    """The bearer token; one in a file is read again whenever the file is replaced."""

    def __init__(self, settings: Settings) -> None:
        self._value = settings.token or ""
        self._file = settings.token_file
        self._seen: tuple[int, int, int] | None = None
        if self._file is not None and not self._value:
            try:
                self._refresh(self._file)
            except (OSError, ValueError) as error:
                raise ConfigError(f"{self._file} cannot be read: {error}") from None

    def current(self) -> str:
        if self._file is not None:
            try:
                self._refresh(self._file)
            except (OSError, ValueError) as error:
                _log.warning(
                    "%s cannot be read, using the token from before: %s", self._file, error
                )
        return self._value

    def _refresh(self, file: Path) -> None:
        state = file.stat()
        seen = (state.st_ino, state.st_mtime_ns, state.st_size)
        if seen != self._seen:
            self._value = file.read_text(encoding="ascii").strip()
            self._seen = seen


def _base_url(settings: Settings) -> str:
    """The server's address without a closing slash; it may have a path of its own."""
    server = settings.server
    if "://" not in server:
        secure = settings.ca_file or settings.ca_data or settings.insecure
        server = f"{'https' if secure else 'http'}://{server}"
    try:
        parts = urlsplit(server)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise ConfigError(f"{settings.server!r} is not the address of a server")
    return server.rstrip("/")


def _tls(settings: Settings) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(
            cafile=None if settings.ca_data or settings.ca_file is None else settings.ca_file,
            cadata=settings.ca_data.decode("ascii") if settings.ca_data else None,
        )
    except (OSError, ValueError) as error:
        raise ConfigError(f"the certificate authority cannot be used: {error}") from None
    # Newer Pythons ask of a private authority what Kubernetes' own tools do not put in.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if settings.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    try:
        _load_client_certificate(context, settings)
    except (OSError, ValueError) as error:
        raise ConfigError(f"the client certificate cannot be used: {error}") from None
    return context


def _load_client_certificate(context: ssl.SSLContext, settings: Settings) -> None:
    """ssl reads keys from files only, so one given as data is in a file of ours for a moment."""
    certificate = settings.client_cert_data or _content(settings.client_cert_file)
    key = settings.client_key_data or _content(settings.client_key_file)
    if certificate is None and key is None:
        return
    if certificate is None or key is None:
        raise ConfigError("a client certificate and its key go together; one is missing")
    handle, name = tempfile.mkstemp(prefix="posse-")  # readable by us alone
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(certificate.rstrip() + b"\n" + key)
        context.load_cert_chain(name, password=_no_password)
    finally:
        Path(name).unlink()


def _no_password() -> str:
    """Without it OpenSSL would ask on the terminal and wait."""
    raise ConfigError("the client key is encrypted; give one that is not")


def _content(file: Path | None) -> bytes | None:
    return None if file is None else file.read_bytes()


def _why(error: Exception) -> str:
    match error:
        case TimeoutError():
            return "no answer in time"
        case aiohttp.ClientConnectorCertificateError():
            return f"its certificate is not trusted: {error.certificate_error}"
        case OSError(strerror=str(words)):
            return words
        case _:
            return str(error) or type(error).__name__


def _lowered(answer: aiohttp.ClientResponse) -> Headers:
    return {name.lower(): value for name, value in answer.headers.items()}


def _socket(address: Any) -> socket.socket:
    """A socket that notices a peer which vanished without a word."""
    family, kind, protocol, *_ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, option):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return made
