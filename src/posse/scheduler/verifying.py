"""A PodGroup read live: whether it is still the one that was decided on."""

from __future__ import annotations

from collections.abc import Mapping

from posse.kube.connection import Connection
from posse.kube.errors import NotFound
from posse.objects.groups import PodGroup
from posse.scheduler.reading.groups import GroupTerms, read_group
from posse.scheduler.reading.quarantine import Unreadable


class Stale(Exception):
    """What was decided on is not so any more; the view will hear of it.

    `awaited` is the generation that it has to see first, or None where no generation tells.
    """

    def __init__(self, why: str, awaited: int | None = None) -> None:
        super().__init__(why)
        self.awaited = awaited


async def read_live(
    connection: Connection, gang: str, decided_on: GroupTerms
) -> tuple[PodGroup, GroupTerms]:
    namespace, _, name = gang.partition("/")
    try:
        group = await connection.get(decided_on.kind, name, namespace, model=PodGroup)
    except NotFound:
        raise Stale("its PodGroup is gone") from None
    return group, verify(group, decided_on)


async def annotate(
    connection: Connection, gang: str, decided_on: GroupTerms, annotations: Mapping[str, str | None]
) -> PodGroup:
    """Write these annotations, None to remove one, on that very PodGroup."""
    namespace, _, name = gang.partition("/")
    try:
        return await connection.patch(
            decided_on.kind,
            name,
            {"metadata": {"uid": decided_on.uid, "annotations": dict(annotations)}},
            namespace,
            model=PodGroup,
        )
    except NotFound:
        raise Stale("its PodGroup is gone") from None


def verify(group: PodGroup, decided_on: GroupTerms) -> GroupTerms:
    if group.metadata.uid != decided_on.uid or group.metadata.deleting:
        raise Stale("its PodGroup is gone")
    try:
        now = read_group(group, decided_on.kind)
    except Unreadable as error:
        raise Stale(str(error)) from error
    if (now.generation, now.min_member, now.queue, now.expects) != (
        decided_on.generation,
        decided_on.min_member,
        decided_on.queue,
        decided_on.expects,
    ):
        raise Stale("its PodGroup has just changed", now.generation)
    return now
