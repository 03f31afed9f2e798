"""Whether a gang may be placed at all, before anyone asks for room."""

from __future__ import annotations

from posse.engine.decisions import Cause, Reason, Verdict
from posse.engine.facts import GroupFacts
from posse.engine.gangs import Gang
from posse.engine.queues.lineages import Queue
from posse.engine.resources import count
from posse.engine.view import View


def refusal(view: View, gang: Gang) -> Verdict | None:
    """Why this gang may not be placed now. One that has begun is never stopped by its queue."""
    facts = gang.facts
    assert facts is not None
    if not (facts.started or gang.muster.seated):
        refused = _refused_by_queue(view, facts)
        if refused is not None:
            return refused
    lack = lacking(gang)
    if lack is None:
        return None
    what, cause = lack
    ended = ""
    if cause is None and gang.ended_for:
        ended = f"ended for {gang.ended_for}; "
    return Verdict(Reason.INCOMPLETE, f"{ended}{what}; it starts when all of them do", cause)


def stranded(gang: Gang) -> Verdict | None:
    """What a gang is told of which only members wait whose part is not all there."""
    squads = gang.muster.squads
    if squads is None or not squads.stranded:
        return None
    number = sum(part.waiting for part in squads.stranded)
    first = squads.stranded[0]
    what = f"of {'its' if number == 1 else 'a'} part {_exist(first.there, first.size, 'pod')}"
    sentence = f"{count(number, 'pod')} beyond its minimum: {what}; it starts when all of them do"
    return Verdict(Reason.INCOMPLETE, sentence, surplus=True)


def lacking(gang: Gang) -> tuple[str, Cause | None] | None:
    """Which pods a gang lacks for its minimum, if any."""
    facts, muster = gang.facts, gang.muster
    assert facts is not None
    if muster.present < gang.least:
        return _exist(muster.present, gang.least, "pod"), None
    for role, missing in muster.missing.items():
        least = dict(facts.role_minimums)[role]
        return _exist(least - missing, least, f"{role} pod"), Cause.ROLE_MISSING
    if muster.squads is not None and muster.squads.missing:
        lacks = muster.squads.missing
        verb = "does" if lacks == 1 else "do"
        return f"{count(lacks, 'pod')} of its parts {verb} not exist", Cause.ROLE_MISSING
    return None


def _exist(there: int, least: int, what: str) -> str:
    return f"{there} of {count(least, what)} {'exists' if least == 1 else 'exist'}"


def _refused_by_queue(view: View, facts: GroupFacts) -> Verdict | None:
    name = facts.queue
    if not view.tree.known(name):
        return Verdict(
            Reason.QUEUE_MISSING,
            f"queue {name} does not exist; create it, or name one that does",
        )
    queue = view.tree.queue(name)
    namespace = facts.namespace
    if namespace not in queue.refusals:
        queue.refusals[namespace] = _refused_by(queue, namespace)
    return queue.refusals[namespace]


def _refused_by(queue: Queue, namespace: str) -> Verdict | None:
    name = queue.name
    for each in queue.lineage():
        if each.problem:
            whose = f"queue {each.name} {each.problem}"
            if each is not queue:
                whose = f"queue {name} is part of queue {each.name}, which {each.problem}"
            return Verdict(Reason.QUEUE_BROKEN, f"{whose}; it can start once that is mended")
    for each in queue.lineage():
        if not each.facts.open:
            above = "" if each is queue else f", of which queue {name} is part,"
            return Verdict(
                Reason.QUEUE_CLOSED,
                f"queue {each.name}{above} is closed; it can start once the queue is opened",
            )
    if queue.children:
        parts = [child.name for child in queue.children]
        some = ", ".join(parts[:3]) + (", ..." if len(parts) > 3 else "")
        return Verdict(
            Reason.QUEUE_FORBIDDEN,
            f"queue {name} is divided into queues ({some}); name one of these",
        )
    return _forbidden(queue, namespace)


def _forbidden(queue: Queue, namespace: str) -> Verdict | None:
    """A queue says who may use it; one that does not, is its parent's users'."""
    for each in queue.lineage():
        allowed = each.facts.namespaces
        if allowed is not None:
            if namespace in allowed:
                return None
            whose = "" if each is queue else f", as part of queue {each.name},"
            return Verdict(
                Reason.QUEUE_FORBIDDEN,
                f"queue {queue.name}{whose} is not for namespace {namespace}"
                f" (posse.dev/namespaces); name another one, or have it added",
            )
    return None
