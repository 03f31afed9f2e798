"""An API server in memory, as far as a scheduler can tell, that misbehaves on demand.

It is a Transport itself, so that an answer can be lost after the write it belongs to, a watch can
lag behind, and every write that took effect is on record.
"""

from __future__ import annotations

import asyncio
import copy
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from posse.kube.errors import Unreachable
from posse.kube.transport import Headers, Query, Response
from posse.objects.times import rfc3339
from posse.world import World

Object = dict[str, Any]
Key = tuple[str, str, str]
Fault = Callable[[str, str], "str | int | Response | None"]

_PATH = re.compile(
    r"^(?P<root>/api/v1|/apis/[^/]+/[^/]+)(/namespaces/(?P<namespace>[^/]+))?"
    r"(/(?P<plural>[a-z]+)(/(?P<name>[^/]+))?(/(?P<part>[a-z]+))?)?$"
)
_CLUSTER_SCOPED = (
    "nodes",
    "queues",
    "priorityclasses",
    "hypernodes",
    "namespaces",
    "persistentvolumes",
    "storageclasses",
    "csinodes",
    "csidrivers",
)


class Write(msgspec.Struct):
    at: float
    method: str
    path: str
    document: Any


class Refusal(Exception):
    def __init__(self, code: int, reason: str, message: str = "") -> None:
        super().__init__(message or reason)
        self.code = code
        self.reason = reason


class _Stream:
    def __init__(self, plural: str) -> None:
        self.status = 200
        self.headers: Headers = {}
        self.plural = plural
        self.lines: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def chunks(self) -> AsyncIterator[bytes]:
        while (line := await self.lines.get()) is not None:
            yield line


