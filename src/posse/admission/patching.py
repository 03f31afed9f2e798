"""From an object to the one it should be, as JSON Patch (RFC 6902)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Operation = Mapping[str, Any]


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[Operation, ...]:
    """What makes `new` of `old`, member by member; lists are replaced whole."""
    return tuple(_differences(old, new, ""))


def _differences(old: Mapping[str, Any], new: Mapping[str, Any], path: str) -> Iterator[Operation]:
    for name in old:
        if name not in new:
            yield {"op": "remove", "path": _at(path, name)}
    for name, value in new.items():
        if name not in old:
            yield {"op": "add", "path": _at(path, name), "value": value}
            continue
        before = old[name]
        if isinstance(before, dict) and isinstance(value, dict):
            yield from _differences(before, value, _at(path, name))
        elif before != value or type(before) is not type(value):
            yield {"op": "replace", "path": _at(path, name), "value": value}


def _at(path: str, name: str) -> str:
    return f"{path}/{name.replace('~', '~0').replace('/', '~1')}"
