"""What a gang is told that a quota keeps from starting: which one, whose, and what would help."""

from __future__ import annotations

from collections.abc import Sequence

from posse.engine.decisions import Reason, Shortage, Verdict
from posse.engine.queues.ceilings import Ceiling
from posse.engine.queues.limits import Limit
from posse.engine.resources import amount, words
from posse.engine.verdicts.wording import are


def not_now(limit: Limit, queue: str) -> Verdict:
    """It can start when others in the queue, or in the cluster, have ended."""
    resource = limit.resource
    missing = limit.asked - limit.room - limit.going
    needs = f"needs {words(resource, limit.asked)}"
    when = f"it can start when {amount(resource, missing)} more {are(resource, missing)} free"
    if missing <= 0:
        when = "it can start when those have ended that are about to, and free what they have"
    if limit.queue is None:
        kept = limit.free - limit.room
        where = f" in queue {limit.inside}" if limit.inside else ""
        sentence = (
            f"{needs}, {amount(resource, limit.free)} {are(resource, limit.free)} free{where},"
            f" but {amount(resource, kept)} {are(resource, kept)} kept for"
            f" {_queues(limit.keepers)} (guarantee); {when}{where}"
        )
    else:
        binding = limit.queue.name
        where = "the queue" if binding == queue else f"queue {binding}"
        # Who goes is in nobody's way for long, and what is kept on its room is counted already.
        used = max(limit.used - limit.going, 0) if missing > 0 else limit.used
        sentence = (
            f"{needs}, but {_whose(binding, queue)} may use {amount(resource, limit.most)}"
            f" (capability) and {amount(resource, used)} {are(resource, used)} in use;"
            f" {when} in {where}"
        )
    short = Shortage(resource, limit.asked, max(0, limit.room), limit.most or limit.free)
    return Verdict(Reason.QUOTA, sentence, short=(short,))


def never(ceiling: Ceiling, has: int, queue: str) -> Verdict:
    """It could not start even if nobody else ran; `has`: what it sits on already."""
    resource = ceiling.resource
    asked = ceiling.asked - has
    beside = f" beside the {amount(resource, has)} it has" if has else ""
    what = f"asks for {words(resource, asked)}{beside}"
    most = max(0, ceiling.most - has)
    less = f"ask for {amount(resource, most)} at most" if most else ""
    kept = f"{amount(resource, ceiling.kept)} {are(resource, ceiling.kept)}"
    kept = f"of which {kept}" if ceiling.kept <= ceiling.has else f"and {kept}"
    if ceiling.queue is None:
        missing = amount(resource, ceiling.asked - ceiling.most)
        sentence = (
            f"{what}, but today's nodes have {amount(resource, ceiling.has)}, {kept}"
            f" kept for {_queues(ceiling.keepers)} (guarantee);"
            f" {_either(less, f'add {missing}', 'lower the guarantee')}"
        )
    else:
        whose = f"{_whose(ceiling.queue.name, queue)} may use {amount(resource, ceiling.has)}"
        if not ceiling.kept:
            ways = _either(less or "name another queue", "raise it")
            sentence = f"{what}, but {whose} (capability); {ways}"
        else:
            sentence = (
                f"{what}, but {whose} (capability), {kept}"
                f" kept for {_queues(ceiling.keepers)} (guarantee);"
                f" {_either(less, 'raise the capability', 'lower the guarantee')}"
            )
    short = Shortage(resource, asked, most, max(0, ceiling.most))
    return Verdict(Reason.QUOTA, sentence, short=(short,))


def _whose(binding: str, queue: str) -> str:
    return f"queue {binding}" + (f", of which queue {queue} is part," if binding != queue else "")


def _queues(names: Sequence[str]) -> str:
    others = f" and {len(names) - 2} more" if len(names) > 2 else ""
    return f"{'queue' if len(names) == 1 else 'queues'} {', '.join(names[:2])}{others}"


def _either(*ways: str) -> str:
    """`add 2, or lower the guarantee`."""
    there = [way for way in ways if way]
    return ", ".join(there[:-1]) + f", or {there[-1]}"
