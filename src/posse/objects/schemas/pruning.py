"""Removing fields a schema does not know."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from posse.objects.schemas.paths import Path, render

Prune: TypeAlias = Callable[[Any, Path, list[str]], None]

_RESOURCE_FIELDS = ("apiVersion", "kind", "metadata")


def pruner(schema: dict[str, Any], *, root: bool = False) -> Prune | None:
    """None where nothing below `schema` can be unknown.

    The apiVersion, kind and metadata of a whole object, at the root or embedded, are never touched.
    Under x-kubernetes-preserve-unknown-fields everything stays, but fields the schema does describe
    are pruned inside again.
    """
    preserves = schema.get("x-kubernetes-preserve-unknown-fields") is True
    whole = root or schema.get("x-kubernetes-embedded-resource") is True
    below, items = schema.get("additionalProperties"), schema.get("items")
    fields = {name: pruner(field) for name, field in schema.get("properties", {}).items()}
    if whole:
        fields |= dict.fromkeys(_RESOURCE_FIELDS)
    open_ended = preserves or isinstance(below, dict) or below is True
    undescribed = None if preserves else _prune_everything
    values = pruner(below) if isinstance(below, dict) else undescribed
    elements = pruner(items) if isinstance(items, dict) else undescribed
    if open_ended and values is None and elements is None and not any(fields.values()):
        return None

    def prune(value: Any, path: Path, unknown: list[str]) -> None:
        if type(value) is dict:
            surplus: list[str] | None = None
            for key, item in value.items():
                if key in fields:
                    child = fields[key]
                elif open_ended:
                    child = values
                elif surplus is None:
                    surplus = [key]
                    continue
                else:
                    surplus.append(key)
                    continue
                if child is not None and (type(item) is dict or type(item) is list):
                    child(item, (path, key), unknown)
            for key in surplus or ():
                unknown.append(render((path, key)))
                del value[key]
        elif elements is not None and type(value) is list:
            for index, item in enumerate(value):
                elements(item, (path, index), unknown)

    return prune


def _prune_everything(value: Any, path: Path, unknown: list[str]) -> None:
    """Where the schema describes no object there can be no field."""
    if type(value) is dict:
        unknown.extend(render((path, key)) for key in value)
        value.clear()
    elif type(value) is list:
        for index, item in enumerate(value):
            _prune_everything(item, (path, index), unknown)
