"""batch/v1 Jobs: pods until enough of them have succeeded, or too many failed.

Finished pods are counted once, by uid: the tally lives in the Job's status, and which of the pods
still present are in it is remembered here. A new process takes as many of them for counted as the
status says, so a restart never counts a pod twice.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from posse.controllers.runtime import Context, Controller, Key, Manifest, metadata_of, uid_of
from posse.kube.errors import ApiError, NotFound
from posse.local.core.conditions import condition_set, is_true
from posse.local.core.job_failures import Failure, failure_of
from posse.local.core.job_status import (
    Ending,
    count,
    finished,
    past_limit,
    time_left,
)
from posse.local.core.pods import (
    active,
    create_pods,
    delete_pods,
    deleting,
    from_template,
    least_missed_first,
    phase,
    ready,
    terminal,
    wall,
)
from posse.objects.kinds import JOB, POD
from posse.objects.times import rfc3339

FIRST_PAUSE = 10.0
LONGEST_PAUSE = 360.0
LOOK_AGAIN = 30.0  # at what a cache still owes; its arrival wakes the Job sooner
MANAGED_BY_US = (None, "", "kubernetes.io/job-controller")


@dataclass(slots=True)
class Tally:
    """The finished pods of one Job."""

    uid: str
    succeeded: int
    failed: int
    counted: dict[str, None] = field(default_factory=dict)
    dismissed: dict[str, None] = field(default_factory=dict)  # told to go by us: no failure
    last_failure: float | None = None  # wall seconds
    fatal: bool = False  # a pod failed in a way for which the Job is to fail


def job_controller() -> Controller:
    tallies: dict[Key, Tally] = {}

    async def reconcile(context: Context, key: Key) -> float | None:
        job = context.get(JOB, key)
        if job is None:
            tallies.pop(key, None)
            return None
        if metadata_of(job).get("deletionTimestamp"):
            return None
        if (job.get("spec") or {}).get("managedBy") not in MANAGED_BY_US:
            return None
        tally = tallies.get(key)
        if tally is None or tally.uid != uid_of(job):
            tally = tallies[key] = _first_tally(context, job)
        return await _reconcile(context, key, job, tally)

    return Controller("job", JOB, reconcile, owns=(POD,))


async def _reconcile(context: Context, key: Key, job: Manifest, tally: Tally) -> float | None:
    spec = job["spec"]
    pods = context.owned(POD, uid_of(job))
    running = [pod for pod in pods if active(pod)]
    if finished(job):
        await delete_pods(context, key, JOB, job, running)
        return await _expire(context, job)
    if spec.get("completionMode") == "Indexed":
        message = "completionMode Indexed is not run by this cluster; use NonIndexed"
        context.recorder.record(job, "IndexedNotRun", message, warning=True, kind=JOB)
        return None
    if not context.expectations.settled(key):
        return LOOK_AGAIN
    suspended = bool(spec.get("suspend"))
    _count_finished(tally, spec, pods, context.world.now())
    now = context.world.now()
    ending = _ending(job, tally, pods, now)
    leaving = sum(deleting(pod) and not terminal(pod) for pod in pods)
    surplus, missing = _difference(spec, tally, running, ending, suspended)
    if spec.get("podReplacementPolicy") == "Failed":
        missing = max(0, missing - leaving)
    for pod in surplus:
        tally.dismissed[uid_of(pod)] = None
    await delete_pods(context, key, JOB, job, surplus)
    staying = [pod for pod in running if uid_of(pod) not in tally.dismissed]
    pause = _pause(tally, now) if missing else 0.0
    created = 0
    refusal: ApiError | None = None
    if missing and pause <= 0:
        pod = from_template(JOB, job, spec["template"], _labels(job))
        created, refusal = await create_pods(context, key, JOB, job, pod, missing)
    over = ending is not None and all(terminal(pod) for pod in pods)
    await _report(context, job, tally, staying, created, ending, over=over)
    if refusal is not None:
        raise refusal
    waits = [wait for wait in (pause, time_left(job, now)) if wait is not None and wait > 0]
    return min(waits, default=None)


def _labels(job: Manifest) -> dict[str, str]:
    uid, name = uid_of(job), metadata_of(job)["name"]
    return {
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": name,
        "controller-uid": uid,
        "job-name": name,
    }


def _first_tally(context: Context, job: Manifest) -> Tally:
    succeeded, failed = count(job, "succeeded"), count(job, "failed")
    tally = Tally(uid_of(job), succeeded, failed)
    left = {"Succeeded": succeeded, "Failed": failed}
    for pod in sorted(context.owned(POD, uid_of(job)), key=_finish_order):
        result = phase(pod)
        if result == "Failed" and failure_of(job["spec"], pod) is Failure.IGNORE:
            continue
        if left.get(result, 0) > 0:
            left[result] -= 1
            tally.counted[uid_of(pod)] = None
            if result == "Failed":
                tally.last_failure = _ended_at(pod)
    return tally


def _count_finished(tally: Tally, spec: Manifest, pods: list[Manifest], now: float) -> None:
    present = {uid_of(pod): pod for pod in pods}
    for kept in (tally.counted, tally.dismissed):
        for uid in [uid for uid in kept if uid not in present]:
            del kept[uid]
    for uid, pod in present.items():
        if uid in tally.counted:
            continue
        if phase(pod) == "Succeeded":
            tally.succeeded += 1
        elif uid in tally.dismissed or (spec.get("suspend") and deleting(pod)):
            continue
        elif phase(pod) == "Failed" or deleting(pod):
            # One that somebody deletes may never reach an end that could be seen.
            meaning = failure_of(spec, pod)
            if meaning is Failure.IGNORE:
                continue
            if meaning is Failure.FAIL_JOB:
                tally.fatal = True
            tally.failed += 1
            tally.last_failure = _ended_at(pod) or now
        else:
            continue
        tally.counted[uid] = None


def _ending(job: Manifest, tally: Tally, pods: list[Manifest], now: float) -> Ending | None:
    """How the Job ends, once that is clear; a decision once written is kept."""
    spec = job["spec"]
    if is_true(job, "FailureTarget"):
        return Ending.written(job)
    if is_true(job, "SuccessCriteriaMet"):
        return Ending.SUCCESS
    if tally.fatal:
        return Ending.POLICY
    if past_limit(spec, tally.failed, pods):
        return Ending.BACKOFF
    left = time_left(job, now)
    if left is not None and left <= 0:
        return Ending.DEADLINE
    completions = spec.get("completions")
    if completions is None:
        enough = tally.succeeded > 0 and not any(active(pod) for pod in pods)
    else:
        enough = tally.succeeded >= completions
    return Ending.SUCCESS if enough and not spec.get("suspend") else None


def _difference(
    spec: Manifest,
    tally: Tally,
    running: list[Manifest],
    ending: Ending | None,
    suspended: bool,
) -> tuple[list[Manifest], int]:
    """Which pods go, or how many come."""
    parallelism = spec.get("parallelism")
    wanted = 1 if parallelism is None else int(parallelism)
    completions = spec.get("completions")
    if completions is not None:
        wanted = min(wanted, max(0, int(completions) - tally.succeeded))
    elif tally.succeeded:
        wanted = min(wanted, len(running))  # one has succeeded: the others finish, none is added
    if suspended or ending is not None:
        wanted = 0
    if len(running) > wanted:
        return sorted(running, key=least_missed_first)[: len(running) - wanted], 0
    return [], wanted - len(running)


def _pause(tally: Tally, now: float) -> float:
    """How long to wait after failures before the next pod is made."""
    if not tally.failed or tally.last_failure is None:
        return 0.0
    pause = min(FIRST_PAUSE * float(2 ** min(tally.failed - 1, 16)), LONGEST_PAUSE)
    left = tally.last_failure + pause - now
    # A failure in the future was before the clock was set back: it has been waited for.
    return left if left <= pause else 0.0


async def _report(
    context: Context,
    job: Manifest,
    tally: Tally,
    staying: list[Manifest],
    created: int,
    ending: Ending | None,
    *,
    over: bool,
) -> None:
    now = rfc3339(context.world.now())
    old: Manifest = job.get("status") or {}
    suspended = bool(job["spec"].get("suspend"))
    status: Manifest = {
        "active": len(staying) + created or None,
        "ready": sum(ready(pod) for pod in staying),
        "succeeded": tally.succeeded or None,
        "failed": tally.failed or None,
        "startTime": None if suspended else old.get("startTime") or now,
    }
    conditions = list(old.get("conditions") or [])
    if suspended:
        condition_set(conditions, "Suspended", "True", "JobSuspended", "Job suspended", now)
    elif is_true(job, "Suspended"):
        condition_set(conditions, "Suspended", "False", "JobResumed", "Job resumed", now)
    if ending is not None:
        ending.write(conditions, now, final=over)
        if over and ending is Ending.SUCCESS:
            status["completionTime"] = old.get("completionTime") or now
    status["conditions"] = conditions or None
    if all(old.get(name) == value for name, value in status.items()):
        return
    metadata = metadata_of(job)
    await context.connection.patch(
        JOB,
        metadata["name"],
        {"metadata": {"resourceVersion": metadata["resourceVersion"]}, "status": status},
        metadata["namespace"],
        subresource="status",
    )
    if over and ending is Ending.SUCCESS:
        context.recorder.record(job, "Completed", "Job completed", kind=JOB)
    elif over and ending is not None:
        context.recorder.record(job, ending.reason, ending.message, warning=True, kind=JOB)


async def _expire(context: Context, job: Manifest) -> float | None:
    """Delete a finished Job when its time is up."""
    ttl = job["spec"].get("ttlSecondsAfterFinished")
    if ttl is None:
        return None
    ended = finished(job)
    left = (ended or 0.0) + float(ttl) - context.world.now()
    if left > 0:
        return left
    metadata = metadata_of(job)
    try:
        await context.connection.delete(
            JOB,
            metadata["name"],
            metadata["namespace"],
            uid=uid_of(job),
            resource_version=metadata["resourceVersion"],
            propagation="Foreground",
        )
    except NotFound:
        return None
    return None


def _ended_at(pod: Manifest) -> float | None:
    times = [
        wall(((entry.get("state") or {}).get("terminated") or {}).get("finishedAt"))
        for entry in (pod.get("status") or {}).get("containerStatuses") or []
    ]
    return max((at for at in times if at is not None), default=None)


def _finish_order(pod: Manifest) -> tuple[float, str]:
    return (_ended_at(pod) or 0.0, uid_of(pod))
