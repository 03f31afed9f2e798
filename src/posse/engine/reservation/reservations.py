"""What is reserved for whom, queue by queue, as the view remembers it."""

from __future__ import annotations

from dataclasses import dataclass, field

from msgspec.structs import replace

from posse.engine.columns import Ints
from posse.engine.decisions import Keep
from posse.engine.facts import Keeps
from posse.engine.gangs import Gang
from posse.engine.reservation.shadows import Shadow

# What something was worked out from.
Inputs = tuple[object, ...]


@dataclass(slots=True, eq=False)
class Reservation:
    gang: Gang
    # Since when it waits.
    since: float
    # When it starts if everybody ends as they said; None: nobody can know.
    starts_at: float | None = None
    # How many run who did not say for how long.
    unknown: int = 0
    # Room is kept for it, wherever it comes free on the nodes that were chosen.
    gathers: bool = False
    # Its gang had borne enough when this was worked out: room is gathered if there is any to be
    # had beside what is reserved for those who come before it.
    due: bool = False
    # What it will take, row by row; how much of that is in use until it starts, if that is known;
    # how much of its queue's quota must be left to it; and (role, row) of its seats.
    room: Shadow | None = None
    awaited: Ints | None = None
    quota: Ints | None = None
    seats: tuple[tuple[str, int], ...] = ()
    # Which of all rooms that were reserved this is.
    stamp: int = 0
    # Something is kept back from others for it.
    shadowed: bool = False
    # Its gang could start if nobody else ran, as long as this stays as it is.
    hopeful: Inputs = ()
    # What is written on its group, and how often it was overtaken by that.
    written: Keeps | None = None
    counted: int = 0
    inputs: Inputs = ()
    # When the same inputs come to say something else.
    stale_at: float = float("inf")
    # When those behind are expected to start, by their keys; and how far that was worked out.
    expected: dict[str, float] = field(default_factory=dict)
    walk: object = None
    # Room that came free up to here has made its gang be looked at again.
    seen: int = -1


@dataclass(slots=True)
class Ahead:
    """The reservations of those who come before somebody, as far as room is reserved."""

    held: list[Reservation] = field(default_factory=list)
    stamps: int = 0

    def add(self, reservation: Reservation | None) -> None:
        if reservation is not None and reservation.room is not None:
            self.held.append(reservation)
            self.stamps += reservation.stamp

    @property
    def signature(self) -> tuple[int, int]:
        """Another one as soon as any of them, or its room, is another one."""
        return len(self.held), self.stamps


class Reservations:
    def __init__(self) -> None:
        self.by_queue: dict[str, Reservation] = {}
        self.stamps = 0
        # What is to be written on groups, and was not told yet.
        self.unwritten: dict[str, Keep] = {}
        # Who ends when, and of which moment that is.
        self.timeline: object = None
        self.moment: Inputs = ()

    def write(self, keep: Keep) -> None:
        before = self.unwritten.get(keep.gang)
        if before is not None and keep.overtaken is None:
            keep = replace(keep, overtaken=before.overtaken)
        self.unwritten[keep.gang] = keep

    def of(self, gang: Gang) -> Reservation | None:
        found = None if gang.facts is None else self.by_queue.get(gang.facts.queue)
        return found if found is not None and found.gang is gang else None
