"""The members of a gang, counted by how far they have come and by what they say.

Counts are kept as members come and go, so that a gang of ten thousand costs no more per event than
a gang of two.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from posse.objects.pods import Pod
from posse.scheduler.reading.claims import minimum_named_by, role_of
from posse.scheduler.reading.doubts import doubts_of_pod
from posse.scheduler.reading.estimates import Estimates, cooldown_of
from posse.scheduler.reading.pods import Place

T = TypeVar("T")


class Member(msgspec.Struct, frozen=True):
    pod: Pod
    place: Place
    problem: str = ""  # why it is barred, as a sentence without a subject
    awaits: bool = False  # what bars it is to come, and is nobody's mistake


class Tally:
    """What the members of one gang add up to; those that have ended say nothing any more."""

    def __init__(self) -> None:
        self.places = dict.fromkeys(Place, 0)
        self.leaving = dict.fromkeys(Place, 0)  # those among them that are being deleted
        self._ended: dict[str, int] = {}  # members that ended well, by role
        # Those that had, by role, and whose pods are gone; "": of any role.
        self.cleared: dict[str, int] = {}
        self.priorities: dict[int, int] = {}
        self.policies: dict[str, int] = {}  # of preemption
        self.orphans = 0  # live members that nobody would recreate
        self.naming = 0  # members that say by themselves how many start together
        self.doubts: dict[str, int] = {}  # what they say that nobody understands
        self.estimates = Estimates()
        self._cooldowns: dict[float, int] = {}

    def change(self, before: Member | None, after: Member) -> None:
        if before is not None and _only_moved(before, after):
            self.places[before.place] -= 1
            self.places[after.place] += 1
            return
        if before is not None:
            self._count(before, -1)
        self._count(after, 1)

    def remove(self, member: Member) -> None:
        self._count(member, -1)

    def clear_away(self, member: Member) -> None:
        """It has ended well, and is counted on though its pod is gone."""
        role = role_of(member.pod)
        self.cleared[role] = self.cleared.get(role, 0) + 1

    @property
    def ended_well(self) -> int:
        """How many members have, whether or not their pods are still there."""
        return self.places[Place.SUCCEEDED] + sum(self.cleared.values())

    def ended_as(self, role: str) -> int:
        return self._ended.get(role, 0) + self.cleared.get(role, 0)

    @property
    def cooldown(self) -> float | None:
        """The longest time that a member asks not to be ended in."""
        return max(self._cooldowns, default=None)

    def _count(self, member: Member, step: int) -> None:
        self.places[member.place] += step
        pod = member.pod
        if pod.metadata.deleting:
            self.leaving[member.place] += step
        if member.place is Place.SUCCEEDED:
            role = role_of(pod)
            self._ended[role] = self._ended.get(role, 0) + step
        if member.place.finished:
            return
        self.estimates.count(pod, step)
        for doubt in doubts_of_pod(pod):
            _add(self.doubts, doubt, step)
        if cooldown := cooldown_of(pod):
            _add(self._cooldowns, cooldown, step)
        _add(self.priorities, pod.spec.priority or 0, step)
        _add(self.policies, pod.spec.preemption_policy or "", step)
        if pod.metadata.controller is None:
            self.orphans += step
        if minimum_named_by(pod):
            self.naming += step


def _add(counts: dict[T, int], what: T, step: int) -> None:
    left = counts.get(what, 0) + step
    if left:
        counts[what] = left
    else:
        counts.pop(what, None)


def _only_moved(before: Member, after: Member) -> bool:
    """Whether it lives on and says the same, so that only its place has to be counted anew.

    So it is with nearly every event: a pod gets its node, and comes to run.
    """
    if before.place.finished or after.place.finished:
        return False
    old, new = before.pod, after.pod
    return (
        not (old.metadata.deleting or new.metadata.deleting)
        and old.metadata.annotations == new.metadata.annotations
        and old.metadata.labels == new.metadata.labels
        and old.metadata.owner_references == new.metadata.owner_references
        and old.spec.priority == new.spec.priority
        and old.spec.preemption_policy == new.spec.preemption_policy
        and old.spec.active_deadline_seconds == new.spec.active_deadline_seconds
    )
