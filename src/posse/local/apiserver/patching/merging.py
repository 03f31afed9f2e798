"""JSON merge patches (RFC 7386)."""

from __future__ import annotations

from typing import Any


def merge(target: Any, patch: Any) -> Any:
    """`target` is changed in place where it can be; null removes a member."""
    if not isinstance(patch, dict):
        return patch
    merged = target if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge(merged.get(key), value)
    return merged
