"""Reading raw objects, which may hold anything anywhere.

A member of the wrong type reads as if it were absent: whether that is an error is for the schema
to say, and no reader here ever fails on it. Positions in lists are kept.
"""

from __future__ import annotations

from typing import Any

Raw = dict[str, Any]


def mapping(obj: Any, *path: str) -> Raw:
    """The mapping at the path, or an empty one that is not part of the object."""
    for name in path:
        obj = obj.get(name) if isinstance(obj, dict) else None
    return obj if isinstance(obj, dict) else {}


def listing(obj: Any, *path: str) -> list[Any]:
    for name in path:
        obj = obj.get(name) if isinstance(obj, dict) else None
    return obj if isinstance(obj, list) else []


def mappings(obj: Any, *path: str) -> list[Raw]:
    """The list at the path, with an empty mapping in place of what is no mapping."""
    return [item if isinstance(item, dict) else {} for item in listing(obj, *path)]


def text(obj: Any, name: str) -> str:
    value = obj.get(name) if isinstance(obj, dict) else None
    return value if isinstance(value, str) else ""


def texts(obj: Any, name: str) -> list[str]:
    return [item if isinstance(item, str) else "" for item in listing(obj, name)]


def number(obj: Any, name: str) -> int | None:
    value = obj.get(name) if isinstance(obj, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def strings(obj: Any, *path: str) -> dict[str, str]:
    """A mapping of strings such as labels, sorted by key; other values are left out."""
    return {
        key: value for key, value in sorted(mapping(obj, *path).items()) if _is_text(key, value)
    }


def _is_text(key: Any, value: Any) -> bool:
    return isinstance(key, str) and isinstance(value, str)
