"""What a job of replicas says of itself: its conditions and counts."""

from __future__ import annotations

from collections.abc import Sequence

from posse.controllers.jobs import conditions
from posse.controllers.jobs.actions import Say
from posse.controllers.jobs.drafting import StatusDraft
from posse.controllers.jobs.pods import Counts, count, exit_code_of, failure_of
from posse.controllers.jobs.refusing import forgive
from posse.controllers.jobs.replicas.observing import Situation
from posse.controllers.runtime import Manifest, key_of
from posse.objects.jobs.replicas.spec import Job, Replicas

DEADLINE = "DeadlineExceeded"
BACKOFF = "BackoffLimitExceeded"

_MOST_NAMED = 3


def invalid_spec(kind: str) -> str:
    return f"Invalid{kind}Spec"


def failed_validation(kind: str) -> str:
    return f"{kind}FailedValidation"


def begin(draft: StatusDraft, job: Job) -> None:
    """Acknowledge the job."""
    kind = job.declared.kind.kind
    forgive(draft, invalid_spec(kind))
    if conditions.find(draft.conditions, conditions.CREATED) is None:
        message = f"{kind} {job.name} is created."
        draft.set(conditions.CREATED, True, f"{kind}Created", message)
    if job.suspended:
        return
    if conditions.holds(draft.conditions, conditions.SUSPENDED):
        # Time counts from here: a deadline does not run while a job is suspended.
        message = f"{kind} {job.name} is resumed."
        draft.set(conditions.SUSPENDED, False, f"{kind}Resumed", message)
        draft.start()
    elif draft.start_time is None:
        draft.start()


def tally(draft: StatusDraft, situation: Situation) -> None:
    """Count the pods by role; a role in which one has ended says with which code."""
    job = situation.job
    for replicas in job.replicas:
        pods = list(situation.pods_of(replicas))
        before, now = draft.counted(replicas.type), count(pods)
        draft.count(replicas.type, now)
        if (before.succeeded, before.failed) == (now.succeeded, now.failed):
            continue
        for pod in pods:
            code = exit_code_of(pod, job.declared.container)
            if code is not None:
                message = f"Pod: {job.namespace}.{key_of(pod)[1]} exited with code {code}"
                draft.says.append(Say("ExitedWithCode", message))


def settle_counts(draft: StatusDraft, job: Job, *, succeeded: bool) -> None:
    """Nobody is active any more; of a job that succeeded, those who were have done their part."""
    for replicas in job.replicas:
        now = draft.counts(replicas.type)
        if now.active:
            done = now.succeeded + (now.active if succeeded else 0)
            draft.count(replicas.type, Counts(succeeded=done, failed=now.failed))


def clear_counts(draft: StatusDraft, job: Job) -> None:
    for replicas in job.replicas:
        draft.count(replicas.type, Counts())


def succeed(draft: StatusDraft, job: Job) -> None:
    kind = job.declared.kind.kind
    draft.complete()
    message = f"{kind} {_full_name(job)} successfully completed."
    draft.set(conditions.SUCCEEDED, True, f"{kind}Succeeded", message)


def fail(draft: StatusDraft, job: Job, replicas: Replicas, pods: Sequence[Manifest]) -> None:
    kind = job.declared.kind.kind
    message = (
        f"{kind} {_full_name(job)} has failed because {len(pods)} {replicas.type} replica(s) "
        f"failed.{_named(pods)}"
    )
    _fail(draft, f"{kind}Failed", message)


def fail_overdue(draft: StatusDraft, job: Job) -> None:
    message = (
        f"{job.declared.kind.kind} {_full_name(job)} has failed because it was active longer than "
        f"its deadline, {job.run.active_deadline_seconds} seconds."
    )
    _fail(draft, DEADLINE, message)


def fail_restarted(draft: StatusDraft, job: Job, restarts: int) -> None:
    message = (
        f"{job.declared.kind.kind} {_full_name(job)} has failed because it has reached its backoff "
        f"limit: its replicas failed {restarts} times, and may be restarted "
        f"{job.run.backoff_limit} times."
    )
    _fail(draft, BACKOFF, message)


def was_cut_short(draft: StatusDraft) -> bool:
    failure = conditions.find(draft.conditions, conditions.FAILED) or {}
    return failure.get("reason") in (DEADLINE, BACKOFF)


def suspend(draft: StatusDraft, job: Job) -> None:
    kind = job.declared.kind.kind
    message = f"{kind} {job.name} is suspended."
    reason = f"{kind}Suspended"
    for type_ in (conditions.RUNNING, conditions.RESTARTING):
        if conditions.holds(draft.conditions, type_):
            draft.set(type_, False, reason, message, quiet=True)
    draft.set(conditions.SUSPENDED, True, reason, message)


def proceed(draft: StatusDraft, job: Job, failed: Sequence[Replicas]) -> None:
    """Restarting while replicas of these roles have failed; Running when those run that count."""
    kind = job.declared.kind.kind
    if failed:
        roles = ", ".join(dict.fromkeys(replicas.type for replicas in failed))
        message = f"{kind} {job.name} is restarting because {roles} replica(s) failed."
        draft.set(conditions.RESTARTING, True, f"{kind}Restarting", message, warning=True)
    elif any(draft.counts(speaker.type).active for speaker in job.speakers):
        message = f"{kind} {_full_name(job)} is running."
        draft.set(conditions.RUNNING, True, f"{kind}Running", message)


def _fail(draft: StatusDraft, reason: str, message: str) -> None:
    draft.complete()
    draft.set(conditions.FAILED, True, reason, message, warning=True)


def _named(pods: Sequence[Manifest]) -> str:
    """Which ones and how, as far as it is known."""
    found = [(key_of(pod)[1], failure_of(pod)) for pod in pods[:_MOST_NAMED]]
    known = [f"{name}: {how}" for name, how in found if how]
    return f" {', '.join(known)}." if known else ""


def _full_name(job: Job) -> str:
    return f"{job.namespace}/{job.name}"
