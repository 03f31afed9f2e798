"""How much more of one resource must come free, and where, before so many pods have a seat.

What is free in all says little where each pod needs its share of it on one node.
"""

from __future__ import annotations

from dataclasses import dataclass

from posse.engine.fit.surveying import Pieces
from posse.engine.resources import amount, count
from posse.engine.verdicts.wording import are


@dataclass(frozen=True)
class Lack:
    """`number` pods that need `one` each, of what is free in such pieces."""

    resource: str
    one: int
    number: int
    free: Pieces

    @property
    def least(self) -> int:
        """The least that has to come free, if it does so where it helps most."""
        missing, begun = max(0, self.number - self.free.seats), self.free.begun
        return missing * self.one - int(begun[min(missing, len(begun) - 1)])

    @property
    def when(self) -> str:
        """`4 more are free on one node`."""
        least = self.least
        more = f"{amount(self.resource, least)} more {are(self.resource, least)} free"
        if self.free.nodes == 1 or least <= 1:
            return more
        if self.number - self.free.seats == 1:
            return f"{more} on one node"
        return f"at least {more}" if self.pieces else more

    @property
    def pieces(self) -> str:
        """What is free where, if it is of less use than it seems."""
        free = self.free
        if free.seats * self.one >= free.free or free.nodes == 1:
            return ""
        if self.number == 1:
            one_node = f", at most {amount(self.resource, free.most)} on one node"
            return one_node if free.most < free.free else ""
        return f", with room for {free.seats} of {count(self.number, 'pod')}"
