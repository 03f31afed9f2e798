"""Copies of JSON values, so that no patched object shares a part with the stored one."""

from __future__ import annotations

from typing import Any


def copied(value: Any) -> Any:
    if type(value) is dict:
        return {key: copied(item) for key, item in value.items()}
    if type(value) is list:
        return [copied(item) for item in value]
    return value


def same(one: Any, other: Any) -> bool:
    """JSON equality: 1 is 1.0 but not true."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(item, other[k]) for k, item in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)
