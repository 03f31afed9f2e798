"""What an MPIJob says of itself: its conditions and counts."""

from __future__ import annotations

from collections.abc import Sequence

from posse.controllers.jobs import conditions
from posse.controllers.jobs.drafting import StatusDraft
from posse.controllers.jobs.pods import Counts, count, is_running, message_of, phase_of, reason_of
from posse.controllers.jobs.refusing import forgive
from posse.controllers.runtime import Manifest, metadata_of
from posse.objects.jobs.mpi.spec import LAUNCHER_TYPE, WORKER_TYPE, Job

CREATED = "MPIJobCreated"
RUNNING = "MPIJobRunning"
RESTARTING = "MPIJobRestarting"
SUCCEEDED = "MPIJobSucceeded"
FAILED = "MPIJobFailed"
SUSPENDED = "MPIJobSuspended"
RESUMED = "MPIJobResumed"
EVICTED = "MPIJobEvicted"
DEADLINE = "DeadlineExceeded"
INVALID_SPEC = "InvalidMPIJobSpec"
VALIDATION_ERROR = "ValidationError"

_BACKOFF = "BackoffLimitExceeded"


def launcher_condition(launcher: Manifest | None, type_: str) -> Manifest | None:
    """The true condition of that type on the launcher's batch Job."""
    if launcher is None:
        return None
    found = conditions.find((launcher.get("status") or {}).get("conditions") or [], type_)
    return found if found is not None and found.get("status") == "True" else None


def launcher_finished(launcher: Manifest | None) -> bool:
    return any(launcher_condition(launcher, type_) for type_ in ("Complete", "Failed"))


def begin(draft: StatusDraft, job: Job) -> None:
    """Acknowledge the job; an invalid spec that has been mended is forgiven."""
    forgive(draft, INVALID_SPEC)
    if conditions.find(draft.conditions, conditions.CREATED) is None:
        draft.set(conditions.CREATED, True, CREATED, f"MPIJob {_full_name(job)} is created.")
    if job.suspended:
        return
    if conditions.holds(draft.conditions, conditions.SUSPENDED):
        # Time counts from here: a deadline does not run while a job is suspended.
        draft.set(conditions.SUSPENDED, False, RESUMED, "MPIJob resumed")
        draft.start()
    elif draft.start_time is None:
        draft.start()


def succeed(draft: StatusDraft, job: Job, launcher: Manifest) -> None:
    draft.complete((launcher.get("status") or {}).get("completionTime"))
    message = f"MPIJob {_full_name(job)} successfully completed."
    draft.set(conditions.SUCCEEDED, True, SUCCEEDED, message)


def fail(draft: StatusDraft, reason: str, message: str) -> None:
    draft.complete()
    draft.set(conditions.FAILED, True, reason, message, warning=True)


def fail_overdue(draft: StatusDraft, job: Job) -> None:
    limit = job.run.active_deadline_seconds
    fail(
        draft,
        DEADLINE,
        f"MPIJob {_full_name(job)} was active longer than its activeDeadlineSeconds, {limit}.",
    )


def fail_like_launcher(
    draft: StatusDraft, job: Job, failure: Manifest, pods: Sequence[Manifest]
) -> None:
    """The launcher's Job gave up; the last pod it tried says most about why."""
    reason = failure.get("reason") or FAILED
    message = failure.get("message") or f"MPIJob {_full_name(job)} has failed"
    failed = [pod for pod in pods if phase_of(pod) == "Failed"]
    if reason == _BACKOFF and failed:
        last = max(failed, key=lambda pod: metadata_of(pod).get("creationTimestamp") or "")
        reason += f"/{reason_of(last)}" if reason_of(last) else ""
        message += f": {message_of(last)}" if message_of(last) else ""
    fail(draft, reason, message)


def suspend(draft: StatusDraft, job: Job) -> None:
    message = f"MPIJob {_full_name(job)} is suspended."
    draft.set(conditions.RUNNING, False, SUSPENDED, message, quiet=True)
    draft.set(conditions.SUSPENDED, True, SUSPENDED, "MPIJob suspended")


def tally(
    draft: StatusDraft,
    launcher: Manifest | None,
    launcher_pods: Sequence[Manifest],
    workers: Sequence[Manifest],
) -> None:
    if launcher is not None:
        failed = (launcher.get("status") or {}).get("failed") or 0
        done = launcher_finished(launcher)
        counts = Counts(
            active=0 if done else sum(is_running(pod) for pod in launcher_pods),
            succeeded=1 if launcher_condition(launcher, "Complete") else 0,
            failed=failed,
        )
        draft.count(LAUNCHER_TYPE, counts)
    draft.count(WORKER_TYPE, count(workers))


def proceed(
    draft: StatusDraft, job: Job, launcher_pods: Sequence[Manifest], workers: Sequence[Manifest]
) -> None:
    """Running when every member runs; Restarting when one that ran has to come back.

    Growing is not restarting: members that are only added leave the job Running.
    """
    running_workers = sum(is_running(pod) for pod in workers)
    running_launchers = sum(is_running(pod) for pod in launcher_pods)
    if running_launchers and running_workers == job.workers:
        draft.set(conditions.RUNNING, True, RUNNING, f"MPIJob {_full_name(job)} is running.")
        return
    if not conditions.holds(draft.conditions, conditions.RUNNING):
        return
    lost = draft.counted(WORKER_TYPE).active > running_workers
    comes_back = any(phase_of(pod) == "Pending" for pod in launcher_pods)
    if (lost and _missing(job, workers)) or (not running_launchers and comes_back):
        message = (
            f"MPIJob {_full_name(job)} is restarting: {running_workers} of {job.workers} workers "
            f"and {running_launchers} launcher are running."
        )
        draft.set(conditions.RESTARTING, True, RESTARTING, message, warning=True)


def _missing(job: Job, workers: Sequence[Manifest]) -> bool:
    """Whether a worker is gone or waits again; one that ended for good does not come back."""
    ended = sum(phase_of(pod) in ("Succeeded", "Failed") for pod in workers)
    running = sum(is_running(pod) for pod in workers)
    return running + ended < job.workers


def _full_name(job: Job) -> str:
    return f"{job.namespace}/{job.name}"
