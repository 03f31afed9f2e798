"""Priorities: of the group's own class, else the highest among its members."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from posse.objects.groups import PriorityClass
from posse.objects.meta import Key

NEVER = "Never"


def preempts(class_name: str, classes: Mapping[Key, PriorityClass], members: Iterable[str]) -> bool:
    """Whether it may end others: unless its own class, or a member, must not."""
    named = classes.get(("", class_name)) if class_name else None
    return NEVER not in members and (named is None or named.preemption_policy != NEVER)


def priority_of(
    class_name: str, classes: Mapping[Key, PriorityClass], members: Iterable[int]
) -> int:
    """A class that does not exist counts for nothing: the members then speak for themselves."""
    named = classes.get(("", class_name)) if class_name else None
    if named is not None:
        return named.value
    return max(members, default=0)
