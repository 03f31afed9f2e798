"""What is reserved for whom, queue by queue, as the view remembers it."""

from __future__ import annotations

from dataclasses import dataclass, field

from posse.engine.columns import Ints
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
    # What it will take, row by row; how much of that is in use until it starts, if that is known;
    # how much of its queue's quota must be left to it; and (role, row) of its seats.
    room: Shadow | None = None
    awaited: Ints | None = None
    quota: Ints | None = None
    seats: tuple[tuple[str, int], ...] = ()
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


class Reservations:
    def __init__(self) -> None:
        self.by_queue: dict[str, Reservation] = {}
        # Who ends when, and of which moment that is.
        self.timeline: object = None
        self.moment: Inputs = ()

    def of(self, gang: Gang) -> Reservation | None:
        found = None if gang.facts is None else self.by_queue.get(gang.facts.queue)
        return found if found is not None and found.gang is gang else None
