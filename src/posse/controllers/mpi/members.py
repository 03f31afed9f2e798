"""The pods of an MPIJob and what they need: which are to be made, and which are to go."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from posse.controllers.jobs.actions import Action, Blocked, Create, Delete, Keep, Merge, Provide
from posse.controllers.jobs.grouping import Mark
from posse.controllers.jobs.pods import is_ending, is_ready, was_turned_away
from posse.controllers.mpi import hosts, ssh, templates
from posse.controllers.mpi.gang import mark_of, settings_of
from posse.controllers.mpi.observing import Situation
from posse.controllers.mpi.status import launcher_finished
from posse.controllers.runtime import Manifest, key_of
from posse.objects.kinds import CONFIG_MAP, JOB, POD, SECRET, SERVICE


def names(situation: Situation) -> Iterator[Action]:
    """What the members need to find each other."""
    job, domain = situation.job, situation.settings.cluster_domain
    yield Keep(SERVICE, hosts.service(job))
    yield Keep(CONFIG_MAP, hosts.config_map(job, situation.running_workers, domain))


def keys(situation: Situation, members: Sequence[Action]) -> Iterator[Action]:
    """The ssh keys, looked for only where a pod is about to need them: Secrets are not cached."""
    if any(isinstance(action, Create) for action in members):
        yield Provide(SECRET, ssh.secret(situation.job), ssh.with_keys)


def workers(situation: Situation) -> Iterator[Action]:
    """Create the missing ones and delete those beyond the number asked for."""
    job, mark, gang = situation.job, mark_of(situation), settings_of(situation)
    domain = situation.settings.cluster_domain
    wanted: dict[str, None] = {}
    for index in range(job.workers):
        name = job.worker_name(index)
        wanted[name] = None
        present = situation.seen.pods.get(name)
        if present is None:
            yield Create(POD, templates.worker_pod(job, index, mark, gang, domain))
        elif not situation.owns(present):
            yield Blocked(POD, present)
        elif was_turned_away(present) and not is_ending(present):
            yield Delete(POD, present)
    surplus = (pod for pod in situation.own_pods if key_of(pod)[1] not in wanted)
    yield from dismiss(surplus)


def dismiss(pods: Iterator[Manifest] | Sequence[Manifest]) -> Iterator[Action]:
    for pod in pods:
        if not is_ending(pod):
            yield Delete(POD, pod)


def launch(situation: Situation) -> Iterator[Action]:
    """Have the launcher's batch Job, when its time has come."""
    present, mark = situation.seen.launcher, mark_of(situation)
    if present is not None and (not situation.owns(present) or is_ending(present)):
        yield Blocked(JOB, present)
    elif not _may_launch(situation):
        return
    elif present is None:
        yield Create(JOB, _launcher(situation, mark))
    elif (present.get("spec") or {}).get("suspend"):
        if templates.placed_alike(present, _launcher(situation, mark)):
            yield Merge(JOB, present, {"spec": {"suspend": False}})
        else:
            # The template of a Job that has started cannot change: a new one takes its place.
            yield Delete(JOB, present)


def park(situation: Situation) -> Iterator[Action]:
    """Of a suspended job the launcher's place is kept, unless it must wait for workers anyway."""
    if situation.seen.launcher is None and not situation.job.waits_for_workers:
        yield Create(JOB, _launcher(situation, mark_of(situation), suspended=True))
    yield from halt(situation)


def halt(situation: Situation) -> Iterator[Action]:
    """A suspended batch Job gives up its pods and stays."""
    launcher = situation.launcher
    if launcher is None or is_ending(launcher) or launcher_finished(launcher):
        return
    if not (launcher.get("spec") or {}).get("suspend"):
        yield Merge(JOB, launcher, {"spec": {"suspend": True}})


def _may_launch(situation: Situation) -> bool:
    job = situation.job
    return not job.waits_for_workers or sum(map(is_ready, situation.workers)) == job.workers


def _launcher(situation: Situation, mark: Mark | None, *, suspended: bool = False) -> Manifest:
    gang = settings_of(situation)
    return templates.launcher_job(situation.job, mark, gang, suspended=suspended)
