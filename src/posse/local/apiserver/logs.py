"""Logs of a container, fetched from the agent of the node it runs on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any
from urllib.parse import quote

from posse.kube.errors import KubeError
from posse.kube.transport import Stream
from posse.local.apiserver import statuses
from posse.local.apiserver.cluster import Cluster
from posse.local.apiserver.requests import Request
from posse.local.apiserver.responses import Reply, Streamed
from posse.local.apiserver.routing import Target
from posse.local.apiserver.store import Object
from posse.objects.kinds import NODE, POD
from posse.objects.raw import mappings, text
from posse.objects.validating.report import Report

_TEXT = b"text/plain"
_FORWARDED = (
    "follow",
    "previous",
    "sinceSeconds",
    "sinceTime",
    "timestamps",
    "tailLines",
    "limitBytes",
)
_ERROR_LIMIT = 64 << 10


async def log(cluster: Cluster, request: Request, target: Target) -> Reply | Streamed:
    query = _options(request)
    stored = cluster.store.get(target.resource.name, target.key)
    if stored is None:
        raise statuses.not_found(target.kind, target.key[1])
    container = _container(stored.obj, request.query.get("container", ""))
    node_name = text(stored.obj["spec"], "nodeName")
    if not node_name:
        return Reply(204, b"", content_type=_TEXT)
    node = cluster.store.get(NODE.qualified, ("", node_name))
    if node is None:
        raise statuses.not_found(NODE, node_name)
    namespace, name = (quote(part, safe="") for part in target.key)
    path = f"/containerLogs/{namespace}/{name}/{quote(container, safe='')}"
    exits = AsyncExitStack()
    try:
        transport = cluster.node_transport(node.obj)
        stream = await exits.enter_async_context(transport.stream("GET", path, query=query))
        if not 200 <= stream.status <= 206:
            raise _mapped(stream.status, await _text(stream), target.key[1])
    except BaseException as error:
        await exits.aclose()
        if isinstance(error, KubeError | OSError):
            raise statuses.internal_error(f"node {node_name} does not answer: {error}") from error
        raise
    return Streamed(_forwarding(request, stream, exits), content_type=_TEXT)


def _forwarding(
    request: Request, stream: Stream, exits: AsyncExitStack
) -> Callable[[Callable[[bytes], Awaitable[None]]], Awaitable[None]]:
    async def forward(chunk: Callable[[bytes], Awaitable[None]]) -> None:
        """Until the node ends it or the client goes away, whichever is first."""

        async def copy() -> None:
            async for part in stream.chunks():
                await chunk(part)

        copying = asyncio.ensure_future(copy())
        leaving = asyncio.ensure_future(request.gone())
        try:
            await asyncio.wait((copying, leaving), return_when=asyncio.FIRST_COMPLETED)
            if copying.done() and not copying.cancelled():
                error = copying.exception()
                if error is not None and not isinstance(error, KubeError):
                    raise error
        finally:
            for task in (copying, leaving):
                task.cancel()
            await asyncio.gather(copying, leaving, return_exceptions=True)
            await exits.aclose()

    return forward


def _options(request: Request) -> dict[str, str]:
    report = Report()
    for field in ("tailLines", "sinceSeconds", "limitBytes"):
        value = request.whole(field)
        least = 0 if field == "tailLines" else 1
        if value is not None and value < least:
            report.invalid(field, value, f"must be greater than {'or equal to ' * (1 - least)}0")
    if request.query.get("sinceSeconds") and request.query.get("sinceTime"):
        report.forbidden("", "at most one of `sinceTime` or `sinceSeconds` may be specified")
    for field in ("follow", "previous", "timestamps"):
        request.flag(field)
    if report.errors:
        raise statuses.invalid("PodLogOptions", "", "", report.errors)
    return {field: request.query[field] for field in _FORWARDED if request.query.get(field)}


def _container(pod: Object, asked: str) -> str:
    """The container meant: the only one, or the one that is named."""
    name, spec = pod["metadata"]["name"], pod["spec"]
    containers = [text(one, "name") for one in mappings(spec, "containers")]
    first = [text(one, "name") for one in mappings(spec, "initContainers")]
    ephemeral = [text(one, "name") for one in mappings(spec, "ephemeralContainers")]
    if asked:
        if asked not in [*containers, *first, *ephemeral]:
            raise statuses.bad_request(f"container {asked} is not valid for pod {name}")
        return asked
    if len(containers) == 1:
        return containers[0]
    message = (
        f"a container name must be specified for pod {name}, choose one of: {_listed(containers)}"
    )
    if first:
        message += f" or one of the init containers: {_listed(first)}"
    if ephemeral:
        message += f" or one of the ephemeral containers: {_listed(ephemeral)}"
    raise statuses.bad_request(message)


def _listed(names: list[str]) -> str:
    return f"[{' '.join(names)}]"


async def _text(stream: Stream) -> str:
    body = b""
    async for part in stream.chunks():
        body += part
        if len(body) > _ERROR_LIMIT:
            break
    return body[:_ERROR_LIMIT].decode("utf-8", "replace").strip()


def _mapped(code: int, message: str, pod: str) -> statuses.Refusal:
    """The agent's complaint as the API words it."""
    if code == 400:
        return statuses.bad_request(message)
    if code == 404:
        details: dict[str, Any] = {"name": pod, "kind": f"{POD.plural}/log"}
        told = f"the server could not find the requested resource ( {POD.plural}/log {pod})"
        return statuses.Refusal(404, "NotFound", message or told, details)
    return statuses.internal_error(message or f"the node agent answered {code}")
