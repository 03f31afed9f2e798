"""The columns a CustomResourceDefinition asks for."""

from __future__ import annotations

import json
from typing import Any

from posse.local.apiserver.tables.durations import age
from posse.local.apiserver.tables.jsonpath import JsonPath, JsonPathError
from posse.local.apiserver.tables.layout import Cell, Column
from posse.objects.raw import mappings, number, text

_AGE = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}


def columns_of(crd_version: dict[str, Any]) -> list[Column]:
    """Name, then `additionalPrinterColumns`, or the age alone where there are none."""
    wanted = mappings(crd_version, "additionalPrinterColumns") or [_AGE]
    name = Column("Name", lambda obj, now: text(obj.get("metadata"), "name"), format="name")
    return [name, *map(_column, wanted)]


def _column(wanted: dict[str, Any]) -> Column:
    path = text(wanted, "jsonPath")
    return Column(
        name=text(wanted, "name"),
        type=text(wanted, "type"),
        format=text(wanted, "format"),
        description=text(wanted, "description")
        or f"Custom resource definition column (in JSONPath format): {path}",
        priority=number(wanted, "priority") or 0,
        read=_cell(path, text(wanted, "type")),
    )


def _cell(path: str, kind: str) -> Cell:
    try:
        compiled = JsonPath(path)
    except JsonPathError:
        return lambda obj, now: None  # the column stays, and stays empty

    def read(obj: dict[str, Any], now: float) -> Any:
        found = compiled.find(obj)
        return _shown(found[0], kind, now) if found else None

    return read


def _shown(value: Any, kind: str, now: float) -> Any:
    """A value that does not have the column's type is not shown."""
    if kind == "string":
        return _printed(value)
    numeric = isinstance(value, int | float) and not isinstance(value, bool)
    if kind == "integer" and numeric:
        return int(value)
    if kind == "number" and numeric:
        return value
    if kind == "boolean" and isinstance(value, bool):
        return value
    if kind == "date" and isinstance(value, str):
        return age(value, now)
    return None


def _printed(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
