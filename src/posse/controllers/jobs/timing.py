"""The dates of a job that nobody else would keep: its deadline, and the end of its stay."""

from __future__ import annotations

from posse.controllers.jobs.drafting import StatusDraft
from posse.objects.times import parse_time
from posse.objects.trainingjobs import RunPolicy


def time_left(run: RunPolicy, draft: StatusDraft, now: float) -> float | None:
    """Seconds until activeDeadlineSeconds are over; None where there is no deadline."""
    if run.active_deadline_seconds is None or draft.start_time is None:
        return None
    return parse_time(draft.start_time) + run.active_deadline_seconds - now


def is_overdue(run: RunPolicy, draft: StatusDraft, now: float) -> bool:
    left = time_left(run, draft, now)
    return left is not None and left <= 0


def expires_in(run: RunPolicy, draft: StatusDraft, now: float) -> float | None:
    """Seconds until a finished job is to go; None for one that stays."""
    if run.ttl_seconds_after_finished is None or draft.completion_time is None:
        return None
    return parse_time(draft.completion_time) + run.ttl_seconds_after_finished - now
