"""Who owns an object: by uid, never by name.

A name can be used again; a uid cannot. An object with the right name under another owner, or under
an earlier incarnation of the same one, is not ours: it is neither adopted nor touched.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from posse.objects.kinds import Kind

Key = tuple[str, str]
Manifest = dict[str, Any]


def metadata_of(obj: Mapping[str, Any]) -> Mapping[str, Any]:
    """The metadata, or nothing where a malformed object has none."""
    metadata = obj.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def key_of(obj: Mapping[str, Any]) -> Key:
    metadata = metadata_of(obj)
    return (metadata.get("namespace") or "", metadata.get("name") or "")


def uid_of(obj: Mapping[str, Any]) -> str:
    return metadata_of(obj).get("uid") or ""


def owner_reference(kind: Kind, owner: Mapping[str, Any]) -> Manifest:
    """The reference that makes `owner` the controller of an object."""
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "name": metadata_of(owner)["name"],
        "uid": uid_of(owner),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def controller_of(obj: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The one owner reference marked as controller."""
    references = metadata_of(obj).get("ownerReferences")
    if not isinstance(references, list):
        return None
    for reference in references:
        if isinstance(reference, dict) and reference.get("controller") is True:
            return reference
    return None


def controlled_by(obj: Mapping[str, Any], owner_uid: str) -> bool:
    reference = controller_of(obj)
    return reference is not None and bool(owner_uid) and reference.get("uid") == owner_uid


def is_leftover(obj: Mapping[str, Any], kind: Kind, owner: Mapping[str, Any]) -> bool:
    """Whether it belongs to an earlier object of the owner's name: it will be collected."""
    reference = controller_of(obj)
    return (
        reference is not None
        and owner_key(obj, kind) == key_of(owner)
        and reference.get("uid") != uid_of(owner)
    )


def owner_key(obj: Mapping[str, Any], kind: Kind) -> Key | None:
    """The key of the controlling `kind`, in whatever version the reference was written."""
    reference = controller_of(obj)
    if reference is None or reference.get("kind") != kind.kind:
        return None
    group = str(reference.get("apiVersion") or "").rpartition("/")[0]
    if group != kind.group:
        return None
    namespace = key_of(obj)[0] if kind.namespaced else ""
    return (namespace, str(reference.get("name") or ""))
