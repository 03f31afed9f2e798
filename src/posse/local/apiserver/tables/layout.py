"""Columns, and how a row is filled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec

Object: TypeAlias = dict[str, Any]
Cell: TypeAlias = Callable[[Object, float], Any]


class Column(msgspec.Struct, frozen=True):
    """One column; priority 0 is always printed, higher ones with `-o wide`."""

    name: str
    read: Cell
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0


class Layout(msgspec.Struct, frozen=True):
    """The columns of a kind; where several of them tell one story, `summary` is read once."""

    columns: tuple[Column, ...]
    summary: Callable[[Object, float], dict[str, Any]] | None = None
    conditions: Callable[[Object], list[Object]] | None = None

    def cells(self, obj: Object, now: float) -> list[Any]:
        shown = self.summary(obj, now) if self.summary is not None else obj
        return [column.read(shown, now) for column in self.columns]
