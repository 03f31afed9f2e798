"""OpenAPI v3: what `kubectl explain` shows, and how `kubectl apply` learns to merge and validate.

A document per group and version holds the schemas of its kinds, self-contained, and of the paths
only what clients look for: which kind an operation is about, which patches it takes, and that it
knows `fieldValidation`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

import msgspec

from posse.local.apiserver.discovery import KUBERNETES_MAJOR, KUBERNETES_MINOR, Served
from posse.objects.kinds import BUILT_IN, Kind
from posse.objects.schemas.core import STRUCTS, core_struct
from posse.objects.schemas.descriptions import DESCRIPTIONS
from posse.objects.schemas.notation import Field, ListOf, MapOf, Named, Type

_BUILT_IN = frozenset((kind.group, kind.kind) for kind in BUILT_IN)
_SCALARS: dict[str, dict[str, Any]] = {
    "string": {"type": "string"},
    "int": {"type": "integer", "format": "int32"},
    "long": {"type": "integer", "format": "int64"},
    "float": {"type": "number", "format": "double"},
    "bool": {"type": "boolean"},
    "bytes": {"type": "string", "format": "byte"},
    "any": {"x-kubernetes-preserve-unknown-fields": True},
}
# Types of their own, which `kubectl explain` names.
_NAMED_SCALARS: dict[str, tuple[str, dict[str, Any]]] = {
    "quantity": ("Quantity", {"oneOf": [{"type": "string"}, {"type": "number"}]}),
    "intstr": (
        "IntOrString",
        {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
    ),
    "time": ("Time", {"type": "string", "format": "date-time"}),
    "microtime": ("MicroTime", {"type": "string", "format": "date-time"}),
    "JSONSchemaPropsOrBool": ("JSONSchemaPropsOrBool", {}),
}
_PATCHES = ("application/json-patch+json", "application/merge-patch+json")
_STRATEGIC = "application/strategic-merge-patch+json"
_PREFIX = "io.k8s."
_EVERYWHERE = {
    "apiVersion": "The version of the API in which the object is written.",
    "kind": "What the object is.",
    "metadata": "The object's name, labels and so on.",
}


class Described(msgspec.Struct, frozen=True):
    """A served kind and its `openAPIV3Schema`; None for a built-in kind."""

    served: Served
    schema: dict[str, Any] | None = None


def index(described: Iterable[Described]) -> dict[str, Any]:
    """What GET /openapi/v3 answers: where every document is; the hash changes when it does."""
    everything = list(described)
    versions = sorted({(one.served.kind.group, one.served.kind.version) for one in everything})
    paths = {}
    for group, version in versions:
        content = json.dumps(document(everything, group, version), sort_keys=True).encode()
        digest = hashlib.sha256(content).hexdigest().upper()
        place = _place(group, version)
        paths[place] = {"serverRelativeURL": f"/openapi/v3/{place}?hash={digest}"}
    return {"paths": paths}


def document(described: Iterable[Described], group: str, version: str) -> dict[str, Any] | None:
    """What GET /openapi/v3/<api/v1 or apis/group/version> answers; None where it is not served."""
    chosen = [
        one
        for one in described
        if (one.served.kind.group, one.served.kind.version) == (group, version)
    ]
    if not chosen:
        return None
    components = _Components()
    paths: dict[str, Any] = {}
    for one in sorted(chosen, key=lambda one: one.served.kind.plural):
        if one.schema is not None or _is_built_in(one.served.kind):
            reference = components.add_kind(one.served.kind, one.schema)
            paths |= _paths(one.served, reference)
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": f"v{KUBERNETES_MAJOR}.{KUBERNETES_MINOR}.0"},
        "paths": paths,
        "components": {"schemas": dict(sorted(components.schemas.items()))},
    }


def _place(group: str, version: str) -> str:
    return f"apis/{group}/{version}" if group else f"api/{version}"


def _is_built_in(kind: Kind) -> bool:
    return (kind.group, kind.kind) in _BUILT_IN


class _Components:
    """The schemas of one document: those asked for, and all they refer to."""

    def __init__(self) -> None:
        self.schemas: dict[str, Any] = {}

    def add_kind(self, kind: Kind, schema: dict[str, Any] | None) -> dict[str, str]:
        """A kind's own schema, marked with what it is; answers the reference to it."""
        if schema is None:
            name = f"{_PREFIX}{core_struct(kind).name}"
            self._refer(core_struct(kind).name)
        else:
            name = f"{'.'.join(reversed(kind.group.split('.')))}.{kind.version}.{kind.kind}"
            own: dict[str, Any] = {
                "apiVersion": {"type": "string"},
                "kind": {"type": "string"},
                "metadata": {"allOf": [self._refer("ObjectMeta")]},
            }
            fields = {**schema.get("properties", {}), **own}
            self.schemas[name] = {**schema, "properties": fields}
        marked = {"group": kind.group, "version": kind.version, "kind": kind.kind}
        self.schemas[name]["x-kubernetes-group-version-kind"] = [marked]
        return {"$ref": f"#/components/schemas/{name}"}

    def _refer(self, struct: str) -> dict[str, Any]:
        name = f"{_PREFIX}{struct}"
        if name not in self.schemas:
            self.schemas[name] = described = {"type": "object"}  # first, for those that recur
            described |= self._struct(struct)
        return {"$ref": f"#/components/schemas/{name}"}

    def _struct(self, struct: str) -> dict[str, Any]:
        fields = STRUCTS[struct].fields.values()
        described: dict[str, Any] = {}
        if struct in DESCRIPTIONS:
            described["description"] = DESCRIPTIONS[struct]
        if fields:
            described["properties"] = {field.name: self._field(struct, field) for field in fields}
        if required := [field.name for field in fields if field.required]:
            described["required"] = required
        return described

    def _field(self, struct: str, field: Field) -> dict[str, Any]:
        described = self._type(field.type)
        if meaning := DESCRIPTIONS.get(f"{struct}.{field.name}") or _EVERYWHERE.get(field.name):
            described["description"] = meaning
        strategies = []
        if field.merge_key is not None:
            strategies.append("merge")
            if field.merge_key:
                described["x-kubernetes-patch-merge-key"] = field.merge_key
        if field.retains_keys:
            strategies.append("retainKeys")
        if field.replaced:
            strategies.append("replace")
        if strategies:
            described["x-kubernetes-patch-strategy"] = ",".join(strategies)
        return described

    def _type(self, of: Type) -> dict[str, Any]:
        match of:
            case ListOf(item):
                return {"type": "array", "items": self._type(item)}
            case MapOf(item):
                return {"type": "object", "additionalProperties": self._type(item)}
            case Named(name) if name in _SCALARS:
                return dict(_SCALARS[name])
            case Named(name) if name in _NAMED_SCALARS:
                called, schema = _NAMED_SCALARS[name]
                self.schemas.setdefault(f"{_PREFIX}{called}", schema)
                return {"allOf": [{"$ref": f"#/components/schemas/{_PREFIX}{called}"}]}
            case Named(name):
                return {"allOf": [self._refer(name)]}


