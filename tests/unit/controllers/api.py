"""An API server in a dictionary, and the ways in which a real one lets a controller down.

`held` names kinds whose events are kept back, so that caches grow old; `lose` drops the answer to a
write that was executed; `refuse` answers in the server's place; `crash_after` cuts the connection
after so many writes.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import unquote

import msgspec

from posse.controllers.runtime import Manifest
from posse.kube.errors import Unreachable
from posse.kube.transport import Headers, Query, Response, Stream
from posse.objects.kinds import Kind

Where = tuple[str, str, str]  # plural, namespace, name


class Api:
    def __init__(self) -> None:
        self.objects: dict[Where, Manifest] = {}
        self.revision = 0
        self.writes: list[tuple[str, str]] = []  # that were executed
        self.refusals: list[tuple[str, str]] = []
        self.absent: dict[str, None] = {}  # plurals that are not served
        self.held: dict[str, None] = {}  # plurals whose watches say nothing for now
        self.refuse: Callable[[str, str], tuple[int, str] | None] = lambda method, path: None
        self.lose: Callable[[str, str], bool] = lambda method, path: False
        self.crash_after: int | None = None
        self._watchers: dict[_Watch, None] = {}

    # What a test does.

    def put(self, kind: Kind, obj: Manifest) -> Manifest:
        """Create or replace, as somebody else would."""
        metadata = obj["metadata"]
        where = (kind.plural, metadata.get("namespace", ""), metadata["name"])
        old = self.objects.get(where)
        return self._store(where, copy.deepcopy(obj), old)

    def get(self, kind: Kind, name: str, namespace: str = "ns") -> Manifest | None:
        return self.objects.get((kind.plural, namespace, name))

    def change(self, kind: Kind, name: str, namespace: str = "ns", **fields: Any) -> Manifest:
        where = (kind.plural, namespace, name)
        old = self.objects[where]
        return self._store(where, copy.deepcopy(old) | copy.deepcopy(fields), old)

    def remove(self, kind: Kind, name: str, namespace: str = "ns") -> None:
        self._remove((kind.plural, namespace, name))

    def names(self, kind: Kind) -> list[str]:
        return sorted(where[2] for where in self.objects if where[0] == kind.plural)

    def all(self, kind: Kind) -> list[Manifest]:
        return [obj for where, obj in sorted(self.objects.items()) if where[0] == kind.plural]

    def release_watches(self) -> None:
        self.held.clear()
        for watcher in self._watchers:
            watcher.flush()

    # The transport.

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
        await asyncio.sleep(0)
        if self.crash_after is not None and method != "GET":
            if self.crash_after <= 0:
                raise Unreachable("the process is gone")
            self.crash_after -= 1
        if (refused := self.refuse(method, path)) is not None:
            return _status(*refused)
        answer = self._serve(method, path, query or {}, body)
        if method != "GET":
            (self.writes if answer.status < 300 else self.refusals).append((method, path))
        if self.lose(method, path):
            raise Unreachable("the answer was lost")
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
    ) -> AsyncIterator[Stream]:
        plural = _where(path)[0]
        watcher = _Watch(self, plural, (query or {}).get("labelSelector", ""))
        self._watchers[watcher] = None
        try:
            yield watcher
        finally:
            del self._watchers[watcher]

    async def close(self) -> None:
        return None

    def _serve(self, method: str, path: str, query: Query, body: bytes | None) -> Response:
        where, subresource = _where(path), path.split("/")[-1]
        if where[0] in self.absent:
            return _status(404, "NotFound")
        document: Any = msgspec.json.decode(body) if body else {}
        if method == "GET" and not where[2]:
            return self._list(where, query)
        if method == "POST":
            where = (where[0], where[1], document["metadata"]["name"])
            if where in self.objects:
                return _status(409, "AlreadyExists")
            return _answer(201, self._store(where, document, None))
        old = self.objects.get(where)
        if old is None:
            return _status(404, "NotFound")
        match method:
            case "GET":
                return _answer(200, old)
            case "DELETE":
                uid = (document.get("preconditions") or {}).get("uid")
                if uid not in (None, old["metadata"]["uid"]):
                    return _status(409, "Conflict")
                self._remove(where)
                return _answer(200, old)
            case "PUT":
                version = document["metadata"].get("resourceVersion")
                if version not in (None, old["metadata"]["resourceVersion"]):
                    return _status(409, "Conflict")
                new = old | {"status": document["status"]} if subresource == "status" else document
                return _answer(200, self._store(where, new, old))
            case _:
                uid = (document.get("metadata") or {}).get("uid")
                if uid not in (None, old["metadata"]["uid"]):
                    return _status(409, "Conflict")
                return _answer(200, self._store(where, _merged(old, document), old))

    def _list(self, where: Where, query: Query) -> Response:
        # As a real server does, without the kind of each.
        items = [
            {name: part for name, part in obj.items() if name not in ("apiVersion", "kind")}
            for key, obj in sorted(self.objects.items())
            if key[0] == where[0] and _selects(query.get("labelSelector", ""), obj)
        ]
        return _answer(200, {"metadata": {"resourceVersion": str(self.revision)}, "items": items})

    def _store(self, where: Where, obj: Manifest, old: Manifest | None) -> Manifest:
        self.revision += 1
        metadata = dict(obj["metadata"]) | {"resourceVersion": str(self.revision)}
        metadata["uid"] = (
            old["metadata"]["uid"] if old else metadata.get("uid") or f"u{self.revision}"
        )
        stored = obj | {"metadata": metadata}
        self.objects[where] = stored
        self._tell(where[0], "MODIFIED" if old else "ADDED", stored, old)
        return stored

    def _remove(self, where: Where) -> None:
        self.revision += 1
        old = self.objects.pop(where)
        last = old | {"metadata": old["metadata"] | {"resourceVersion": str(self.revision)}}
        self._tell(where[0], "DELETED", last, old)

    def _tell(self, plural: str, event: str, obj: Manifest, old: Manifest | None) -> None:
        for watcher in self._watchers:
            if watcher.plural == plural and _selects(watcher.labels, obj):
                watcher.put(msgspec.json.encode({"type": event, "object": obj}) + b"\n")


class _Watch:
    """One open watch; it is opened right after the list, with nothing in between."""

    def __init__(self, api: Api, plural: str, labels: str) -> None:
        self.status = 200
        self.headers: Headers = {}
        self.plural = plural
        self.labels = labels
        self._api = api
        self._held: list[bytes] = []
        self._lines: asyncio.Queue[bytes] = asyncio.Queue()

    def put(self, line: bytes) -> None:
        self._held.append(line)
        if self.plural not in self._api.held:
            self.flush()

    def flush(self) -> None:
        for line in self._held:
            self._lines.put_nowait(line)
        self._held.clear()

    async def chunks(self) -> AsyncIterator[bytes]:
        while True:
            yield await self._lines.get()


def _where(path: str) -> Where:
    """`/apis/g/v/namespaces/ns/plural/name/sub`, `/api/v1/plural`, ..."""
    parts = [unquote(part) for part in path.strip("/").split("/")]
    rest = parts[2:] if parts[0] == "api" else parts[3:]
    namespace = ""
    if len(rest) > 2 and rest[0] == "namespaces":
        namespace, rest = rest[1], rest[2:]
    return rest[0], namespace, rest[1] if len(rest) > 1 else ""


def _selects(selector: str, obj: Manifest) -> bool:
    labels = obj["metadata"].get("labels") or {}
    terms = [term.split("=") for term in selector.split(",") if term]
    return all(labels.get(key) == value for key, value in terms)


def _merged(old: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    merged = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merged(merged.get(key), value)
    return merged


def _answer(code: int, document: Any) -> Response:
    return Response(code, {}, msgspec.json.encode(document))


def _status(code: int, reason: str) -> Response:
    return _answer(
        code,
        {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": reason},
    )
