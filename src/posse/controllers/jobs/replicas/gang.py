"""A job of replicas as a gang: all of them together, or as many as the user says."""

from __future__ import annotations

from collections.abc import Iterator

from posse.controllers.jobs import gathering, grouping
from posse.controllers.jobs.actions import Action
from posse.controllers.jobs.grouping import GangSettings, Mark
from posse.controllers.jobs.pods import is_ending
from posse.controllers.jobs.replicas.observing import Situation
from posse.controllers.runtime import Manifest, metadata_of
from posse.objects.jobs.parts import Part


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
    job, policy = situation.job, situation.job.scheduling
    min_member = job.total if policy.min_available is None else policy.min_available
    leader = None if job.leader is None else job.leader.role
    return grouping.pod_group(
        job.owned_metadata(job.name, {}),
        min_member=min_member,
        policy=policy,
        job_metadata=metadata_of(situation.seen.job),
        parts=job.parts,
        min_resources=policy.min_resources
        or grouping.summed_requests(_first(job.parts, min_member)),
        leads=next((part for part in job.parts if part.role == leader), None),
        deadline=job.run.active_deadline_seconds,
    )


def _first(parts: tuple[Part, ...], members: int) -> Iterator[tuple[Part, int]]:
    """So many members, role by role."""
    for part in parts:
        counted = min(part.replicas, members)
        members -= counted
        yield part, counted


def _members(situation: Situation) -> list[Manifest]:
    """The pods of the job that are there to stay."""
    return [pod for pod in situation.own_pods.values() if not is_ending(pod)]
