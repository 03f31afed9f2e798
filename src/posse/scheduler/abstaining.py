"""What a frozen scheduler does instead of writing: it says what it would have done.

It takes the place of everything that writes, so that the same loop decides on the same view. What
it decided counts in that view until the term ends, as if it had been carried out: the decisions
that follow are those that would have followed.
"""

from __future__ import annotations

import logging
from typing import Any

from posse.engine.decisions import Keep, Start, Verdict
from posse.objects.kinds import Kind
from posse.scheduler.committing import Order
from posse.scheduler.evicting import Eviction
from posse.scheduler.reading.reader import Reader

_log = logging.getLogger(__name__)


class SilentRecords:
    """In place of the recorder of events."""

    def record(
        self, regarding: Any, reason: str, message: str, *, warning: bool = False, kind: Kind
    ) -> None:
        _log.info("frozen: no event %s: %s", reason, message)


class Abstainer:
    """In place of the committer and of the statuses."""

    def __init__(self, reader: Reader) -> None:
        self.verdicts: dict[str, Verdict] = {}
        self._reader = reader

    def submit(self, order: Order) -> None:
        decision = order.decision
        if isinstance(decision, Start):
            seats = ", ".join(f"{seat.pod} to {seat.node}" for seat in decision.seats)
            held = ", ".join(f"{held.role} on {held.node}" for held in decision.holds)
            _log.info(
                "frozen: %s would start: bind %s%s",
                decision.gang,
                seats or "nobody",
                f"; hold {held}" if held else "",
            )
        else:
            names = ", ".join(name for _, name in decision.pods)
            _log.info("frozen: %s would be let go (%s): %s", decision.gang, names, decision.why)

    def evict(self, order: Eviction) -> None:
        decision = order.decision
        names = ", ".join(name for victim in decision.victims for _, name in victim.pods)
        _log.info("frozen: %s would end others: %s", decision.gang, names)

    def keep(self, decision: Keep) -> None:
        seats = () if decision.keeps is None else decision.keeps.seats
        named = ", ".join(f"{role} on {node}" for role, node in seats)
        _log.info("frozen: %s would have kept: %s", decision.gang, named or "nothing")

    def waits(self, gang: str, verdict: Verdict) -> None:
        if self.verdicts.get(gang) != verdict:
            self.verdicts[gang] = verdict
            _log.info("frozen: %s waits: %s", gang, verdict.sentence)

    def starts(self, gang: str) -> None:
        self.verdicts.pop(gang, None)

    def touched(self, gang: str) -> None:
        if gang not in self._reader.musters:
            self.verdicts.pop(gang, None)
