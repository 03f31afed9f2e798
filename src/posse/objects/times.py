"""Timestamps and durations as Kubernetes writes them."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache

_GO_UNITS = {
    "ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0,
}  # fmt: skip
_GO_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)")


def rfc3339(seconds: float) -> str:
    """metav1.Time: whole seconds, UTC."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def rfc3339_micro(seconds: float) -> str:
    """metav1.MicroTime, as leases and new-style events carry it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@lru_cache(maxsize=4096)
def parse_time(text: str) -> float:
    """Seconds since the epoch of an RFC 3339 time; ValueError says what was wrong.

    Objects have whole seconds, and those of one job were made in the same few of them.
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone")
    return moment.timestamp()


def parse_duration(text: str) -> float:
    """Seconds of a Go duration such as `1h30m` or `250ms`."""
    rest = text.strip()
    sign = -1.0 if rest.startswith("-") else 1.0
    rest = rest.lstrip("+-")
    if rest == "0":
        return 0.0
    total, position = 0.0, 0
    while rest and (part := _GO_PART.match(rest, position)):
        total += float(part[1]) * _GO_UNITS[part[2]]
        position = part.end()
    if not rest or position != len(rest):
        raise ValueError(f"{text!r} is not a duration such as 30s, 5m or 1h30m")
    return sign * total
