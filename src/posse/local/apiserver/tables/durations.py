"""How long ago, the way Kubernetes tells people: two or three significant figures."""

from __future__ import annotations

from typing import Any

from posse.objects.times import parse_time

_DAY = 24
_YEAR = 24 * 365


def human_duration(seconds: float) -> str:
    """`119s`, `2m5s`, `10m`, `3h59m`, `47h`, `5d3h`, `2y10d`."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if whole < 120:
        return f"{max(whole, 0)}s"
    minutes, hours = whole // 60, whole // 3600
    if minutes < 10:
        return _both(minutes, "m", whole % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _both(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if hours < 8 * _DAY:
        return _both(hours // _DAY, "d", hours % _DAY, "h")
    if hours < 2 * _YEAR:
        return f"{hours // _DAY}d"
    if hours < 8 * _YEAR:
        return _both(hours // _YEAR, "y", hours // _DAY % 365, "d")
    return f"{hours // _YEAR}y"


def age(timestamp: Any, now: float) -> str:
    """The time since a timestamp of an object; `<unknown>` where there is none."""
    if not timestamp:
        return "<unknown>"
    then = moment(timestamp)
    return "<invalid>" if then is None else human_duration(now - then)


def moment(timestamp: Any) -> float | None:
    """Seconds since the epoch; None for what is no time."""
    try:
        return parse_time(timestamp)
    except (TypeError, ValueError):
        return None


def _both(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"
