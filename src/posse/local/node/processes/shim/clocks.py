"""The shim's own time: it is a program by itself, and `posse.world` would double what it loads."""

from __future__ import annotations

import time


def wall() -> float:
    return time.time()  # noqa: TID251


def wall_nanoseconds() -> int:
    return time.time_ns()  # noqa: TID251


def monotonic() -> float:
    return time.monotonic()  # noqa: TID251
