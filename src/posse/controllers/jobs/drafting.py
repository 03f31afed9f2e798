"""A status in the making: what changes in it is remembered, and so is what to say about it."""

from __future__ import annotations

from typing import Any

from posse.controllers.jobs import conditions
from posse.controllers.jobs.actions import Say
from posse.controllers.jobs.pods import Counts
from posse.controllers.runtime import Manifest
from posse.objects.times import rfc3339


class StatusDraft:
    """Starts from the job's status; fields that this program does not know stay in it."""

    def __init__(self, job: Manifest, now: float) -> None:
        status = job.get("status")
        self._before: dict[str, Any] = status if isinstance(status, dict) else {}
        self._now = now
        self._fields = dict(self._before)
        found = self._before.get("conditions")
        self.conditions = [item for item in found or [] if isinstance(item, dict)]
        self.says: list[Say] = []

    def set(
        self,
        type_: str,
        status: bool,
        reason: str,
        message: str,
        *,
        warning: bool = False,
        quiet: bool = False,
    ) -> bool:
        """Set a condition; whether that changed anything. A change is also an event."""
        updated = conditions.with_condition(
            self.conditions, type_, status, reason, message, self._now
        )
        if updated == self.conditions:
            return False
        self.conditions = updated
        if not quiet:
            self.says.append(Say(reason, message, warning))
        return True

    def drop(self, type_: str) -> None:
        self.conditions = conditions.without(self.conditions, type_)

    def count(self, replica_type: str, counts: Counts) -> None:
        statuses = dict(self._fields.get("replicaStatuses") or {})
        statuses[replica_type] = counts.as_status()
        self._fields["replicaStatuses"] = statuses

    def counted(self, replica_type: str) -> Counts:
        """What the status said before this draft."""
        return _counts(self._before, replica_type)

    def counts(self, replica_type: str) -> Counts:
        """What the status says now."""
        return _counts(self._fields, replica_type)

    def start(self) -> None:
        self._fields["startTime"] = rfc3339(self._now)

    def complete(self, at: str | None = None) -> None:
        """Finished; the first time that says so stands."""
        if not self._fields.get("completionTime"):
            self._fields["completionTime"] = at or rfc3339(self._now)

    @property
    def start_time(self) -> str | None:
        return self._fields.get("startTime")

    @property
    def completion_time(self) -> str | None:
        return self._fields.get("completionTime")

    def result(self) -> dict[str, Any] | None:
        """The status to write, or None when nothing in it changed."""
        written = dict(self._fields)
        if self.conditions or "conditions" in written:
            written["conditions"] = self.conditions
        return None if written == self._before else written


def _counts(status: dict[str, Any], replica_type: str) -> Counts:
    found = (status.get("replicaStatuses") or {}).get(replica_type) or {}
    return Counts(
        active=found.get("active") or 0,
        succeeded=found.get("succeeded") or 0,
        failed=found.get("failed") or 0,
    )
