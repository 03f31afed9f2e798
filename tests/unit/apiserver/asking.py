"""A client of the server under test, which says as little as a test needs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from posse.kube.inprocess import AsgiTransport
from posse.kube.transport import Response, Transport
from posse.local.apiserver.app import ApiServer
from posse.local.apiserver.journal import Journal, MemoryJournal
from posse.local.apiserver.store import Store
from posse.virtual.world import virtual_world

TOKEN = "token-of-the-tests"
PODS = "/api/v1/namespaces/default/pods"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"


class Said:
    """An answer, with the parts that tests look at by name."""

    def __init__(self, response: Response) -> None:
        self.status = response.status
        self.headers = response.headers
        self.raw = response.body

    @property
    def body(self) -> Any:
        return json.loads(self.raw)

    @property
    def message(self) -> str:
        return str(self.body["message"])

    @property
    def reason(self) -> str:
        return str(self.body["reason"])

    @property
    def version(self) -> str:
        return str(self.body["metadata"]["resourceVersion"])

    @property
    def names(self) -> list[str]:
        return [item["metadata"]["name"] for item in self.body["items"]]


class Server:
    def __init__(
        self,
        journal: Journal | None = None,
        nodes: dict[str, Transport] | None = None,
        **options: Any,
    ) -> None:
        self.world = virtual_world(7)
        self.journal = journal if journal is not None else MemoryJournal()
        self.store = Store(self.journal, **options)
        agents = nodes or {}
        self.app = ApiServer(
            self.store,
            self.world,
            {TOKEN: "tester"},
            lambda node: agents[node["metadata"]["name"]],
        )
        self.transport = AsgiTransport(self.app, {"authorization": f"Bearer {TOKEN}"})

    async def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: dict[str, str] | None = None,
        **query: Any,
    ) -> Said:
        sent = None
        if body is not None:
            sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        said = {"content-type": "application/json"} | (headers or {})
        response = await self.transport.request(
            method, path, query={k: str(v) for k, v in query.items()}, headers=said, body=sent
        )
        return Said(response)

    async def get(self, path: str, **more: Any) -> Said:
        return await self.ask("GET", path, **more)

    async def post(self, path: str, body: Any, **more: Any) -> Said:
        return await self.ask("POST", path, body, **more)

    async def put(self, path: str, body: Any, **more: Any) -> Said:
        return await self.ask("PUT", path, body, **more)

    async def delete(self, path: str, body: Any = None, **more: Any) -> Said:
        return await self.ask("DELETE", path, body, **more)

    async def patch(self, path: str, body: Any, how: str = "merge", **more: Any) -> Said:
        headers = {"content-type": f"application/{how}-patch+json"}
        return await self.ask("PATCH", path, body, headers=headers, **more)

    @asynccontextmanager
    async def watch(self, path: str, **query: Any) -> AsyncIterator[Watching]:
        asked = {"watch": "true"} | {k: str(v) for k, v in query.items() if k != "headers"}
        headers = query.get("headers")
        async with self.transport.stream("GET", path, query=asked, headers=headers) as stream:
            assert stream.status == 200
            yield Watching(stream.chunks())


class Watching:
    """The events of one watch, in order."""

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks
        self._buffer = b""

    async def event(self) -> Any:
        while b"\n" not in self._buffer:
            self._buffer += await anext(self._chunks)
        line, _, self._buffer = self._buffer.partition(b"\n")
        return json.loads(line)

    async def told(self, count: int) -> list[tuple[str, str]]:
        """The type and the object's name of the next events."""
        events = [await self.event() for _ in range(count)]
        return [(event["type"], event["object"]["metadata"]["name"]) for event in events]

    async def silent(self, seconds: float = 1.0) -> bool:
        """Whether nothing comes for so long. The watch cannot be read on after this."""
        try:
            async with asyncio.timeout(seconds):
                event = await self.event()
        except TimeoutError:
            return True
        raise AssertionError(f"came: {event}")

    async def rest(self) -> list[Any]:
        """All that comes until the server ends the watch."""
        async for chunk in self._chunks:
            self._buffer += chunk
        return [json.loads(line) for line in self._buffer.splitlines()]


def pod(name: str = "p", **spec: Any) -> dict[str, Any]:
    containers = [{"name": "main", "image": "busybox"}]
    return {"metadata": {"name": name}, "spec": {"containers": containers} | spec}


def asking(name: str = "p", **amounts: str) -> dict[str, Any]:
    """A pod that requests `cpu="1"` and the like."""
    made = pod(name)
    made["spec"]["containers"][0]["resources"] = {"requests": amounts}
    return made


def binding(name: str, node: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "target": {"name": node}}


def config_map(
    name: str = "c", labels: dict[str, str] | None = None, **data: str
) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name}
    if labels:
        metadata["labels"] = labels
    return {"metadata": metadata, "data": data}


def definition(
    *, schema: dict[str, Any] | None = None, status: bool = True, **version: Any
) -> dict[str, Any]:
    """The CRD of `widgets.example.com`."""
    spec = {"type": "object", "properties": {"size": {"type": "integer", "minimum": 0}}}
    properties = {
        "spec": spec,
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    }
    described: dict[str, Any] = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema or {"type": "object", "properties": properties}},
    }
    if status:
        described["subresources"] = {"status": {}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wg"]},
            "versions": [described | version],
        },
    }


def widget(name: str = "w", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": name},
        "spec": spec,
    }
