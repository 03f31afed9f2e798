"""Which limit keeps a queue's gangs from more of a resource."""

from __future__ import annotations

from dataclasses import dataclass, field

from posse.engine.queues.lineages import Queue


@dataclass(frozen=True, slots=True)
class Limit:
    """What keeps a gang from more: `resource`, of which `room` is left to it.

    `queue` is the one whose capability binds; None: what is kept for the `keepers` binds, of what
    is free in the cluster, or `inside` of what a queue above may use.
    """

    resource: str
    asked: int
    room: int
    queue: Queue | None = None
    most: int = 0
    used: int = 0
    # Of what is used, so much is about to be given back.
    going: int = 0
    free: int = 0
    keepers: tuple[str, ...] = ()
    inside: str = ""


@dataclass(slots=True, eq=False)
class Bounds:
    """What bounds the use of one resource in one queue."""

    # The queue and those above it, the outermost first: the most it may use, and what it uses.
    capabilities: list[tuple[Queue, int, int]] = field(default_factory=list)
    # Those above it, the innermost first: what is left in it, what of that is kept for others than
    # the queue, and for whom. What is left at the top is what is free in the cluster.
    guarantees: list[tuple[Queue, int, int, tuple[str, ...]]] = field(default_factory=list)

    def limit(self, resource: str, asked: int, own: int) -> Limit:
        """What so much more exceeds; `own` of what is used is the asker's."""
        for queue, most, used in self.capabilities:
            if used - own + asked > most:
                return Limit(resource, asked, most - used + own, queue, most, used - own)
        exceeded = (each for each in self.guarantees if asked > each[1] + own - each[2])
        queue, left, kept, keepers = next(exceeded, self.guarantees[-1])
        free, inside = left + own, queue.name
        return Limit(resource, asked, free - kept, free=free, keepers=keepers, inside=inside)
