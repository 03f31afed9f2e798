"""Objects and options as requests carry them: paths, queries, bodies."""

from __future__ import annotations

import msgspec

from posse.kube.identity import Object
from posse.objects.kinds import Kind


def collection_path(kind: Kind, namespace: str) -> str:
    return kind.path(namespace or None)


def object_path(kind: Kind, namespace: str, name: str, subresource: str | None = None) -> str:
    if kind.namespaced and not namespace:
        raise ValueError(f"{kind.kind} {name!r} needs a namespace")
    if not name:
        raise ValueError(f"a {kind.kind} needs a name")
    return kind.path(namespace, name, subresource)


def document_of(kind: Kind, obj: Object | msgspec.Struct) -> Object:
    """`obj` as the server reads it: with apiVersion and kind, the caller's dict untouched."""
    fields: Object = obj if isinstance(obj, dict) else msgspec.to_builtins(obj)
    return {"apiVersion": kind.api_version, "kind": kind.kind} | fields


def selection(labels: str, fields: str) -> dict[str, str]:
    query = {}
    if labels:
        query["labelSelector"] = labels
    if fields:
        query["fieldSelector"] = fields
    return query


def dry(dry_run: bool) -> dict[str, str]:
    return {"dryRun": "All"} if dry_run else {}


def deletion(
    uid: str | None, resource_version: str | None, grace: int | None, propagation: str | None
) -> Object:
    options: Object = {"apiVersion": "v1", "kind": "DeleteOptions"}
    preconditions = {
        field: value
        for field, value in (("uid", uid), ("resourceVersion", resource_version))
        if value
    }
    if preconditions:
        options["preconditions"] = preconditions
    if grace is not None:
        options["gracePeriodSeconds"] = grace
    if propagation is not None:
        options["propagationPolicy"] = propagation
    return options
