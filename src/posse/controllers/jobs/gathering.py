"""Which group a job's pods are in, and the PodGroup that it needs, whatever its kind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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


def mark_of(job: Manifest, parts: Sequence[Part], settings: GangSettings) -> Mark | None:
    """How the pods are marked: with the user's group, with the job's own, or not at all."""
    users = grouping.users_mark(parts)
    if users is not None:
        return users
    if grouping.wants_group(settings, metadata_of(job)):
        return Mark("annotations", GROUP_NAME, str(metadata_of(job)["name"]))
    return None


def gather(
    claim: Claim,
    parts: Sequence[Part],
    settings: GangSettings,
    present: Manifest | None,
    desired: Manifest,
) -> Iterator[Action]:
    """Have the job's PodGroup, unless the user made one or wants none."""
    if mark_of(claim.job, parts, settings) is None or grouping.users_mark(parts) is not None:
        return
    if present is None:
        yield Create(POD_GROUP, desired, unless=_OTHER_DIALECTS)
    elif claim.passes(present):
        yield Blocked(POD_GROUP, present)
    elif claim.owns(present) and (changes := grouping.group_changes(present, desired)):
        yield Merge(POD_GROUP, present, changes)


def disband(claim: Claim, present: Manifest | None) -> Iterator[Action]:
    """Delete the PodGroup that we made."""
    if present is not None and claim.owns(present) and not is_ending(present):
        yield Delete(POD_GROUP, present)
