"""Objects that cannot be read: named once, set aside, and never in anybody's way."""

from __future__ import annotations

from typing import Any, Protocol

from posse.objects.kinds import Kind

REASON = "Quarantined"
DOUBTFUL = "Doubtful"


class Unreadable(ValueError):
    """A field of an object says nothing that makes sense; the sentence names the field."""

    def __init__(self, field: str, why: str) -> None:
        super().__init__(f"{field}: {why}")
        self.field = field
        self.why = why


class Records(Protocol):
    """The part of an event recorder that is needed here."""

    def record(
        self, regarding: Any, reason: str, message: str, *, warning: bool = False, kind: Kind
    ) -> None: ...


class Quarantine:
    """Says of each unreadable object why, with one event for as long as the reason is the same."""

    def __init__(self, events: Records) -> None:
        self._events = events
        self._said: dict[str, str] = {}
        self._doubted: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._said)

    def admit(self, kind: Kind, regarding: Any, uid: str, why: str) -> None:
        if self._said.get(uid) == why:
            return
        self._said[uid] = why
        self._events.record(
            regarding, REASON, f"set aside until it is mended: {why}", warning=True, kind=kind
        )

    def discharge(self, uid: str) -> None:
        """It reads well again, or is gone."""
        self._said.pop(uid, None)

    def doubt(self, kind: Kind, regarding: Any, uid: str, why: str) -> None:
        """It can be used, but hardly is what somebody meant; "" when it is."""
        if why and self._doubted.get(uid) != why:
            self._events.record(regarding, DOUBTFUL, why, warning=True, kind=kind)
        if why:
            self._doubted[uid] = why
        else:
            self._doubted.pop(uid, None)
