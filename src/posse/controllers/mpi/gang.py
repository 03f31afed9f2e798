"""An MPIJob as a gang: which group its pods are in, and the PodGroup that it needs."""

from __future__ import annotations

from collections.abc import Iterator

from posse.controllers.jobs import grouping
from posse.controllers.jobs.actions import Action, Blocked, Create, Delete, Merge
from posse.controllers.jobs.grouping import Mark
from posse.controllers.jobs.pods import is_ending
from posse.controllers.mpi.observing import Situation
from posse.controllers.runtime import Manifest, metadata_of
from posse.objects.keys import GROUP_NAME
from posse.objects.kinds import POD_GROUP


def mark_of(situation: Situation) -> Mark | None:
    """How the pods are marked: with the user's group, with the job's own, or not at all."""
    users = grouping.users_mark(situation.job.parts)
    if users is not None:
        return users
    if grouping.wants_group(situation.settings.gang, metadata_of(situation.seen.job)):
        return Mark("annotations", GROUP_NAME, situation.job.name)
    return None


def gather(situation: Situation) -> Iterator[Action]:
    """Have the job's PodGroup, unless the user made one or wants none."""
    job = situation.job
    if mark_of(situation) is None or grouping.users_mark(job.parts) is not None:
        return
    present, desired = situation.seen.pod_group, pod_group(situation)
    if present is None:
        yield Create(POD_GROUP, desired)
    elif situation.passes(present):
        yield Blocked(POD_GROUP, present)
    elif situation.owns(present) and (changes := grouping.group_changes(present, desired)):
        yield Merge(POD_GROUP, present, changes)


def disband(situation: Situation) -> Iterator[Action]:
    """Delete the PodGroup that we made."""
    group = situation.pod_group
    if group is not None and not is_ending(group):
        yield Delete(POD_GROUP, group)


def pod_group(situation: Situation) -> Manifest:
    """A launcher that comes after its workers cannot be waited for; it is announced instead."""
    job, policy = situation.job, situation.job.scheduling
    launcher, others = job.parts[0], job.parts[1:]
    announced = (launcher,) if job.waits_for_workers and others else ()
    everyone = job.workers if announced else job.workers + 1
    min_member = everyone if policy.min_available is None else policy.min_available
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
    )
