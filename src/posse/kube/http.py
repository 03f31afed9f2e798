"""Requests over sockets: pooled connections, signed and sent the way that the settings say."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlencode

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from yarl import URL

from posse.kube.config import Settings
from posse.kube.credentials import Credentials, SignIn, StoredSignIn
from posse.kube.errors import ConfigError, SignInFailed, Unreachable
from posse.kube.plugin_runs import PluginSignIn
from posse.kube.tls import Contexts
from posse.kube.transport import Headers, Query, Response, may_leave
from posse.kube.wires import Wires
from posse.version import __version__
from posse.world import World

_log = logging.getLogger(__name__)

_CONNECTIONS = 64
_KEEP_ALIVE = 30.0
_CONNECT_TIMEOUT = 10.0
_REQUEST_TIMEOUT = 30.0
_READ_BUFFER = 1 << 18
_USER_AGENT = f"posse/{__version__}"


class HttpTransport:
    """Created anywhere, connects in the event loop that first uses it.

    What the server answers with 401 is sent a second time, if there is something else to sign it
    with: who was not recognised has not been served, so that holds for writes as well.
    """

    def __init__(self, settings: Settings, world: World | None = None) -> None:
        self._base = settings.url
        stored = StoredSignIn(settings)
        self._sign_in: SignIn = stored
        if settings.plugin is not None:
            self._sign_in = PluginSignIn(settings.plugin, world or World.real())
        secure = self._base.startswith("https:")
        self._tls = Contexts(settings, stored.known.pair) if secure else None
        self._server_name = settings.tls_server_name
        self._acting_as = settings.acting_as.headers() if settings.acting_as else []
        self._proxy = settings.proxy
        self._session: aiohttp.ClientSession | None = None
        self._wires: Wires | None = None

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

        permitted = may_leave.get()

        async def send(credentials: Credentials) -> Response:
            if body is not None and self._proxy is None:
                return await self._write(
                    method, path, query, headers, body, limits.total, permitted, credentials
                )
            target = self._target(path, query, headers, credentials)
            data = body if body is None or permitted is None else _Withheld(body, permitted)
            try:
                async with self._open().request(
                    method, data=data, timeout=limits, **target
                ) as answer:
                    return Response(answer.status, _lowered(answer), await answer.read())
            except _NO_ANSWER as error:
                raise self._unreachable(error) from error

        credentials = await self._sign_in.current()
        answer = await send(credentials)
        if answer.status == 401 and (other := await self._other(credentials)) is not None:
            answer = await send(other)
        return answer

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

        async def send(credentials: Credentials) -> aiohttp.ClientResponse:
            target = self._target(path, query, headers, credentials)
            try:
                async with asyncio.timeout(_REQUEST_TIMEOUT):
                    return await self._open().request(method, data=body, timeout=limits, **target)
            except _NO_ANSWER as error:
                raise self._unreachable(error) from error

        credentials = await self._sign_in.current()
        answer = await send(credentials)
        try:
            if answer.status == 401 and (other := await self._other(credentials)) is not None:
                answer.close()
                answer = await send(other)
            yield HttpStream(answer, self._unreachable)
        finally:
            # A body that was read to its end has given its connection back; any other is cut.
            answer.close()

    async def close(self) -> None:
        await self._sign_in.close()
        if self._session is not None:
            await self._session.close()
            self._session = None
        if self._wires is not None:
            self._wires.close()
            self._wires = None

    async def _write(
        self,
        method: str,
        path: str,
        query: Query | None,
        headers: Headers | None,
        body: bytes,
        timeout: float | None,
        permitted: Callable[[], bool] | None,
        credentials: Credentials,
    ) -> Response:
        if self._wires is None:
            self._wires = Wires(
                self._base,
                self._server_name,
                most=_CONNECTIONS,
                keep=_KEEP_ALIVE,
                connect_within=_CONNECT_TIMEOUT,
                prepare=_keep_alive,
            )
        try:
            return await self._wires.ask(
                method,
                f"{path}?{urlencode(query)}" if query else path,
                [*self._signed(headers, credentials), ("user-agent", _USER_AGENT)],
                body,
                self._context(credentials),
                permitted=permitted,
                timeout=timeout or _REQUEST_TIMEOUT,
            )
        except _NO_ANSWER as error:
            raise self._unreachable(error) from error

    async def _other(self, refused: Credentials) -> Credentials | None:
        """What else a refused request can be signed with."""
        try:
            return await self._sign_in.renewed(refused)
        except SignInFailed as error:
            _log.warning("%s answered 401, and then: %s", self._base, error)
            return None

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(
                limit=_CONNECTIONS, keepalive_timeout=_KEEP_ALIVE, socket_factory=_socket
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                read_bufsize=_READ_BUFFER,
                headers={"user-agent": _USER_AGENT},
            )
            # aiohttp would send a PUT or DELETE again when a kept connection turns out to be
            # closed; whether a write may be repeated is decided above, by those who know.
            self._session._retry_connection = False
        return self._session

    def _target(
        self, path: str, query: Query | None, headers: Headers | None, credentials: Credentials
    ) -> dict[str, Any]:
        url = f"{self._base}{path}?{urlencode(query)}" if query else f"{self._base}{path}"
        sent = self._signed(headers, credentials)
        target = {
            "url": URL(url, encoded=True),
            "headers": sent,
            "allow_redirects": False,  # a token goes to the server that the user named, or nowhere
        }
        if self._tls is not None:
            target["ssl"] = self._context(credentials)
            target["server_hostname"] = self._server_name
        if self._proxy is not None:
            target["proxy"] = URL(self._proxy.url)
            if self._proxy.authorization:
                signed = ("proxy-authorization", self._proxy.authorization)
                # The tunnel to a secure server is asked for in a request of its own.
                if self._tls is not None:
                    target["proxy_headers"] = [signed]
                else:
                    sent.append(signed)
        return target

    def _signed(self, headers: Headers | None, credentials: Credentials) -> list[tuple[str, str]]:
        sent = [*(headers or {}).items(), *self._acting_as]
        if credentials.authorization:
            sent.append(("authorization", credentials.authorization))
        return sent

    def _context(self, credentials: Credentials) -> ssl.SSLContext | None:
        if self._tls is None:
            return None
        try:
            return self._tls.of(credentials.pair)
        except ConfigError as error:
            raise SignInFailed(str(error)) from None

    def _unreachable(self, error: Exception) -> Unreachable:
        through = f" through the proxy {self._proxy.url}" if self._proxy else ""
        return Unreachable(f"{self._base}{through}: {_why(error)}")


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


class _Withheld(aiohttp.BytesPayload):
    """A body that leaves in the same moment in which it is allowed to, or not at all."""

    def __init__(self, body: bytes, permitted: Callable[[], bool]) -> None:
        super().__init__(body)
        self._permitted = permitted

    async def write_with_length(
        self, writer: AbstractStreamWriter, content_length: int | None
    ) -> None:
        if not self._permitted():
            raise ConnectionAbortedError("it was not to be sent any more")
        await super().write_with_length(writer, content_length)


_NO_ANSWER = (aiohttp.ClientError, TimeoutError, OSError)


def _why(error: Exception) -> str:
    match error:
        case aiohttp.ClientHttpProxyError(status=407):
            return "the proxy does not accept these credentials"
        case aiohttp.ClientHttpProxyError():
            return f"the proxy answered {error.status} {error.message}"
        case TimeoutError():
            return "no answer in time"
        case aiohttp.ClientConnectorCertificateError():
            return f"its certificate is not trusted: {error.certificate_error}"
        case ssl.SSLCertVerificationError():
            return f"its certificate is not trusted: {error}"
        case OSError(errno=errno.ECONNREFUSED):
            return "connection refused"
        case OSError(strerror=str(words)):
            return words
        case _:
            return str(error) or type(error).__name__


def _lowered(answer: aiohttp.ClientResponse) -> Headers:
    return {name.lower(): value for name, value in answer.headers.items()}


def _socket(address: Any) -> socket.socket:
    family, kind, protocol, *_ = address
    made = socket.socket(family, kind, protocol)
    _keep_alive(made)
    return made


def _keep_alive(made: socket.socket) -> None:
    """Has the socket notice a peer which vanished without a word."""
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, option):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
