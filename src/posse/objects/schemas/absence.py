"""What stands for an absent field: its default, or nothing where a null means absence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

Default: TypeAlias = Callable[[Any], None]
_UNSET = object()


class _Child:
    """How one field (or every value of a map) is treated."""

    __slots__ = ("default", "fallback", "nullable")

    def __init__(self, schema: dict[str, Any]) -> None:
        self.default = defaulter(schema)
        self.fallback = schema.get("default", _UNSET)
        self.nullable = schema.get("nullable") is True


def defaulter(schema: dict[str, Any]) -> Default | None:
    """A null where the schema allows none counts as absent: it becomes the default or goes."""
    fields = {name: _Child(field) for name, field in schema.get("properties", {}).items()}
    below, items = schema.get("additionalProperties"), schema.get("items")
    values = _Child(below) if isinstance(below, dict) else None
    elements = _Child(items) if isinstance(items, dict) else None
    if not fields and values is None and elements is None:
        return None
    fallbacks = [
        (name, child.fallback, child.nullable)
        for name, child in fields.items()
        if child.fallback is not _UNSET
    ]

    def default(value: Any) -> None:
        if type(value) is dict:
            for name, fallback, nullable in fallbacks:
                if name not in value or (value[name] is None and not nullable):
                    value[name] = _copied(fallback)
            absent: list[str] | None = None
            for key, item in value.items():
                child = fields.get(key, values)
                if child is None:
                    continue
                if item is None and not child.nullable:
                    if child.fallback is not _UNSET:
                        value[key] = _copied(child.fallback)
                    elif absent is None:
                        absent = [key]
                    else:
                        absent.append(key)
                elif child.default is not None:
                    child.default(item)
            for key in absent or ():
                del value[key]
        elif elements is not None and type(value) is list:
            for index, item in enumerate(value):
                if item is None and not elements.nullable and elements.fallback is not _UNSET:
                    value[index] = item = _copied(elements.fallback)
                if elements.default is not None:
                    elements.default(item)

    return default


def _copied(value: Any) -> Any:
    if type(value) is dict:
        return {key: _copied(item) for key, item in value.items()}
    if type(value) is list:
        return [_copied(item) for item in value]
    return value
