"""Objects in the form a client asked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from posse.local.apiserver.cluster import Cluster
from posse.local.apiserver.negotiation import Form
from posse.local.apiserver.registry import Resource
from posse.local.apiserver.responses import Reply, json_reply
from posse.local.apiserver.store import Object, Stored
from posse.local.apiserver.tables import table
from posse.objects.kinds import Kind

_encode = msgspec.json.Encoder().encode


class View:
    """How the objects of one request are shown."""

    def __init__(
        self, cluster: Cluster, resource: Resource, kind: Kind, form: Form, include: str
    ) -> None:
        self._cluster = cluster
        self._resource = resource
        self.kind = kind
        self.form = form
        self._include = include or "Metadata"
        self._as_stored = kind == resource.storage
        named = _encode({"kind": kind.kind, "apiVersion": kind.api_version})
        self._head = named[:-1] + b","

    @property
    def shared(self) -> bool:
        """Whether every client with this kind sees the same bytes."""
        return self.form in (Form.JSON, Form.YAML)

    def raw(self, stored: Stored) -> bytes:
        """The object as plain JSON in the version asked for."""
        return stored.raw if self._as_stored else _encode(self.versioned(stored.obj))

    def item(self, stored: Stored) -> bytes:
        """The object within a list, which names the kind of built-in objects once for all."""
        raw = self.raw(stored)
        if self._resource.custom or not raw.startswith(self._head):
            return raw
        return b"{" + raw[len(self._head) :]

    def versioned(self, obj: Object) -> Object:
        """Versions of one definition differ in name alone."""
        return obj if self._as_stored else {**obj, "apiVersion": self.kind.api_version}

    def table(self, objects: Sequence[Object]) -> Object:
        columns = self._resource.columns.get(self.kind.version)
        shown = [self.versioned(obj) for obj in objects]
        return table(self.kind, columns, shown, self._cluster.world.now(), self._include)

    def one(self, obj: Object) -> Object:
        """One object in a form other than plain JSON."""
        if self.form is Form.TABLE:
            shown = self.table([obj])
            shown["metadata"] = {"resourceVersion": obj["metadata"].get("resourceVersion", "")}
            return shown
        if self.form in (Form.PARTIAL, Form.PARTIAL_LIST):
            return partial(obj)
        return self.versioned(obj)

    def reply(self, stored: Stored, status: int = 200, warnings: Iterable[str] = ()) -> Reply:
        if self.shared:
            return self._finished(Reply(status, self.raw(stored), warnings=warnings))
        return json_reply(self.one(stored.obj), status, warnings)

    def reply_object(self, obj: Object, status: int = 200, warnings: Iterable[str] = ()) -> Reply:
        """The same for an object that is not in the store."""
        return self._finished(json_reply(self.one(obj), status, warnings))

    def reply_list(self, items: Sequence[Stored], metadata: Object) -> Reply:
        match self.form:
            case Form.TABLE:
                shown = self.table([stored.obj for stored in items])
                shown["metadata"] = metadata
                return json_reply(shown)
            case Form.PARTIAL | Form.PARTIAL_LIST:
                return json_reply(
                    {
                        "kind": "PartialObjectMetadataList",
                        "apiVersion": "meta.k8s.io/v1",
                        "metadata": metadata,
                        "items": [partial(stored.obj) for stored in items],
                    }
                )
            case _:
                head = {
                    "kind": f"{self.kind.kind}List",
                    "apiVersion": self.kind.api_version,
                    "metadata": metadata,
                }
                body = b",".join([self.item(stored) for stored in items])
                opening = _encode(head)[:-1]
                return self._finished(Reply(200, b'%b,"items":[%b]}\n' % (opening, body)))

    def _finished(self, reply: Reply) -> Reply:
        return reply.as_yaml() if self.form is Form.YAML else reply


def partial(obj: Object) -> Object:
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": obj["metadata"],
    }
