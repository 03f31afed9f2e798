"""Patches: what an object becomes by them, or why not."""

from __future__ import annotations

from typing import Any

from posse.local.apiserver.patching import merging, strategic
from posse.local.apiserver.patching.copying import copied
from posse.local.apiserver.patching.operations import apply_operations
from posse.local.apiserver.patching.refusal import PatchError, malformed, unprocessable
from posse.objects.kinds import Kind
from posse.objects.schemas.core import core_struct
from posse.objects.schemas.notation import Named

__all__ = ["PatchError", "apply_patch", "check_format"]

_JSON = "application/json-patch+json"
_MERGE = "application/merge-patch+json"
_STRATEGIC = "application/strategic-merge-patch+json"
_APPLY = "application/apply-patch+yaml"


def apply_patch(
    content_type: str, current: dict[str, Any], patch: Any, kind: Kind
) -> dict[str, Any]:
    """A new object; `current` and `patch` stay as they are.

    Strategic merge patches need to know the kind's lists, so only built-in kinds take them.
    """
    media_type, struct = check_format(content_type, kind)
    if media_type == _JSON:
        patched = apply_operations(copied(current), copied(patch))
    elif media_type == _MERGE:
        patched = merging.merge(copied(current), _map(copied(patch)))
    else:
        assert struct is not None
        patched = strategic.merge(copied(current), _map(copied(patch)), struct)
    if not isinstance(patched, dict):
        raise unprocessable("the patched object must be an object")
    return patched


def check_format(content_type: str, kind: Kind) -> tuple[str, Named | None]:
    """The patch's media type and the kind's struct; 415 if the kind takes no such patch."""
    media_type = content_type.partition(";")[0].strip().lower()
    struct = _struct(kind)
    if media_type in (_JSON, _MERGE) or (media_type == _STRATEGIC and struct is not None):
        return media_type, struct
    raise _unsupported(media_type, struct)


def _struct(kind: Kind) -> Named | None:
    try:
        return Named(core_struct(kind).name)
    except KeyError:
        return None


def _map(patch: Any) -> dict[str, Any]:
    if not isinstance(patch, dict):
        raise malformed("error decoding patch: the patch must be an object")
    return patch


def _unsupported(media_type: str, struct: Named | None) -> PatchError:
    accepted = ", ".join((_JSON, _MERGE) if struct is None else (_JSON, _MERGE, _STRATEGIC))
    if media_type == _APPLY:
        why = "server-side apply is not served here"
    else:
        why = "the body of the request was in an unknown format"
    message = f"{why} - accepted media types include: {accepted}"
    return PatchError(415, "UnsupportedMediaType", message)