def _paths(served: Served, reference: dict[str, str]) -> dict[str, Any]:
    kind = served.kind
    collection = {
        method: _operation(kind, action, reference)
        for method, action in (("get", "list"), ("post", "post"), ("delete", "deletecollection"))
    }
    single = {
        method: _operation(kind, method, reference) for method in ("get", "put", "patch", "delete")
    }
    root = f"/{_place(kind.group, kind.version)}"
    if not kind.namespaced:
        base = f"{root}/{kind.plural}"
        return {base: collection, f"{base}/{{name}}": single}
    base = f"{root}/namespaces/{{namespace}}/{kind.plural}"
    everywhere = {"get": _operation(kind, "list", reference)}
    return {f"{root}/{kind.plural}": everywhere, base: collection, f"{base}/{{name}}": single}


def _operation(kind: Kind, action: str, reference: dict[str, str]) -> dict[str, Any]:
    described: dict[str, Any] = {
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": {
            "group": kind.group,
            "version": kind.version,
            "kind": kind.kind,
        },
        "responses": {
            "200": {"description": "OK", "content": {"application/json": {"schema": reference}}}
        },
    }
    if action in ("post", "put", "patch"):
        described["parameters"] = [
            {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
            for name in ("dryRun", "fieldManager", "fieldValidation")
        ]
        described["requestBody"] = {"content": _contents(kind, action, reference)}
    return described


def _contents(kind: Kind, action: str, reference: dict[str, str]) -> dict[str, Any]:
    if action != "patch":
        return {"application/json": {"schema": reference}}
    accepted = (*_PATCHES, _STRATEGIC) if _is_built_in(kind) else _PATCHES
    return {media_type: {"schema": {"type": "object"}} for media_type in accepted}
