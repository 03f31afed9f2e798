"""Columns, ages and times as Arena prints them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec
import yaml

from posse.objects.times import parse_time


def columns(rows: Sequence[Sequence[object]], indent: str = "") -> str:
    """Two spaces between columns, nothing behind the last."""
    texts = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)] if texts else []
    return "\n".join(
        indent + "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip()
        for row in texts
    )


def short_age(seconds: float) -> str:
    """5s 4m 3h 2d 1y: one unit, the largest that is not zero."""
    whole = max(0, int(seconds))
    for size, unit in ((31_536_000, "y"), (86_400, "d"), (3_600, "h"), (60, "m")):
        if whole >= size:
            return f"{whole // size}{unit}"
    return f"{whole}s"


def local_time(timestamp: str) -> str:
    if not timestamp:
        return ""
    return datetime.fromtimestamp(parse_time(timestamp)).strftime("%Y-%m-%d %H:%M:%S")


def document(value: Any, how: str) -> str:
    """`value` as JSON or YAML, keys in the order they were written."""
    plain = msgspec.to_builtins(value)
    if how == "yaml":
        return str(yaml.safe_dump(plain, sort_keys=False, allow_unicode=True)).rstrip("\n")
    return msgspec.json.format(msgspec.json.encode(plain), indent=2).decode()
