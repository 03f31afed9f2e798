"""The events of a job, as its user reads them."""

from __future__ import annotations

from typing import Any

import msgspec

from posse.objects.times import parse_time


class Happening(msgspec.Struct, frozen=True):
    source: str  # kind/name of what it happened to
    type: str  # Normal or Warning
    age: float  # seconds since it last happened
    message: str


def read_happenings(events: list[dict[str, Any]], now: float) -> list[Happening]:
    """In the order in which they last happened."""
    mine = sorted(events, key=lambda e: (when(e), e["metadata"]["name"]))
    return [
        Happening(
            source=f"{e['involvedObject'].get('kind', '').lower()}/{e['involvedObject']['name']}",
            type=e.get("type") or "Normal",
            age=max(0.0, now - parse_time(last)) if (last := when(e)) else 0.0,
            message=f"[{e.get('reason', '')}] {e.get('message', '')}",
        )
        for e in mine
    ]


def when(event: dict[str, Any]) -> str:
    """The moment it last happened, as it is written."""
    for field in ("lastTimestamp", "eventTime", "firstTimestamp"):
        if event.get(field):
            return str(event[field])
    return event["metadata"].get("creationTimestamp") or ""