class Api:
    """`fault(method, path)` answers "lose" (acts, then says nothing), "drop" (says nothing), an
    HTTP status (refuses with it), a whole answer, or None."""

    def __init__(self, world: World, latency: float = 0.001) -> None:
        self.world = world
        self.latency = latency
        self.revision = 0
        self.objects: dict[Key, Object] = {}
        self.served = {"podgroups", "podgroups/status", "queues"}
        self.attempts: list[tuple[float, str, str]] = []  # every request that arrived
        self.writes: list[Write] = []  # those that took effect
        self.binds: list[tuple[str, str]] = []  # pod name, node
        self.bound_uids: list[tuple[str, str]] = []  # pod uid, node
        self.budgets: dict[str, list[int]] = {}  # evictions left, by the label `app`
        self.lingering = False  # evicted pods are being deleted, and stay
        self.skew = 0.0  # by how much its clock is ahead of everybody else's
        self.fault: Fault = lambda method, path: None
        self.on_write: Callable[[Write], None] = lambda write: None
        self._history: list[tuple[int, str, bytes]] = []
        self._oldest = 0  # the revision up to which history is forgotten
        self._streams: dict[_Stream, None] = {}
        self._serving: dict[asyncio.Future[Response], None] = {}
        self._held_back: dict[str, list[bytes]] = {}

    # What tests do to the state.

    def put(self, plural: str, obj: Object) -> Object:
        """Creates or replaces as a user would; a changed spec is a new generation."""
        obj = copy.deepcopy(obj)
        meta = obj.setdefault("metadata", {})
        namespace = "" if plural in _CLUSTER_SCOPED else meta.setdefault("namespace", "ns")
        key = (plural, namespace, meta["name"])
        known = self.objects.get(key)
        if known is None:
            meta.setdefault("uid", f"{plural}-{meta['name']}-{self.revision + 1}")
            meta.setdefault("creationTimestamp", "2020-09-13T12:26:40Z")
            meta["generation"] = 1
        else:
            meta["uid"] = known["metadata"]["uid"]
            meta.setdefault("creationTimestamp", known["metadata"]["creationTimestamp"])
            changed = obj.get("spec") != known.get("spec")
            meta["generation"] = known["metadata"]["generation"] + changed
            obj.setdefault("status", known.get("status", {}))
        return self._store("ADDED" if known is None else "MODIFIED", key, obj)

    def change(self, plural: str, name: str, namespace: str = "ns", **fields: Any) -> Object:
        """Merges fields into an object."""
        scope = "" if plural in _CLUSTER_SCOPED else namespace
        obj = merged(self.objects[plural, scope, name], fields)
        return self.put(plural, obj)

    def delete(self, plural: str, name: str, namespace: str = "ns") -> None:
        scope = "" if plural in _CLUSTER_SCOPED else namespace
        self._store("DELETED", (plural, scope, name), self.objects[plural, scope, name])

    def get(self, plural: str, name: str, namespace: str = "ns") -> Object:
        scope = "" if plural in _CLUSTER_SCOPED else namespace
        return self.objects[plural, scope, name]

    def all(self, plural: str) -> list[Object]:
        return [obj for key, obj in self.objects.items() if key[0] == plural]

    def hold_back(self, *plurals: str) -> None:
        """Watches of these kinds tell nothing until `catch_up`."""
        for plural in plurals:
            self._held_back.setdefault(plural, [])

    def catch_up(self) -> None:
        held, self._held_back = self._held_back, {}
        for plural, lines in held.items():
            for line in lines:
                self._tell(plural, line)

    def forget(self) -> None:
        """No watch can go on from where it was, and what was held back is never told."""
        self._history.clear()
        self._held_back.clear()
        self._oldest = self.revision
        self.close_watches()

    def close_watches(self) -> None:
        for stream in self._streams:
            stream.lines.put_nowait(None)

    def placed(self) -> dict[str, str]:
        """Pod name to node."""
        return {
            pod["metadata"]["name"]: pod["spec"]["nodeName"]
            for pod in self.all("pods")
            if pod["spec"].get("nodeName")
        }

    def condition(self, plural: str, name: str, kind: str) -> Object:
        for condition in self.get(plural, name).get("status", {}).get("conditions", []):
            if condition["type"] == kind:
                return dict(condition)
        return {}

    def sent(self, method: str, pattern: str) -> list[Write]:
        return [w for w in self.writes if w.method == method and re.search(pattern, w.path)]

    # Transport.

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
        """Once sent, a request takes its course, whether or not anybody waits for the answer."""
        serving = asyncio.ensure_future(self._answer(method, path, body))
        self._serving[serving] = None
        serving.add_done_callback(lambda done: self._serving.pop(done))
        answer = await asyncio.shield(serving)
        if not answer.status:
            raise Unreachable("no answer")
        return answer

    async def _answer(self, method: str, path: str, body: bytes | None) -> Response:
        await asyncio.sleep(self.latency)
        self.attempts.append((self.world.monotonic(), method, path))
        fault = self.fault(method, path)
        if fault == "drop":
            return Response(0, {}, b"")
        if isinstance(fault, Response):
            return fault
        if isinstance(fault, int):
            return _failure(Refusal(fault, "", f"{method} {path} is not to be"))
        try:
            code, document = self._serve(method, path, msgspec.json.decode(body or b"null"))
        except Refusal as refusal:
            return _failure(refusal)
        await asyncio.sleep(self.latency)
        if fault == "lose":
            return Response(0, {}, b"")
        return Response(code, {}, msgspec.json.encode(document))

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        headers: Headers | None = None,
        body: bytes | None = None,
    ) -> AsyncIterator[_Stream]:
        await asyncio.sleep(self.latency)
        found = _PATH.match(path)
        assert found is not None
        stream = _Stream(found["plural"])
        since = int((query or {})["resourceVersion"])
        if since < self._oldest:
            gone = _failure(Refusal(410, "Expired", f"too old resource version: {since}"))
            stream.status = gone.status
            stream.lines.put_nowait(gone.body)
            stream.lines.put_nowait(None)
        for revision, plural, line in self._history:
            if revision > since and plural == stream.plural:
                self._tell(plural, line, stream)
        self._streams[stream] = None
        try:
            yield stream
        finally:
            del self._streams[stream]

    async def close(self) -> None:
        pass

    # The server.

    def refuse_eviction(self, pod: Object, eviction: Object) -> None:
        """What a budget that is used up does; `budgets` are how many more of which label value."""
        budget = self.budgets.get(pod["metadata"].get("labels", {}).get("app", ""))
        if budget is None:
            return
        if budget[0] <= 0:
            message = "Cannot evict pod as it would violate the pod's disruption budget."
            raise Refusal(429, "TooManyRequests", message)
        if not eviction["deleteOptions"].get("dryRun"):
            budget[0] -= 1

    def _serve(self, method: str, path: str, document: Any) -> tuple[int, Any]:
        found = _PATH.match(path)
        assert found is not None, path
        plural, name, part = found["plural"], found["name"], found["part"]
        if plural is None:
            if not self.served:
                raise Refusal(404, "NotFound")
            return 200, {"resources": [{"name": served} for served in sorted(self.served)]}
        if plural in ("podgroups", "queues", "hypernodes") and plural not in self.served:
            raise Refusal(404, "NotFound", "the server could not find the requested resource")
        if (plural, part) == ("podgroups", "status") and "podgroups/status" not in self.served:
            raise Refusal(404, "NotFound", "the server could not find the requested resource")
        key = (plural, found["namespace"] or "", name or "")
        if method == "GET" and name is None:
            meta = {"resourceVersion": str(self.revision)}
            return 200, {"metadata": meta, "items": self.all(plural)}
        if method == "POST" and name is None:
            key = (plural, key[1], document["metadata"]["name"])
            if key in self.objects:
                raise Refusal(409, "AlreadyExists")
            document["metadata"].setdefault("namespace", key[1])
            self._record(method, path, document)
            return 201, self.put(plural, document)
        known = self.objects.get(key)
        if known is None:
            raise Refusal(404, "NotFound", f'{plural} "{name}" not found')
        if method == "GET":
            return 200, known
        _check(known["metadata"], _preconditions(document))
        if part == "eviction":
            self.refuse_eviction(known, document)
            if document["deleteOptions"].get("dryRun"):
                return 201, {"kind": "Status", "status": "Success"}
        self._record(method, path, document)
        if part == "binding":
            return 201, self._bind(key, known, document)
        if part == "eviction" and self.lingering:
            going = {"metadata": {"deletionTimestamp": "2020-09-13T12:26:40Z"}}
            return 201, self._store("MODIFIED", key, merged(known, going))
        if part == "eviction" or method == "DELETE":
            return 201, self._store("DELETED", key, known)
        new = document if method == "PUT" else merged(known, document)
        new["metadata"] |= {"uid": known["metadata"]["uid"]}
        new["metadata"].setdefault("creationTimestamp", known["metadata"]["creationTimestamp"])
        new["metadata"]["generation"] = known["metadata"]["generation"]
        if plural == "podgroups" and part is None and "status" in document:
            new["metadata"]["generation"] += 1  # its status is a part of the object like any other
        return 200, self._store("MODIFIED", key, new)

    def _bind(self, key: Key, pod: Object, binding: Object) -> Object:
        if pod["spec"].get("nodeName") or pod["metadata"].get("deletionTimestamp"):
            raise Refusal(409, "Conflict", f"pod {key[2]} is already assigned to a node")
        node = binding["target"]["name"]
        self.binds.append((key[2], node))
        self.bound_uids.append((pod["metadata"]["uid"], node))
        new = merged(pod, {"spec": {"nodeName": node}})
        scheduled = {
            "type": "PodScheduled",
            "status": "True",
            "lastTransitionTime": rfc3339(self.world.now() + self.skew),
        }
        new["status"] = merged(new.get("status", {}), {"conditions": [scheduled]})
        self._store("MODIFIED", key, new)
        return {"kind": "Status", "status": "Success"}

    def _record(self, method: str, path: str, document: Any) -> None:
        write = Write(self.world.monotonic(), method, path, copy.deepcopy(document))
        self.writes.append(write)
        self.on_write(write)

    def _store(self, event: str, key: Key, obj: Object) -> Object:
        self.revision += 1
        stored = copy.deepcopy(obj)
        stored["metadata"]["resourceVersion"] = str(self.revision)
        if event == "DELETED":
            del self.objects[key]
        else:
            self.objects[key] = stored
        line = msgspec.json.encode({"type": event, "object": stored}) + b"\n"
        self._history.append((self.revision, key[0], line))
        self._tell(key[0], line)
        return stored

    def _tell(self, plural: str, line: bytes, only: _Stream | None = None) -> None:
        if plural in self._held_back:
            self._held_back[plural].append(line)
            return
        for stream in [only] if only is not None else self._streams:
            if stream.plural == plural:
                stream.lines.put_nowait(line)


