"""A job's place among those that wait in its queue, by what stands on the PodGroups now."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from posse.engine.naming import alphabetical
from posse.objects.groups import PodGroup

_DEFAULT_QUEUE = "default"
# What a PodGroup says that waits its turn, and not for its pods or for somebody to mend a queue.
_IN_LINE = ("NotEnoughResources", "QueueQuotaExceeded", "Reserved")
_SETTLED = ("Running", "Completed")
# How a verdict speaks of what comes with time, and how it tells when.
_WITH_TIME = ("it can start when", "waits behind")
_TOLD = ("expected to start", "when it starts is unknown")
# How it speaks of what no waiting helps.
_NEVER = (
    "today's nodes",
    "no node matches",
    "no node may take",
    "; ask for ",
    "(capability); ",
    "the guarantee",
)
# How it ends for the first few of a queue.
_PLACE = re.compile(r"; number \d+ in queue \S+$")


def in_line(group: PodGroup) -> bool:
    """Whether it waits for room or quota, which others may have before it."""
    verdict = _verdict(group)
    return bool(verdict) and not any(words in verdict for words in _NEVER)


def turn(group: PodGroup, groups: Iterable[PodGroup], priorities: Mapping[str, int]) -> str:
    """Which of those that wait in its queue it is, as a sentence; "" where nobody else does, or
    its verdict has said it all.

    In a queue the higher priority comes first, then the older group, of those of one second as
    their names go; a class that is not among the priorities counts for nothing.
    """
    if not in_line(group):
        return ""
    line = [each for each in groups if in_line(each) and _queue(each) == _queue(group)]
    line.sort(
        key=lambda each: (
            -priorities.get(each.spec.priority_class_name, 0),
            each.metadata.creation_timestamp or "",
            alphabetical(each.metadata.name),
            each.metadata.uid,
        )
    )
    uids = [each.metadata.uid for each in line]
    if len(uids) < 2 or group.metadata.uid not in uids:
        return ""
    verdict = _verdict(group)
    unknown = any(w in verdict for w in _WITH_TIME) and not any(t in verdict for t in _TOLD)
    if _PLACE.search(verdict):
        return "Nobody can know yet when it will start." if unknown else ""
    place = f"It is number {uids.index(group.metadata.uid) + 1} of {len(uids)}"
    when = "; nobody can know yet when it will start" if unknown else ""
    return f"{place} that wait in queue {_queue(group)}{when}."


def _queue(group: PodGroup) -> str:
    return group.spec.queue or _DEFAULT_QUEUE


def _verdict(group: PodGroup) -> str:
    """The sentence of a group that waits for room; "" for any other."""
    if group.status.phase in _SETTLED:
        return ""
    for condition in group.status.conditions:
        if (condition.type, condition.status) == ("Unschedulable", "True"):
            return condition.message if condition.reason in _IN_LINE else ""
    return ""
