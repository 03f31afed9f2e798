"""OpenAPI v2, which older clients read, made from the v3 documents.

kubectl before 1.27 explains fields, checks manifests and learns of dry runs from it alone, and asks
for it in gnostic's protobuf. It cannot say "one of" or "may be null": what cannot be said is left
open, never said wrongly.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from posse.local.apiserver import openapi
from posse.local.apiserver.openapi import Described

Schema = dict[str, Any]

_V3, _V2 = "#/components/schemas/", "#/definitions/"
_SAME = ("description", "format", "required")
_TYPES = ("string", "integer", "number", "boolean", "array", "object")


def document(described: Iterable[Described]) -> Schema:
    """Everything served, in one document."""
    everything = list(described)
    kinds = [one.served.kind for one in everything]
    definitions: Schema = {}
    paths: Schema = {}
    info: Schema = {}
    for group, version in sorted({(kind.group, kind.version) for kind in kinds}):
        of_version = openapi.document(everything, group, version) or {}
        info = of_version["info"]
        for name, schema in of_version["components"]["schemas"].items():
            _add(definitions, name, _schema(schema))
        for path, operations in of_version["paths"].items():
            if "patch" in operations:
                paths[path] = {"patch": _operation(operations["patch"])}
    return {"swagger": "2.0", "info": info, "paths": paths, "definitions": definitions}


def _add(definitions: Schema, name: str, schema: Schema) -> None:
    """Documents share what they refer to; of one kind, each names its own version."""
    marks = "x-kubernetes-group-version-kind"
    if name not in definitions or marks in schema:
        definitions[name] = schema


def _schema(schema: Schema) -> Schema:
    made: Schema = {}
    for name in _SAME:
        if schema.get(name):
            made[name] = schema[name]
    for name, value in schema.items():
        if name.startswith("x-kubernetes-"):
            made[name] = value
    reference = schema.get("$ref") or _only_reference(schema)
    if reference:
        return {**made, "$ref": reference.replace(_V3, _V2)}
    if schema.get("format") == "int-or-string" or "oneOf" in schema:
        return {**made, "type": "string"}
    if _is_open(schema):
        return made
    made["type"] = schema["type"]
    if schema["type"] == "array":
        made["items"] = _schema(schema.get("items") or {})
    if properties := schema.get("properties"):
        made["properties"] = {name: _schema(field) for name, field in properties.items()}
    elif isinstance(below := schema.get("additionalProperties"), dict):
        made["additionalProperties"] = _schema(below)
    return made


def _only_reference(schema: Schema) -> str:
    several = schema.get("allOf") or []
    if len(several) == 1 and isinstance(several[0], dict):
        return str(several[0].get("$ref") or "")
    return ""


def _is_open(schema: Schema) -> bool:
    """Whether more is allowed than v2 has words for."""
    return (
        schema.get("type") not in _TYPES
        or schema.get("nullable") is True
        or schema.get("x-kubernetes-preserve-unknown-fields") is True
        or schema.get("x-kubernetes-int-or-string") is True
    )


def _operation(operation: Schema) -> Schema:
    marks = "x-kubernetes-group-version-kind"
    return {
        "consumes": list(operation["requestBody"]["content"]),
        "parameters": [
            {"name": one["name"], "in": "query", "type": "string", "uniqueItems": True}
            for one in operation["parameters"]
        ],
        "responses": {},
        marks: operation[marks],
    }


def protobuf(document: Schema) -> bytes:
    """The document as gnostic's openapi.v2.Document."""
    info = _text(1, document["info"]["title"]) + _text(2, document["info"]["version"])
    paths = b"".join(
        _message(2, _text(1, path) + _message(2, _message(8, _written(operations["patch"]))))
        for path, operations in document["paths"].items()
    )
    return (
        _text(1, document["swagger"])
        + _message(2, info)
        + _message(8, paths)
        + _message(9, _named(document["definitions"]))
    )


def _written(operation: Schema) -> bytes:
    parameters = b"".join(
        _message(8, _message(1, _message(2, _message(3, _query_parameter(one)))))
        for one in operation["parameters"]
    )
    consumed = b"".join(_text(7, media) for media in operation["consumes"])
    return consumed + parameters + _extensions(13, operation)


def _query_parameter(parameter: Schema) -> bytes:
    return _text(2, parameter["in"]) + _text(4, parameter["name"]) + _text(6, parameter["type"])


def _named(schemas: Schema) -> bytes:
    return b"".join(
        _message(1, _text(1, name) + _message(2, _encoded(schema)))
        for name, schema in schemas.items()
    )


def _encoded(schema: Schema) -> bytes:
    parts = [
        _text(1, schema.get("$ref", "")),
        _text(2, schema.get("format", "")),
        _text(4, schema.get("description", "")),
        *(_text(19, name) for name in schema.get("required", [])),
    ]
    if "additionalProperties" in schema:
        parts.append(_message(21, _message(1, _encoded(schema["additionalProperties"]))))
    if "type" in schema:
        parts.append(_message(22, _text(1, schema["type"])))
    if "items" in schema:
        parts.append(_message(23, _message(1, _encoded(schema["items"]))))
    if "properties" in schema:
        parts.append(_message(25, _named(schema["properties"])))
    parts.append(_extensions(31, schema))
    return b"".join(parts)


def _extensions(number: int, schema: Schema) -> bytes:
    """Values of extensions travel as YAML, which JSON is."""
    return b"".join(
        _message(number, _text(1, name) + _message(2, _text(2, json.dumps(value))))
        for name, value in schema.items()
        if name.startswith("x-")
    )


def _text(number: int, value: str) -> bytes:
    return _message(number, value.encode()) if value else b""


def _message(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
