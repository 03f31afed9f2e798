"""An MPIJob as a gang: which group its pods are in, and the PodGroup that it needs."""

from __future__ import annotations

from collections.abc import Iterator

from posse.controllers.jobs import gathering, grouping
from posse.controllers.jobs.actions import Action
from posse.controllers.jobs.grouping import GangSettings, Mark
from posse.controllers.jobs.pods import is_ending
from posse.controllers.mpi.observing import Situation
from posse.controllers.runtime import Manifest, metadata_of


def mark_of(situation: Situation) -> Mark | None:
    job, settings = situation.seen.job, situation.settings.gang
    return gathering.mark_of(job, situation.job.parts, settings, _members(situation))


def settings_of(situation: Situation) -> GangSettings:
    """As they are for pods still to be made."""
    return gathering.joining(situation.settings.gang, _members(situation))


def gather(situation: Situation) -> Iterator[Action]:
    return gathering.gather(
        situation.claim,
        situation.job.parts,
        mark_of(situation),
        situation.seen.pod_group,
        pod_group(situation),
    )


def disband(situation: Situation) -> Iterator[Action]:
    return gathering.disband(situation.claim, situation.seen.pod_group)


def pod_group(situation: Situation) -> Manifest:
    """A launcher that comes after its workers cannot be waited for; it is announced instead.

    It waits for all of them, so until it is there each one is needed, whatever the job could do
    with: fewer would hold their seats for nothing, and for ever where others wait for these.
    """
    job, policy = situation.job, situation.job.scheduling
    launcher, others = job.parts[0], job.parts[1:]
    announced = (launcher,) if job.waits_for_workers and others else ()
    everyone = job.workers if announced else job.workers + 1
    min_member = everyone if policy.min_available is None else policy.min_available
    if announced:
        min_member = min(min_member, everyone) if _launched(situation) else everyone
    workers_needed = min_member if announced else max(min_member - 1, 0)
    counted = [(launcher, 1), *((part, min(workers_needed, part.replicas)) for part in others)]
    return grouping.pod_group(
        job.owned_metadata(job.name, {"app": job.name}),
        min_member=min_member,
        policy=policy,
        job_metadata=metadata_of(situation.seen.job),
        parts=job.parts,
        min_resources=policy.min_resources or grouping.summed_requests(counted),
        expects=announced,
        leads=None if announced else launcher,
        deadline=job.run.active_deadline_seconds,
    )


def _launched(situation: Situation) -> bool:
    launcher = situation.launcher
    return launcher is not None and not (launcher.get("spec") or {}).get("suspend")


def _members(situation: Situation) -> list[Manifest]:
    """The pods of the job that are there to stay."""
    return [
        pod for pod in (*situation.own_pods, *situation.seen.launcher_pods) if not is_ending(pod)
    ]
