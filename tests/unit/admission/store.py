"""A small API server for what the webhook keeps there: objects by path, with versions."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from posse.kube.connection import Connection
from posse.kube.errors import Unreachable
from posse.kube.transport import Headers, Query, Response, Stream
from posse.objects.kinds import (
    MUTATING_WEBHOOK_CONFIGURATION,
    SECRET,
    VALIDATING_WEBHOOK_CONFIGURATION,
    Kind,
)
from posse.world import World

Object = dict[str, Any]
HOOKS = (MUTATING_WEBHOOK_CONFIGURATION, VALIDATING_WEBHOOK_CONFIGURATION)
SYSTEM = "posse-system"
KEPT_IN = "posse-admission-certificates"
CONFIGURATION = "posse-admission"


class Store:
    """`before` and `after` a request is done these are told; what they raise is the answer."""

    def __init__(self) -> None:
        self.objects: dict[str, Object] = {}
        self.written: list[str] = []
        self.before: Callable[[str, str], None] = lambda method, path: None
        self.after: Callable[[str, str], None] = lambda method, path: None
        self.down = False
        self._version = 0

    def put(self, path: str, obj: Object) -> None:
        self._version += 1
        made = copy.deepcopy(obj)
        made["metadata"] = made.get("metadata", {}) | {"resourceVersion": str(self._version)}
        self.objects[path] = made

    def configure(self, *names: str) -> None:
        for kind in HOOKS:
            webhooks = [{"name": name, "clientConfig": {"url": "https://x"}} for name in names]
            self.put(kind.path(None, CONFIGURATION), {"webhooks": webhooks})

    def secret(self) -> Object | None:
        return self.objects.get(secret_path())

    def bundles(self, kind: Kind = HOOKS[0]) -> dict[str, str]:
        webhooks = self.objects[kind.path(None, CONFIGURATION)]["webhooks"]
        return {one["name"]: one["clientConfig"].get("caBundle", "") for one in webhooks}

    def connection(self, world: World) -> Connection:
        return Connection(self, world)

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
        if self.down:
            raise Unreachable("refused")
        self.before(method, path)
        status, obj = self._do(method, path, json.loads(body) if body else None)
        self.after(method, path)
        return Response(status, {"content-type": "application/json"}, json.dumps(obj).encode())

    def stream(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        headers: Headers | None = None,
        body: bytes | None = None,
    ) -> AbstractAsyncContextManager[Stream]:
        raise AssertionError("nothing is watched")

    async def close(self) -> None:
        return None

    def _do(self, method: str, path: str, sent: Any) -> tuple[int, Object]:
        if method == "POST":
            path = f"{path}/{sent['metadata']['name']}"
            if path in self.objects:
                return _failure(409, "AlreadyExists")
        elif path not in self.objects:
            return _failure(404, "NotFound")
        if method == "GET":
            return 200, self.objects[path]
        present = self.objects.get(path)
        said = sent["metadata"].get("resourceVersion")
        if present is not None and said and said != present["metadata"]["resourceVersion"]:
            return _failure(409, "Conflict")
        self.written.append(f"{method} {path.rpartition('/')[2]}")
        if method == "PATCH":
            sent = _merged(copy.deepcopy(present or {}), sent)
        self.put(path, sent)
        return 200, self.objects[path]


def secret_path() -> str:
    return SECRET.path(SYSTEM, KEPT_IN)


def _merged(present: Object, patch: Object) -> Object:
    """As far as a strategic merge of webhooks goes: by name."""
    for change in patch["webhooks"]:
        for webhook in present["webhooks"]:
            if webhook["name"] == change["name"]:
                webhook["clientConfig"] |= change["clientConfig"]
    return present


def _failure(code: int, reason: str) -> tuple[int, Object]:
    return code, {"kind": "Status", "status": "Failure", "code": code, "reason": reason}
