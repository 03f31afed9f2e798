"""One look at a job of replicas: what is there in, what to do out. Pure, equal for equal input."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from posse.controllers.jobs import cleaning, conditions
from posse.controllers.jobs.actions import NOTHING, Action, Blocked, Decision, Delete, Merge
from posse.controllers.jobs.drafting import StatusDraft
from posse.controllers.jobs.pods import is_ending, phase_of
from posse.controllers.jobs.refusing import refuse
from posse.controllers.jobs.replicas import gang, members, restarting, status
from posse.controllers.jobs.replicas.declaring import JobKind
from posse.controllers.jobs.replicas.judging import Fate, fate
from posse.controllers.jobs.replicas.observing import Observed, Situation
from posse.controllers.jobs.settings import Settings
from posse.controllers.jobs.timing import expires_in, is_overdue, time_left
from posse.controllers.runtime import Manifest, key_of
from posse.objects.jobs.policies import CLEAN_NONE, CLEAN_RUNNING
from posse.objects.jobs.replicas.spec import Replicas, managed_elsewhere, read
from posse.objects.jobs.replicas.validating import problems
from posse.objects.kinds import POD, SERVICE


def decide(declared: JobKind, seen: Observed, settings: Settings) -> Decision:
    # 1. Leave alone what is being deleted and what another controller manages.
    if is_ending(seen.job) or managed_elsewhere(declared.form, seen.job):
        return NOTHING

    # 2. A spec that can never run is refused, once, with every reason.
    try:
        job = read(declared.form, seen.job)
        wrong = [str(problem) for problem in problems(job)]
    except msgspec.ValidationError as error:
        return _refuse(declared, seen, [f"spec: Invalid value: {error}"])
    if wrong:
        return _refuse(declared, seen, wrong)

    # 3. A finished job only has to be tidied up, and to go when its time is over.
    situation = Situation(seen, job, settings, declared)
    draft = StatusDraft(seen.job, seen.now)
    if conditions.is_final(draft.conditions) and draft.completion_time is not None:
        return _tidy_up(situation, draft)

    # 4. One that has just ended says so first: what is tidied up can no longer be read.
    status.begin(draft, job)
    status.tally(draft, situation)
    if _has_ended(situation, draft):
        return Decision((), draft.result(), tuple(draft.says))

    # 5. A suspended job gives up everything but itself.
    if job.suspended:
        return _rest(situation, draft)

    # 6. Pods that failed are counted before they are replaced, and may have been too many.
    tallies = restarting.read_tallies(seen.job)
    uncounted = [
        pod
        for _, pod in _with_fate(situation, Fate.RESTARTED)
        if not restarting.is_counted(tallies, pod)
    ]
    if uncounted:
        counted = {"metadata": {"annotations": restarting.counting(tallies, uncounted)}}
        return Decision((Merge(declared.form.kind, seen.job, counted),))
    restarts = restarting.total(tallies, (pod for _, pod in situation.members))
    if job.run.backoff_limit is not None and restarts > job.run.backoff_limit:
        status.fail_restarted(draft, job, restarts)
        return Decision((), draft.result(), tuple(draft.says))

    # 7. Everything else should run.
    return _work(situation, draft, tallies)


def _refuse(declared: JobKind, seen: Observed, wrong: Sequence[str]) -> Decision:
    kind = declared.form.kind.kind
    return refuse(
        seen.job,
        seen.now,
        wrong,
        condition=status.invalid_spec(kind),
        event=status.failed_validation(kind),
    )


def _tidy_up(situation: Situation, draft: StatusDraft) -> Decision:
    job, seen = situation.job, situation.seen
    after = expires_in(job.run, draft, seen.now)
    if after is not None and after <= 0:
        return Decision((Delete(job.declared.kind, seen.job),))
    policy = job.clean_pod_policy
    if status.was_cut_short(draft) and policy == CLEAN_NONE:
        # It did not end by itself: nobody else would ever end its pods.
        policy = CLEAN_RUNNING
    leaving = cleaning.to_delete(policy, situation.own_pods.values())
    actions = [*members.dismiss(POD, leaving), *gang.disband(situation)]
    if policy != CLEAN_NONE:
        gone = dict.fromkeys(key_of(pod)[1] for pod in leaving)
        staying = {
            name: None
            for name, pod in situation.own_pods.items()
            if name not in gone and not is_ending(pod)
        }
        idle = (one for name, one in situation.own_services.items() if name not in staying)
        actions += members.dismiss(SERVICE, idle)
    succeeded = conditions.holds(draft.conditions, conditions.SUCCEEDED)
    if succeeded or policy != CLEAN_NONE:
        status.settle_counts(draft, job, succeeded=succeeded)
    return Decision(tuple(actions), draft.result(), (), after)


def _has_ended(situation: Situation, draft: StatusDraft) -> bool:
    job = situation.job
    if situation.declared.succeeded(situation):
        status.succeed(draft, job)
    elif job.suspended:
        return False
    elif failures := _failures(situation):
        status.fail(draft, job, *failures)
    elif is_overdue(job.run, draft, situation.seen.now):
        status.fail_overdue(draft, job)
    else:
        return False
    return True


def _failures(situation: Situation) -> tuple[Replicas, list[Manifest]] | None:
    """The first role in which replicas have failed for good, and the job with them."""
    job = situation.job
    for replicas in job.replicas:
        pods = list(situation.pods_of(replicas))
        failed = [pod for pod in pods if fate(replicas, pod, job.declared.container) is Fate.FAILED]
        if not failed:
            continue
        over = sum(phase_of(pod) in ("Succeeded", "Failed") for pod in pods)
        if not situation.declared.tolerates(job, replicas) or over == replicas.count:
            return replicas, failed
    return None


def _rest(situation: Situation, draft: StatusDraft) -> Decision:
    status.suspend(draft, situation.job)
    status.clear_counts(draft, situation.job)
    actions = [
        *members.dismiss(POD, situation.own_pods.values()),
        *members.dismiss(SERVICE, situation.own_services.values()),
        *gang.disband(situation),
    ]
    return Decision(tuple(actions), draft.result(), tuple(draft.says))


def _work(situation: Situation, draft: StatusDraft, tallies: restarting.Tallies) -> Decision:
    job, now = situation.job, situation.seen.now
    failed = _with_fate(situation, Fate.RESTARTED)
    status.proceed(draft, job, [replicas for replicas, _ in failed])
    pauses = [(restarting.pause_left(tallies, pod, now), pod) for _, pod in failed]
    due = [pod for left, pod in pauses if left <= 0]
    moved = [pod for _, pod in _with_fate(situation, Fate.REPLACED)]
    group = list(gang.gather(situation))
    # The group comes right before its pods: whoever sees it waits for them.
    actions: list[Action] = [
        *members.dismiss(POD, [*moved, *due]),
        *members.services(situation),
        *group,
    ]
    if not any(isinstance(action, Blocked) for action in group):
        actions += members.pods(situation)
    dates = [left for left, _ in pauses if left > 0]
    if (left := time_left(job.run, draft, now)) is not None:
        dates.append(left)
    return Decision(tuple(actions), draft.result(), tuple(draft.says), min(dates, default=None))


def _with_fate(situation: Situation, wanted: Fate) -> list[tuple[Replicas, Manifest]]:
    container = situation.job.declared.container
    return [
        (replicas, pod)
        for replicas, pod in situation.members
        if fate(replicas, pod, container) is wanted
    ]
