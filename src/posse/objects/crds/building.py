"""The parts of which a definition is built: small OpenAPI schemas, columns, the frame around."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from posse.objects.kinds import Kind

Schema = dict[str, Any]

_QUANTITY = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|"
    r"([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
_SUBDOMAIN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
_KEYS = {
    "apiVersion": "The version of the API in which this object is written.",
    "kind": "The kind of this object.",
}


def text(description: str, **rest: Any) -> Schema:
    return {"description": description, "type": "string", **rest}


def choice(description: str, *values: str, **rest: Any) -> Schema:
    return text(description, enum=list(values), **rest)


def name(description: str, **rest: Any) -> Schema:
    """The name of another object."""
    return text(description, maxLength=253, pattern=_SUBDOMAIN, **rest)


def moment(description: str) -> Schema:
    return text(description, format="date-time")


def count(description: str, *, minimum: int = 0, wide: bool = False, **rest: Any) -> Schema:
    size = "int64" if wide else "int32"
    return {
        "description": description,
        "type": "integer",
        "format": size,
        "minimum": minimum,
        **rest,
    }


def flag(description: str, **rest: Any) -> Schema:
    return {"description": description, "type": "boolean", **rest}


def quantities(description: str) -> Schema:
    """Amounts by resource, as numbers or as text with a suffix."""
    amount: Schema = {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "pattern": _QUANTITY,
        "x-kubernetes-int-or-string": True,
    }
    return mapping(description, amount)


def mapping(description: str, of: Schema) -> Schema:
    return {"description": description, "type": "object", "additionalProperties": of}


def listing(description: str, of: Schema, **rest: Any) -> Schema:
    return {"description": description, "type": "array", "items": of, **rest}


def record(description: str, required: tuple[str, ...] = (), /, **properties: Schema) -> Schema:
    schema: Schema = {"description": description, "type": "object", "properties": properties}
    if required:
        schema["required"] = list(required)
    return schema


def anything(description: str) -> Schema:
    """An object that passes through whole, with fields that no schema here knows."""
    return {
        "description": description,
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
    }


def selector(description: str) -> Schema:
    requirement = record(
        "One condition on a label.",
        ("key", "operator"),
        key=text("The label's key."),
        operator=text("In, NotIn, Exists or DoesNotExist."),
        values=listing(
            "The values for In and NotIn.",
            {"type": "string"},
            **{"x-kubernetes-list-type": "atomic"},
        ),
    )
    schema = record(
        description,
        matchExpressions=listing(
            "Conditions that must all hold.", requirement, **{"x-kubernetes-list-type": "atomic"}
        ),
        matchLabels=mapping("Labels that must all be there.", {"type": "string"}),
    )
    schema["x-kubernetes-map-type"] = "atomic"
    return schema


def column(title: str, path: str, kind: str = "string", *, wide: bool = False) -> Schema:
    shown: Schema = {"name": title, "type": kind, "jsonPath": path}
    if wide:
        shown["priority"] = 1
    return shown


AGE = column("Age", ".metadata.creationTimestamp", "date")


def definition(
    kind: Kind,
    description: str,
    *,
    spec: Schema,
    status: Schema,
    columns: list[Schema],
    older: Mapping[str, Schema] = MappingProxyType({}),
    annotations: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Any]:
    """One kind with its status as a subresource.

    `older`: the spec in further versions, by their names. All versions are stored as the kind's
    own, so they must know the same fields: what the stored version did not know would be lost.
    """
    names: dict[str, Any] = {
        "kind": kind.kind,
        "listKind": f"{kind.kind}List",
        "plural": kind.plural,
        "singular": kind.singular,
    }
    if kind.short_names:
        names["shortNames"] = list(kind.short_names)
    if kind.categories:
        names["categories"] = list(kind.categories)
    metadata: dict[str, Any] = {"name": kind.qualified}
    if annotations:
        metadata["annotations"] = dict(annotations)

    def version(name: str, spec: Schema) -> dict[str, Any]:
        properties: Schema = {key: text(words) for key, words in _KEYS.items()}
        properties |= {"metadata": {"type": "object"}, "spec": spec, "status": status}
        return {
            "name": name,
            "served": True,
            "storage": name == kind.version,
            "subresources": {"status": {}},
            "additionalPrinterColumns": columns,
            "schema": {
                "openAPIV3Schema": {
                    "description": description,
                    "type": "object",
                    "properties": properties,
                }
            },
        }

    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": {
            "group": kind.group,
            "names": names,
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": [
                version(name, schema) for name, schema in {kind.version: spec, **older}.items()
            ],
        },
    }
