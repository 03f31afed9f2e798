"""The events of a job, as its user reads them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import msgspec

from posse.objects.times import parse_time


class Happening(msgspec.Struct, frozen=True):
    source: str  # kind/name of what it happened to
    type: str  # Normal or Warning
    age: float  # seconds since it last happened
    message: str


def read_happenings(
    events: list[dict[str, Any]], about: Collection[str], now: float
) -> list[Happening]:
    mine = [e for e in events if (e.get("involvedObject") or {}).get("uid") in about]
    mine.sort(key=lambda e: (_when(e), e["metadata"]["name"]))
    return [
        Happening(
            source=f"{e['involvedObject'].get('kind', '').lower()}/{e['involvedObject']['name']}",
            type=e.get("type") or "Normal",
            age=max(0.0, now - parse_time(when)) if (when := _when(e)) else 0.0,
            message=f"[{e.get('reason', '')}] {e.get('message', '')}",
        )
        for e in mine
    ]


def _when(event: dict[str, Any]) -> str:
    for field in ("lastTimestamp", "eventTime", "firstTimestamp"):
        if event.get(field):
            return str(event[field])
    return event["metadata"].get("creationTimestamp") or ""
