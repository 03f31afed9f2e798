"""Which group a job's pods are in, and the PodGroup that it needs, whatever its kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from posse.controllers.jobs import grouping
from posse.controllers.jobs.actions import Action, Blocked, Create, Delete, Merge
from posse.controllers.jobs.claiming import Claim
from posse.controllers.jobs.grouping import GangSettings, Mark
from posse.controllers.jobs.pods import is_ending
from posse.controllers.runtime import Manifest, metadata_of
from posse.objects.jobs.parts import Part
from posse.objects.keys import GROUP_NAME
from posse.objects.kinds import POD_GROUP, POD_GROUPS

_OTHER_DIALECTS = tuple(kind for kind in POD_GROUPS if kind != POD_GROUP)


def mark_of(
    job: Manifest, parts: Sequence[Part], settings: GangSettings, members: Iterable[Manifest] = ()
) -> Mark | None:
    """How the pods are marked: with the user's group, with the job's own, or not at all.

    Whoever joins members that are there is marked as they are. They may have been made by another
    controller: one that knew of no gangs, or that spoke another dialect.
    """
    users = grouping.users_mark(parts)
    if users is not None:
        return users
    for pod in members:
        return grouping.mark_on(metadata_of(pod))
    return _own_mark(job) if grouping.wants_group(settings, metadata_of(job)) else None


def joining(settings: GangSettings, members: Iterable[Manifest]) -> GangSettings:
    """The settings for members still to come: the pods of a job have one scheduler."""
    for pod in members:
        name = (pod.get("spec") or {}).get("schedulerName")
        return msgspec.structs.replace(settings, scheduler_name=name) if name else settings
    return settings


def gather(
    claim: Claim,
    parts: Sequence[Part],
    mark: Mark | None,
    present: Manifest | None,
    desired: Manifest,
) -> Iterator[Action]:
    """Have the job's PodGroup, unless the user made one or wants none, or its pods name another."""
    if mark != _own_mark(claim.job) or grouping.users_mark(parts) is not None:
        return
    if present is None:
        yield Create(POD_GROUP, desired, unless=_OTHER_DIALECTS)
    elif claim.passes(present):
        yield Blocked(POD_GROUP, present)
    elif claim.owns(present) and (changes := grouping.group_changes(present, desired)):
        yield Merge(POD_GROUP, present, changes)


def _own_mark(job: Manifest) -> Mark:
    return Mark("annotations", GROUP_NAME, str(metadata_of(job)["name"]))


def disband(claim: Claim, present: Manifest | None) -> Iterator[Action]:
    """Delete the PodGroup that we made."""
    if present is not None and claim.owns(present) and not is_ending(present):
        yield Delete(POD_GROUP, present)
