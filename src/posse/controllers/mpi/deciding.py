"""One look at an MPIJob: what is there in, what to do out. Pure, and equal for equal input."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from posse.controllers.jobs import cleaning, conditions
from posse.controllers.jobs.actions import NOTHING, Action, Blocked, Decision, Delete
from posse.controllers.jobs.drafting import StatusDraft
from posse.controllers.jobs.pods import Counts, is_ending, is_evicted
from posse.controllers.jobs.refusing import refuse
from posse.controllers.jobs.settings import Settings
from posse.controllers.jobs.timing import expires_in, is_overdue, time_left
from posse.controllers.mpi import gang, members, status
from posse.controllers.mpi.observing import Observed, Situation
from posse.objects.jobs.mpi.spec import WORKER_TYPE, managed_elsewhere, read
from posse.objects.jobs.mpi.validating import problems
from posse.objects.jobs.policies import CLEAN_ALL, CLEAN_NONE, CLEAN_RUNNING
from posse.objects.kinds import MPI_JOB


def decide(seen: Observed, settings: Settings) -> Decision:
    # 1. Leave alone what is being deleted and what another controller manages.
    if is_ending(seen.job) or managed_elsewhere(seen.job):
        return NOTHING

    # 2. A spec that can never run is refused, once, with every reason.
    try:
        job = read(seen.job)
        wrong = [str(problem) for problem in problems(job)]
    except msgspec.ValidationError as error:
        return _refuse(seen, [f"spec: Invalid value: {error}"])
    if wrong:
        return _refuse(seen, wrong)

    # 3. A finished job only has to be tidied up, and to go when its time is over.
    situation = Situation(seen, job, settings)
    draft = StatusDraft(seen.job, seen.now)
    if conditions.is_final(draft.conditions) and draft.completion_time is not None:
        return _tidy_up(situation, draft)

    # 4. One that has just ended says so first: what is tidied up can no longer be read.
    status.begin(draft, job)
    if _has_ended(situation, draft):
        return Decision((), draft.result(), tuple(draft.says))

    # 5. A suspended job keeps its names and gives up its seats.
    if job.suspended:
        return _rest(situation, draft)

    # 6. Everything else should run.
    return _work(situation, draft)


def _refuse(seen: Observed, wrong: Sequence[str]) -> Decision:
    return refuse(
        seen.job,
        seen.now,
        wrong,
        condition=status.INVALID_SPEC,
        event=status.VALIDATION_ERROR,
    )


def _tidy_up(situation: Situation, draft: StatusDraft) -> Decision:
    job = situation.job
    after = expires_in(job.run, draft, situation.seen.now)
    if after is not None and after <= 0:
        return Decision((Delete(MPI_JOB, situation.seen.job),))
    policy = job.clean_pod_policy
    actions: list[Action] = []
    if _was_cut_short(draft):
        # It did not end by itself: nobody else would ever end its launcher and workers.
        policy = policy if policy == CLEAN_ALL else CLEAN_RUNNING
        actions += members.halt(situation)
    actions += members.dismiss(cleaning.to_delete(policy, situation.own_pods))
    actions += gang.disband(situation)
    if policy != CLEAN_NONE:
        draft.count(WORKER_TYPE, Counts())
    return Decision(tuple(actions), draft.result(), (), after)


def _has_ended(situation: Situation, draft: StatusDraft) -> bool:
    """The launcher's end is the job's; so are a worker's eviction and the deadline."""
    job, launcher = situation.job, situation.launcher
    if launcher is not None and status.launcher_condition(launcher, "Complete"):
        status.succeed(draft, job, launcher)
    elif failure := status.launcher_condition(launcher, "Failed"):
        status.fail_like_launcher(draft, job, failure, situation.seen.launcher_pods)
    elif job.suspended:
        return False
    elif evicted := sum(map(is_evicted, situation.workers)):
        status.fail(draft, status.EVICTED, f"{evicted}/{job.workers} workers are evicted")
    elif is_overdue(job.run, draft, situation.seen.now):
        status.fail_overdue(draft, job)
    else:
        return False
    status.tally(draft, launcher, situation.seen.launcher_pods, situation.workers)
    return True


def _rest(situation: Situation, draft: StatusDraft) -> Decision:
    status.suspend(draft, situation.job)
    status.tally(draft, situation.launcher, (), ())
    launcher = list(members.park(situation))
    actions = [
        *members.names(situation),
        *members.keys(situation, launcher),
        *members.dismiss(situation.own_pods),
        *gang.disband(situation),
        *launcher,
    ]
    return Decision(tuple(actions), draft.result(), tuple(draft.says))


def _work(situation: Situation, draft: StatusDraft) -> Decision:
    job, seen = situation.job, situation.seen
    status.tally(draft, situation.launcher, seen.launcher_pods, situation.workers)
    status.proceed(draft, job, seen.launcher_pods, situation.workers)
    group = list(gang.gather(situation))
    pods: list[Action] = []
    if not any(isinstance(action, Blocked) for action in group):
        pods = [*members.workers(situation), *members.launch(situation)]
    actions = [*members.names(situation), *group, *members.keys(situation, pods), *pods]
    left = time_left(job.run, draft, seen.now)
    return Decision(tuple(actions), draft.result(), tuple(draft.says), left)


def _was_cut_short(draft: StatusDraft) -> bool:
    failure = conditions.find(draft.conditions, conditions.FAILED) or {}
    return failure.get("reason") in (status.DEADLINE, status.EVICTED)
