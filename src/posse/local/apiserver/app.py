"""The API server as an ASGI application: a request finds its handler, trouble becomes a Status."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping

from posse.local.apiserver import (
    deleting,
    evicting,
    logs,
    negotiation,
    reading,
    scaling,
    statuses,
    writing,
)
from posse.local.apiserver import subresources as parts
from posse.local.apiserver.access import Tokens, check_source
from posse.local.apiserver.bootstrap import bootstrap
from posse.local.apiserver.cluster import Cluster, NodeTransport
from posse.local.apiserver.documents import Documents, open_to_all
from posse.local.apiserver.requests import Disconnected, Receive, Request, Scope, Send
from posse.local.apiserver.responses import Answer, refused
from posse.local.apiserver.reviews import Reviews
from posse.local.apiserver.routing import AnsweredTarget, Target, resolve
from posse.local.apiserver.statuses import Refusal
from posse.local.apiserver.store import Store
from posse.local.apiserver.upkeep import Upkeep
from posse.local.apiserver.watching import watch
from posse.objects.kinds import BINDING
from posse.world import World

log = logging.getLogger(__name__)

Handler = Callable[[Cluster, Request, Target], Awaitable[Answer]]

_COLLECTION: dict[str, Handler] = {
    "GET": reading.list_objects,
    "POST": writing.post,
    "DELETE": deleting.delete_collection,
}
_OBJECT: dict[str, Handler] = {
    "GET": reading.get,
    "PUT": writing.put,
    "PATCH": writing.patch,
    "DELETE": deleting.delete,
}
_PARTS: dict[str, dict[str, Handler]] = {
    "status": {"GET": reading.get, "PUT": writing.put, "PATCH": writing.patch},
    "binding": {"POST": parts.bind},
    "eviction": {"POST": evicting.evict},
    "finalize": {"PUT": parts.finalize},
    "log": {"GET": logs.log},
    "scale": {"GET": scaling.get, "PUT": scaling.put, "PATCH": scaling.patch},
}


class ApiServer:
    """`tokens` maps a bearer token to its user; `node_transport` leads to a node's agent."""

    def __init__(
        self,
        store: Store,
        world: World,
        tokens: Mapping[str, str],
        node_transport: NodeTransport,
    ) -> None:
        self._cluster = Cluster(store, world, node_transport)
        self._documents = Documents(self._cluster.registry)
        self._tokens = Tokens(tokens)
        self._reviews = Reviews(self._tokens, world)
        self._upkeep = Upkeep(self._cluster)
        self._started: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Makes the cluster's first objects; a request that comes earlier waits for it."""
        if self._started is None:
            self._started = asyncio.ensure_future(self._start())
        await asyncio.shield(self._started)

    async def _start(self) -> None:
        await bootstrap(self._cluster)
        self._upkeep.start()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await _decline(scope, receive, send)
            return
        if self._started is None or not self._started.done():
            await self.start()
        request = Request(scope, receive)
        try:
            answer = await self._answer(request)
        except Disconnected:
            return
        await answer.send(send)

    async def _answer(self, request: Request) -> Answer:
        try:
            try:
                return await self._handle(request)
            except Refusal:
                if request.method != "GET":
                    await self._cluster.refusal_stands()
                raise
        except Refusal as refusal:
            return refused(refusal, request.warnings)
        except Disconnected:
            raise
        except Exception:  # one request that fails must not end the server
            log.exception("%s %s failed", request.method, request.path)
            return refused(statuses.internal_error("the server failed; its log says why"))

    async def _handle(self, request: Request) -> Answer:
        check_source(request)
        if request.method == "GET" and (public := open_to_all(request)) is not None:
            return public
        request.user = self._tokens.user(request)
        if request.method == "GET" and (document := self._documents.find(request)) is not None:
            if request.segments[:2] != ["openapi", "v2"]:
                negotiation.form(request.header("accept"))
            return document
        target = resolve(self._cluster.registry, request.segments)
        if isinstance(target, AnsweredTarget):
            if request.method != "POST":
                raise statuses.method_not_allowed()
            if target.kind != BINDING:
                return await self._reviews.answer(request, target)
            return await parts.bind_named(self._cluster, request, target)
        handler = _handler(request, target)
        return await handler(self._cluster, request, target)


def _handler(request: Request, target: Target) -> Handler:
    method = request.method
    if target.part is not None:
        handler = _PARTS[target.part].get(method)
    elif target.name is not None:
        handler = _OBJECT.get(method)
    else:
        handler = _COLLECTION.get(method)
        if method == "GET" and request.flag("watch"):
            handler = watch
        if method == "DELETE" and "deletecollection" not in target.resource.verbs:
            handler = None
    if handler is None:
        raise statuses.method_not_allowed()
    return handler


async def _decline(scope: Scope, receive: Receive, send: Send) -> None:
    """What is no HTTP request: the lifespan of the server, and websockets, not yet spoken."""
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 1008})
        return
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            await send({"type": "lifespan.startup.complete"})
        elif message["type"] == "lifespan.shutdown":
            await send({"type": "lifespan.shutdown.complete"})
            return