def merged(target: Object, patch: Object) -> Object:
    """A merge patch, with lists of conditions merged by type as a strategic one has it."""
    result = copy.deepcopy(target)
    for field, value in patch.items():
        if value is None:
            result.pop(field, None)
        elif isinstance(value, dict):
            result[field] = merged(result.get(field) or {}, value)
        elif field == "conditions":
            by_type = {c["type"]: c for c in result.get(field) or []}
            for condition in value:
                by_type[condition["type"]] = by_type.get(condition["type"], {}) | condition
            result[field] = list(by_type.values())
        else:
            result[field] = copy.deepcopy(value)
    return result


def _preconditions(document: Any) -> Object:
    if not isinstance(document, dict):
        return {}
    options = document.get("deleteOptions", document)
    preconditions = options.get("preconditions") or document.get("metadata") or {}
    return {field: preconditions.get(field) for field in ("uid", "resourceVersion")}


def _check(meta: Object, wanted: Object) -> None:
    for field, value in wanted.items():
        if value and value != meta[field]:
            raise Refusal(409, "Conflict", f"{field} is {meta[field]}, not {value}")


def _failure(refusal: Refusal) -> Response:
    status = {
        "kind": "Status",
        "code": refusal.code,
        "reason": refusal.reason,
        "message": str(refusal),
    }
    return Response(refusal.code, {}, msgspec.json.encode(status))
