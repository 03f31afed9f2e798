"""Whether a gang may be placed at all, before anyone asks for room."""

from __future__ import annotations

from posse.engine.decisions import Reason, Verdict
from posse.engine.facts import DEFAULT_QUEUE
from posse.engine.gangs import Gang
from posse.engine.resources import count
from posse.engine.view import View


def refusal(view: View, gang: Gang) -> Verdict | None:
    """Why this gang may not be placed now. One that has begun is never stopped by its queue."""
    facts = gang.facts
    assert facts is not None
    if not (facts.started or gang.muster.seated):
        queue = view.queues.get(facts.queue)
        if queue is None and facts.queue != DEFAULT_QUEUE:
            return Verdict(
                Reason.QUEUE_MISSING,
                f"queue {facts.queue} does not exist; create it, or name one that does",
            )
        if queue is not None and not queue.open:
            return Verdict(
                Reason.QUEUE_CLOSED,
                f"queue {facts.queue} is closed; it can start once the queue is opened",
            )
    if gang.muster.present < gang.least:
        return Verdict(
            Reason.INCOMPLETE,
            f"{gang.muster.present} of {count(gang.least, 'pod')}"
            f" {'exists' if gang.least == 1 else 'exist'}; it starts when all of them do",
        )
    return None
