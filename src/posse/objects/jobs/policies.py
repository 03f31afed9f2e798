"""What a job says about its own end."""

from __future__ import annotations

from collections.abc import Iterable

from posse.objects.errors import FieldError
from posse.objects.jobs.wrongs import non_negative, one_of
from posse.objects.trainingjobs import RunPolicy

# Which pods go when a job has finished.
CLEAN_NONE = "None"
CLEAN_RUNNING = "Running"
CLEAN_ALL = "All"
_CLEANING = (CLEAN_ALL, CLEAN_NONE, CLEAN_RUNNING)


def run_policy_problems(run: RunPolicy, clean_pod_policy: str) -> Iterable[FieldError]:
    path = "spec.runPolicy"
    yield from one_of(f"{path}.cleanPodPolicy", clean_pod_policy, _CLEANING)
    yield from non_negative(f"{path}.ttlSecondsAfterFinished", run.ttl_seconds_after_finished)
    yield from non_negative(f"{path}.activeDeadlineSeconds", run.active_deadline_seconds)
    yield from non_negative(f"{path}.backoffLimit", run.backoff_limit)
    if run.scheduling_policy is not None:
        least = run.scheduling_policy.min_available
        yield from non_negative(f"{path}.schedulingPolicy.minAvailable", least)
