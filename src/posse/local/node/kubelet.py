"""The kubelet's HTTPS API, as much of it as an API server asks: logs, pods, health.

Everything but the health check needs the bearer token that agent and API server share.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Protocol
from urllib.parse import parse_qsl, unquote

import msgspec

from posse.local.node.runtime import LogRequest, PodRuntime
from posse.objects.times import parse_time
from posse.world import World

Manifest = dict[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class PodSource(Protocol):
    @property
    def runtime(self) -> PodRuntime: ...

    def pods(self) -> list[Manifest]: ...

    def pod(self, namespace: str, name: str) -> Manifest | None: ...


class Refused(Exception):
    """An answer that is not 200, with the text a kubelet would give."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class KubeletApi:
    """An ASGI application. `token` empty means that nobody gets in."""

    def __init__(self, source: PodSource, world: World, *, token: str) -> None:
        self._source = source
        self._world = world
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        try:
            await self._route(scope, receive, send)
        except Refused as refused:
            await _answer(send, refused.status, refused.message.encode(), "text/plain")

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        raw = scope.get("raw_path") or scope["path"].encode()
        parts = [unquote(part) for part in raw.decode("ascii", "replace").split("/")[1:]]
        if scope["method"] != "GET":
            raise Refused(405, "method not allowed")
        if parts == ["healthz"]:
            await _answer(send, 200, b"ok", "text/plain")
            return
        self._authenticate(scope)
        match parts:
            case ["pods"]:
                pods = {"kind": "PodList", "apiVersion": "v1", "metadata": {}}
                body = msgspec.json.encode({**pods, "items": self._source.pods()})
                await _answer(send, 200, body, "application/json")
            case ["containerLogs", namespace, name, container]:
                query = dict(parse_qsl(scope.get("query_string", b"").decode("latin-1")))
                chunks = self._logs(namespace, name, container, query)
                await _stream(chunks, receive, send)
            case _:
                raise Refused(404, "404 page not found")

    def _authenticate(self, scope: Scope) -> None:
        given = b""
        for name, value in scope["headers"]:
            if name.lower() == b"authorization":
                given = value
        expected = b"Bearer " + self._token.encode()
        if not self._token or not hmac.compare_digest(given, expected):
            raise Refused(401, "Unauthorized")

    def _logs(
        self, namespace: str, name: str, container: str, query: Mapping[str, str]
    ) -> AsyncIterator[bytes]:
        pod = self._source.pod(namespace, name)
        if pod is None:
            raise Refused(404, f'pod "{name}" not found')
        wanted = self._wanted(query)
        _check_container(pod, container, previous=wanted.previous)
        return self._source.runtime.logs(pod, container, wanted)

    def _wanted(self, query: Mapping[str, str]) -> LogRequest:
        since = None
        if seconds := _number(query, "sinceSeconds"):
            since = self._world.now() - seconds
        if text := query.get("sinceTime"):
            try:
                since = parse_time(text)
            except ValueError as error:
                raise Refused(400, f"sinceTime: {error}") from error
        return LogRequest(
            follow=_flag(query, "follow"),
            previous=_flag(query, "previous"),
            timestamps=_flag(query, "timestamps"),
            tail_lines=_number(query, "tailLines"),
            limit_bytes=_number(query, "limitBytes"),
            since=since,
        )


def _check_container(pod: Manifest, name: str, *, previous: bool) -> None:
    pod_name = pod["metadata"]["name"]
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    declared = [*(spec.get("initContainers") or []), *(spec.get("containers") or [])]
    if all(container.get("name") != name for container in declared):
        raise Refused(404, f'container "{name}" not found in pod "{pod_name}"')
    statuses = [
        *(status.get("initContainerStatuses") or []),
        *(status.get("containerStatuses") or []),
    ]
    known: Manifest = next((entry for entry in statuses if entry.get("name") == name), {})
    state, last = known.get("state") or {}, known.get("lastState") or {}
    if previous and not last.get("terminated"):
        raise Refused(400, f'previous terminated container "{name}" in pod "{pod_name}" not found')
    if not previous and not (state.get("running") or state.get("terminated") or last):
        reason = (state.get("waiting") or {}).get("reason") or "ContainerCreating"
        raise Refused(400, f'container "{name}" in pod "{pod_name}" is waiting to start: {reason}')


def _flag(query: Mapping[str, str], name: str) -> bool:
    return query.get(name, "").lower() in ("1", "t", "true")


def _number(query: Mapping[str, str], name: str) -> int | None:
    text = query.get(name)
    if not text:
        return None
    if not (text.isascii() and text.isdecimal()):
        raise Refused(400, f"{name}: {text!r} is not a whole number")
    return int(text)


async def _answer(send: Send, status: int, body: bytes, kind: str) -> None:
    headers = [
        (b"content-type", kind.encode()),
        (b"content-length", str(len(body)).encode()),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _stream(chunks: AsyncIterator[bytes], receive: Receive, send: Send) -> None:
    """Send chunks as they come, until they end or nobody listens any more."""
    headers = [(b"content-type", b"text/plain")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})

    async def forward() -> None:
        async for chunk in chunks:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def hang_up() -> None:
        while (await receive())["type"] != "http.disconnect":
            continue

    tasks = (asyncio.create_task(forward()), asyncio.create_task(hang_up()))
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
