"""Which object a document is, whether it is a dict or a model.

Everything here that handles objects of any kind needs only four fields of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from posse.objects.meta import Key

Object = dict[str, Any]


class Identity(NamedTuple):
    namespace: str
    name: str
    uid: str
    resource_version: str

    @property
    def key(self) -> Key:
        return (self.namespace, self.name)


class Malformed(msgspec.Struct, frozen=True):
    """An object that cannot be read as its model; its identity as far as it can be told."""

    kind: str
    identity: Identity
    why: str

    @property
    def key(self) -> Key:
        return self.identity.key


def identify(obj: Any) -> Identity:
    """The identity of a dict or model; ValueError when it has no name."""
    meta = None if isinstance(obj, dict) else obj.metadata
    found = (
        identify_loosely(obj)
        if meta is None
        else Identity(meta.namespace, meta.name, meta.uid, meta.resource_version)
    )
    if not found.name:
        raise ValueError("metadata.name is missing")
    return found


def identify_loosely(obj: object) -> Identity:
    """As much of the identity as is there; empty where it is missing or of a wrong type."""
    meta = obj.get("metadata") if isinstance(obj, dict) else getattr(obj, "metadata", None)
    if isinstance(meta, dict):
        values = [meta.get(field) for field in ("namespace", "name", "uid", "resourceVersion")]
    else:
        values = [
            getattr(meta, field, None) for field in ("namespace", "name", "uid", "resource_version")
        ]
    return Identity(*(value if isinstance(value, str) else "" for value in values))


def malformed(kind: str, raw: bytes | msgspec.Raw, why: Exception) -> Malformed:
    """The record of a document that did not decode."""
    try:
        found = identify_loosely(msgspec.json.decode(raw))
    except (ValueError, RecursionError):
        found = Identity("", "", "", "")
    return Malformed(kind, found, str(why) or type(why).__name__)
