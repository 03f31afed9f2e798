"""How a Job's fortune is read and written: limits, deadlines, conditions."""

from __future__ import annotations

from enum import Enum
from typing import Any

from posse.local.core.conditions import condition, condition_set, is_true
from posse.local.core.pods import active, wall

Manifest = dict[str, Any]

DEFAULT_BACKOFF_LIMIT = 6


class Ending(Enum):
    """Why a Job is over. Pods that still run are ended first; then the last word is written."""

    SUCCESS = ("CompletionsReached", "Reached expected number of succeeded pods")
    BACKOFF = ("BackoffLimitExceeded", "Job has reached the specified backoff limit")
    DEADLINE = ("DeadlineExceeded", "Job was active longer than specified deadline")
    POLICY = ("PodFailurePolicy", "A pod has failed in a way for which the Job is to fail")

    @property
    def reason(self) -> str:
        return self.value[0]

    @property
    def message(self) -> str:
        return self.value[1]

    @staticmethod
    def written(job: Manifest) -> Ending:
        reason = condition(job, "FailureTarget").get("reason")
        return next((one for one in Ending if one.reason == reason), Ending.BACKOFF)

    def write(self, conditions: list[Manifest], now: str, *, final: bool) -> None:
        target, last = (
            ("SuccessCriteriaMet", "Complete")
            if self is Ending.SUCCESS
            else ("FailureTarget", "Failed")
        )
        condition_set(conditions, target, "True", self.reason, self.message, now)
        if final:
            condition_set(conditions, last, "True", self.reason, self.message, now)


def finished(job: Manifest) -> float | None:
    """When the Job ended, in wall seconds; None while it has not."""
    for kind in ("Complete", "Failed"):
        if is_true(job, kind):
            return wall(condition(job, kind).get("lastTransitionTime")) or 0.0
    return None


def count(job: Manifest, name: str) -> int:
    value = (job.get("status") or {}).get(name)
    return value if isinstance(value, int) else 0


def past_limit(spec: Manifest, failed: int, pods: list[Manifest]) -> bool:
    """Too many failures: of whole pods, or of containers restarted in place."""
    limit = spec.get("backoffLimit")
    limit = DEFAULT_BACKOFF_LIMIT if limit is None else int(limit)
    if failed > limit:
        return True
    policy = ((spec.get("template") or {}).get("spec") or {}).get("restartPolicy")
    if policy != "OnFailure":
        return False
    restarts = sum(_restarts(pod) for pod in pods if active(pod))
    return restarts > 0 if limit == 0 else restarts >= limit


def time_left(job: Manifest, now: float) -> float | None:
    seconds = job["spec"].get("activeDeadlineSeconds")
    started = wall((job.get("status") or {}).get("startTime"))
    if seconds is None or started is None or job["spec"].get("suspend"):
        return None
    return started + int(seconds) - now


def _restarts(pod: Manifest) -> int:
    status = pod.get("status") or {}
    return sum(
        int(entry.get("restartCount") or 0)
        for field in ("initContainerStatuses", "containerStatuses")
        for entry in status.get(field) or []
    )
