"""A small API server that does what it is told, also the bad things.

It keeps objects of any collection under one revision and serves list, watch, get, create, replace,
patch and delete. Tests reach into it: `close_watches`, `compact`, `restore`, `answers`.
"""

from __future__ import annotations

import asyncio
import copy
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from posse.kube.inprocess import Message, Receive, Send

Object = dict[str, Any]

_PATH = re.compile(
    r"^(?P<root>/api/v1|/apis/[^/]+/[^/]+)(/namespaces/(?P<namespace>[^/]+))?"
    r"/(?P<plural>[a-z]+)(/(?P<name>[^/]+))?(/(?P<part>[a-z]+))?$"
)


class Request(msgspec.Struct):
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def document(self) -> Any:
        return msgspec.json.decode(self.body)

    @property
    def watching(self) -> bool:
        return self.query.get("watch") == "true"


class Answer(msgspec.Struct):
    status: int
    document: Any = None
    headers: dict[str, str] = {}
    raw: bytes | None = None


def status(code: int, reason: str, message: str = "", **details: Any) -> Object:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message or reason,
        "details": details,
    }


GONE = status(410, "Expired", "too old resource version")
TOO_LARGE = status(
    504,
    "Timeout",
    "Too large resource version: 9, current: 1",
    causes=[{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
    retryAfterSeconds=1,
)


class ModelServer:
    """`answers` is asked first for every request; what it returns is the answer."""

    def __init__(self) -> None:
        self.revision = 0
        self.objects: dict[tuple[str, str, str], Object] = {}
        self.history: list[tuple[int, str, tuple[str, str, str], Object]] = []
        self.compacted = 0
        self.requests: list[Request] = []
        self.answers: Callable[[Request], Answer | None] = lambda request: None
        self.watchers: dict[_Watcher, None] = {}
        self.made = 0

    # What tests do to the state.

    def put(self, plural: str, name: str, namespace: str = "ns", **fields: Any) -> Object:
        """Creates or changes an object, keeping its uid."""
        key = (plural, namespace, name)
        known = self.objects.get(key)
        if known is None:
            self.made += 1
            known = {"metadata": {"name": name, "namespace": namespace, "uid": f"u{self.made}"}}
        return self._store("MODIFIED" if key in self.objects else "ADDED", key, known | fields)

    def delete(self, plural: str, name: str, namespace: str = "ns") -> None:
        key = (plural, namespace, name)
        self._store("DELETED", key, self.objects[key])

    def snapshot(self) -> tuple[int, dict[tuple[str, str, str], Object]]:
        return self.revision, copy.deepcopy(self.objects)

    def restore(self, snapshot: tuple[int, dict[tuple[str, str, str], Object]]) -> None:
        """Goes back in time, as a server does whose store came from a backup."""
        self.revision, self.objects = snapshot[0], copy.deepcopy(snapshot[1])
        self.history = []
        self.compacted = self.revision
        self.close_watches()

    def compact(self) -> None:
        """Forgets history: a watch from before now is Gone."""
        self.history.clear()
        self.compacted = self.revision

    def close_watches(self) -> None:
        for watcher in list(self.watchers):
            watcher.put(None)

    def tell(self, kind: str, obj: Object) -> None:
        """An event on every open watch, true or not."""
        for watcher in self.watchers:
            watcher.put(_line(kind, obj))

    def bookmark(self) -> None:
        self.tell("BOOKMARK", {"metadata": {"resourceVersion": str(self.revision)}})

    def names(self, plural: str) -> dict[tuple[str, str], Object]:
        return {key[1:]: obj for key, obj in self.objects.items() if key[0] == plural}

    def _store(self, event: str, key: tuple[str, str, str], obj: Object) -> Object:
        self.revision += 1
        stored = copy.deepcopy(obj)
        stored["metadata"]["resourceVersion"] = str(self.revision)
        if event == "DELETED":
            del self.objects[key]
        else:
            self.objects[key] = stored
        self.history.append((self.revision, event, key, stored))
        for watcher in self.watchers:
            if watcher.plural == key[0]:
                watcher.put(_line(event, stored))
        return stored

    # The ASGI side.

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        body = b""
        more = True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        request = Request(
            scope["method"],
            scope["path"],
            dict(parse_qsl(scope["query_string"].decode(), keep_blank_values=True)),
            {name.decode(): value.decode() for name, value in scope["headers"]},
            body,
        )
        self.requests.append(request)
        answer = self.answers(request)
        if answer is None and request.watching:
            await self._watch(request, send)
            return
        if answer is None:
            answer = self._serve(request)
        content = msgspec.json.encode(answer.document) if answer.raw is None else answer.raw
        await send(_start(answer.status, answer.headers))
        await send({"type": "http.response.body", "body": content})

    def _serve(self, request: Request) -> Answer:
        found = _PATH.match(request.path)
        if found is None:
            return Answer(404, status(404, "NotFound"))
        plural, namespace, name = found["plural"], found["namespace"] or "", found["name"]
        key = (plural, namespace, name or "")
        if request.method == "GET" and name is None:
            return self._list(plural, namespace, request.query)
        if request.method == "POST" and name is None:
            key = (plural, namespace, request.document["metadata"]["name"])
            if key in self.objects:
                return Answer(409, status(409, "AlreadyExists"))
            self.made += 1
            made = request.document
            made["metadata"]["uid"] = f"u{self.made}"
            return Answer(201, self._store("ADDED", key, made))
        if key not in self.objects:
            return Answer(404, status(404, "NotFound"))
        stored = self.objects[key]
        match request.method:
            case "PUT":
                asked = request.document["metadata"].get("resourceVersion")
                if asked and asked != stored["metadata"]["resourceVersion"]:
                    return Answer(409, status(409, "Conflict"))
                return Answer(200, self._store("MODIFIED", key, request.document))
            case "PATCH":
                return Answer(200, self._store("MODIFIED", key, stored | request.document))
            case "DELETE":
                return Answer(200, self._store("DELETED", key, stored))
            case _:
                return Answer(200, stored)

    def _list(self, plural: str, namespace: str, query: dict[str, str]) -> Answer:
        """Pages are `<revision>:<offset>`, of the state at that revision or Gone."""
        items = [
            obj
            for key, obj in self.objects.items()
            if key[0] == plural and namespace in ("", key[1])
        ]
        revision, start = self.revision, 0
        if token := query.get("continue"):
            revision, start = map(int, token.split(":"))
            if revision != self.revision:
                return Answer(410, GONE)
        limit = int(query.get("limit", 0)) or len(items) or 1
        meta = {"resourceVersion": str(revision)}
        if start + limit < len(items):
            meta["continue"] = f"{revision}:{start + limit}"
        return Answer(200, {"metadata": meta, "items": items[start : start + limit]})

    async def _watch(self, request: Request, send: Send) -> None:
        found = _PATH.match(request.path)
        assert found is not None
        version = int(request.query["resourceVersion"] or 0)
        await send(_start(200, {}))
        if version < self.compacted or version > self.revision:
            document = GONE if version < self.compacted else TOO_LARGE
            await send(_body(_line("ERROR", document), more=False))
            return
        watcher = _Watcher(found["plural"])
        for revision, event, key, obj in self.history:
            if revision > version and key[0] == watcher.plural:
                watcher.put(_line(event, obj))
        self.watchers[watcher] = None
        try:
            while (line := await watcher.lines.get()) is not None:
                await send(_body(line, more=True))
            await send(_body(b"", more=False))
        finally:
            del self.watchers[watcher]


class _Watcher:
    def __init__(self, plural: str) -> None:
        self.plural = plural
        self.lines: asyncio.Queue[bytes | None] = asyncio.Queue()

    def put(self, line: bytes | None) -> None:
        self.lines.put_nowait(line)


def _line(kind: str, obj: Object) -> bytes:
    return msgspec.json.encode({"type": kind, "object": obj}) + b"\n"


def _start(code: int, headers: dict[str, str]) -> Message:
    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    return {"type": "http.response.start", "status": code, "headers": pairs}


def _body(content: bytes, *, more: bool) -> Message:
    return {"type": "http.response.body", "body": content, "more_body": more}
