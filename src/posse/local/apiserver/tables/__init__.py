"""meta.k8s.io/v1 Tables: what `kubectl get` prints."""

from __future__ import annotations

from typing import Any

from posse.local.apiserver.tables.builtin import LAYOUTS, plain
from posse.local.apiserver.tables.custom import columns_of
from posse.local.apiserver.tables.layout import Column, Layout
from posse.objects.kinds import Kind

__all__ = ["Column", "columns_of", "table"]


def table(
    kind: Kind,
    columns: list[Column] | None,
    objects: list[dict[str, Any]],
    now: float,
    include: str,
) -> dict[str, Any]:
    """One row an object. `columns` are those of a definition, None for a built-in kind's own.

    `include` says how much of each object comes along: None, Metadata or Object.
    """
    if columns is not None:
        layout = Layout(tuple(columns))
    else:
        layout = LAYOUTS.get((kind.group, kind.kind)) or plain()
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {},
        "columnDefinitions": [_definition(column) for column in layout.columns],
        "rows": [_row(layout, obj, now, include) for obj in objects],
    }


def _definition(column: Column) -> dict[str, Any]:
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": column.description,
        "priority": column.priority,
    }


def _row(layout: Layout, obj: dict[str, Any], now: float, include: str) -> dict[str, Any]:
    row: dict[str, Any] = {"cells": layout.cells(obj, now)}
    if layout.conditions is not None and (conditions := layout.conditions(obj)):
        row["conditions"] = conditions
    if include == "Object":
        row["object"] = obj
    elif include == "None":
        row["object"] = None
    else:
        row["object"] = {
            "kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": obj.get("metadata") or {},
        }
    return row
