"""Where a gang stands, for people, autoscalers and foreign operators to read. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from posse.engine.decisions import Cause, Reason, Verdict
from posse.engine.facts import DEFAULT_QUEUE
from posse.engine.resources import count
from posse.objects.groups import Queue
from posse.objects.kinds import COSCHEDULING_POD_GROUP
from posse.objects.meta import Condition
from posse.objects.pods import Pod
from posse.objects.times import rfc3339
from posse.scheduler.binding import NOT_BOUND
from posse.scheduler.reading.groups import (
    COMPLETED,
    INQUEUE,
    PENDING,
    RUNNING,
    STARTED,
    UNKNOWN,
    condition_of,
    is_native,
    phase_of,
)
from posse.scheduler.reading.members import Member
from posse.scheduler.reading.muster import Muster
from posse.scheduler.reading.pods import Place
from posse.scheduler.reading.queues import is_open
from posse.world import World

SCHEDULED = "Scheduled"
UNSCHEDULABLE = "Unschedulable"
# Of events on pods without a group.
FAILED = "FailedScheduling"
MALFORMED = "Malformed"
NOT_SUPPORTED = "NotSupported"

# Volcano's words for the two reasons that it knows.
_GROUP_REASONS = {
    Reason.UNSCHEDULABLE: "NotEnoughResources",
    Reason.INCOMPLETE: "NotEnoughTasks",
}


class Waiting(msgspec.Struct, frozen=True):
    """Why a gang waits: on its pods, on its PodGroup, in a sentence.

    Its place in line stands on the PodGroup alone: it changes with every start before it, and is
    no reason to write each of its pods anew, nor an event.
    """

    reason: str
    group_reason: str
    sentence: str
    place: str = ""

    @property
    def on_group(self) -> str:
        return self.sentence + self.place


# The engine failed on it.
FAILED_ON = "SchedulerError"

# How the place begins that stands behind the sentence.
_PLACE = "; number "


def says(message: str, why: Waiting) -> bool:
    """Whether a PodGroup's message tells this, whatever the place in line."""
    sentence, place, _ = message.rpartition(_PLACE)
    return (sentence if place else message) == why.sentence


def waiting(muster: Muster, verdict: Verdict | None) -> Waiting | None:
    """None while nothing is known, or nobody waits."""
    if not muster.alone and muster.group is None and not muster.bare:
        name = muster.key.partition("/")[2]
        incomplete = Reason.INCOMPLETE
        return Waiting(
            incomplete.value,
            _GROUP_REASONS[incomplete],
            f"waits for {_group_called(name)}, which does not exist",
        )
    if muster.group is not None and muster.group.metadata.deleting:
        if not muster.count(Place.WAITING):
            return None
        incomplete = Reason.INCOMPLETE
        return Waiting(
            incomplete.value,
            _GROUP_REASONS[incomplete],
            f"waits for PodGroup {muster.group.metadata.name}, which is being deleted",
        )
    if muster.problem:
        return Waiting(Reason.INCOMPLETE.value, MALFORMED, muster.problem)
    if muster.aside:
        return Waiting(FAILED_ON, FAILED_ON, muster.aside)
    if back := muster.stands_back or muster.setback:
        return Waiting(NOT_BOUND, NOT_BOUND, back)
    if muster.errand:
        return Waiting(Reason.RESERVED.value, Reason.RESERVED.value, muster.errand)
    if verdict is None:
        return None
    sentence = verdict.sentence
    if verdict.reason is Reason.INCOMPLETE:
        sentence = _kept_out(muster) or sentence
    reason = verdict.reason
    group_reason = _GROUP_REASONS.get(reason, reason.value)
    if verdict.cause is Cause.ROLE_MISSING:
        group_reason = verdict.cause.value
    place = f"{_PLACE}{verdict.position} in queue {muster.queue or DEFAULT_QUEUE}"
    return Waiting(reason.value, group_reason, sentence, place if verdict.position else "")


def _kept_out(muster: Muster) -> str:
    """Of pods that are there and that the engine was not told of: how many, and why."""
    barred, gated = muster.count(Place.BARRED), muster.count(Place.GATED)
    if not barred and not gated:
        return ""
    told = []
    if barred:
        first = _first(muster, Place.BARRED)
        told.append(
            f"{barred} of its pods cannot be placed: {first.pod.metadata.name} {first.problem}"
        )
    if gated:
        first = _first(muster, Place.GATED)
        gates = ", ".join(gate.name for gate in first.pod.spec.scheduling_gates)
        told.append(f"{gated} of its pods {'has' if gated == 1 else 'have'} scheduling gates")
        told[-1] += f" ({gates})" if gates else ""
    there = len(muster.members) - muster.count(Place.FAILED)
    if (missing := muster.minimum - there) > 0:
        told.append(f"{missing} more {'does' if missing == 1 else 'do'} not exist yet")
    return "; ".join(told)


def _first(muster: Muster, place: Place) -> Member:
    """By name, so that the same is told as long as it is true."""
    there = (member for member in muster.members.values() if member.place is place)
    return min(there, key=lambda member: member.pod.metadata.name)


def _placed(muster: Muster) -> str:
    least = muster.minimum
    if least < 1:
        return "its members have their nodes"
    return (
        f"at least {count(least, 'member')} {'has its node' if least == 1 else 'have their nodes'}"
    )


def _group_called(name: str) -> str:
    workload, inside, group = name.partition("/")
    if not inside:
        return f"PodGroup {name}"
    return f"a group {group.partition('/')[0]} in Workload {workload}"


def waiting_by_reason(
    musters: Mapping[str, Muster], verdicts: Mapping[str, Verdict]
) -> dict[str, int]:
    """How many gangs wait, with a pod or before their first."""
    counts: dict[str, int] = {}
    for key, muster in musters.items():
        if not muster.count(Place.WAITING) and (muster.group is None or muster.seated):
            continue
        if why := waiting(muster, verdicts.get(key)):
            counts[why.reason] = counts.get(why.reason, 0) + 1
    return counts


def phase(muster: Muster, queues: Mapping[str, Queue]) -> str:
    """The phase that the PodGroup should be in.

    A group in an open queue is Inqueue at once, pods or not: foreign operators create their pods
    only then, and autoscalers must see them.
    """
    current = phase_of(muster.group) if muster.group is not None else ""
    live = len(muster.members) - muster.count(Place.SUCCEEDED) - muster.count(Place.FAILED)
    if muster.finished and (muster.ran or current in (*STARTED, COMPLETED)):
        return COMPLETED
    if current == COMPLETED and not live:
        return COMPLETED
    if muster.whole:
        return RUNNING
    if muster.ran:
        return UNKNOWN
    if current in STARTED and not live and muster.members:
        return UNKNOWN
    if current in (INQUEUE, COMPLETED, *STARTED):
        return INQUEUE
    return INQUEUE if is_open(muster.queue or DEFAULT_QUEUE, queues) else PENDING


def written_phase(muster: Muster, queues: dict[str, Queue]) -> str:
    """The phase in the words of the group's own API; "" where it has none."""
    if is_native(muster.kind):
        return ""
    if muster.kind == COSCHEDULING_POD_GROUP:
        return _coscheduling_phase(muster)
    return phase(muster, queues)


def _coscheduling_phase(muster: Muster) -> str:
    """As the scheduler-plugins' own controller reckons it, which may run beside us: two that
    disagreed would overwrite each other for ever.

    It does not know Unknown: of a gang that ran and is short, a successor must learn that it ran.
    Where somebody else writes another word after ours, that stands.
    """
    assert muster.group is not None
    least, failed = muster.minimum, muster.count(Place.FAILED)
    succeeded, running = muster.count(Place.SUCCEEDED), muster.count(Place.RUNNING)
    current = muster.group.status.phase
    if succeeded >= least:
        reckoned = "Finished"
    elif failed and failed + running + succeeded >= least:
        reckoned = "Failed"
    elif succeeded + running >= least:
        reckoned = RUNNING
    elif not muster.members and current in ("Finished", "Failed"):
        return current
    elif muster.ran:
        reckoned = UNKNOWN
    else:
        reckoned = PENDING if len(muster.members) < least else "Scheduling"
    return current if current and reckoned == muster.last_phase else reckoned


def group_status(
    muster: Muster, queues: dict[str, Queue], why: Waiting | None, world: World
) -> dict[str, Any]:
    """What has to change in the PodGroup's status: a merge patch, empty when it is all there."""
    if muster.group is None:
        return {}
    if is_native(muster.kind):
        return _native_status(muster, why, world)
    now = muster.group.status
    # A successor is to know of those that are gone. Another controller counts those it sees.
    alike = muster.kind == COSCHEDULING_POD_GROUP
    wanted = {
        "phase": written_phase(muster, queues),
        "running": muster.count(Place.RUNNING),
        "succeeded": muster.count(Place.SUCCEEDED) if alike else muster.tally.ended_well,
        "failed": muster.count(Place.FAILED),
    }
    current = {
        "phase": now.phase,
        "running": now.running,
        "succeeded": now.succeeded,
        "failed": now.failed,
    }
    patch: dict[str, Any] = {
        field: value for field, value in wanted.items() if current[field] != value
    }
    if muster.kind == COSCHEDULING_POD_GROUP:
        return patch
    conditions = _conditions(muster, wanted["phase"], why, world)
    if conditions != now.conditions:
        patch["conditions"] = [msgspec.to_builtins(condition) for condition in conditions]
    return patch


def _native_status(muster: Muster, why: Waiting | None, world: World) -> dict[str, Any]:
    """Kubernetes' own groups have one condition; that it was placed whole is not taken back."""
    assert muster.group is not None
    if not muster.members:
        return {}  # nobody has said yet that it is ours
    kind = condition_of(muster.kind)
    before = muster.group.status.conditions
    old = next((condition for condition in before if condition.type == kind), None)
    stands = old is not None and old.status == "True"
    if muster.whole or (muster.ran and not muster.outlived and not stands):
        told = ("True", SCHEDULED, _placed(muster))
    elif why is not None and not stands:
        told = ("False", why.reason, why.on_group)
    else:
        return {}
    new = msgspec.structs.replace(
        _moved(old, kind, *told, world),
        transition_id="",
        observed_generation=muster.group.metadata.generation,
    )
    if new == old:
        return {}
    after = [new if condition is old else condition for condition in before]
    if old is None:
        after.append(new)
    return {"conditions": [msgspec.to_builtins(condition) for condition in after]}


def pod_condition(member: Member, why: Waiting | None) -> tuple[str, str] | None:
    """Reason and message of the member's PodScheduled=False; None when it has nothing to say."""
    if member.place is Place.BARRED:
        reason = NOT_SUPPORTED if member.pod.spec.resource_claims else MALFORMED
        return UNSCHEDULABLE if member.awaits else reason, member.problem
    if member.place is Place.WAITING and why is not None:
        return why.reason, why.sentence
    return None


def said_of(pod: Pod) -> tuple[str, str] | None:
    """Reason and message of the PodScheduled=False that the pod carries."""
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status == "False":
            return condition.reason, condition.message
    return None


def _conditions(
    muster: Muster, phase_now: Any, why: Waiting | None, world: World
) -> list[Condition]:
    """All conditions of the PodGroup: ours as they should be, others as they are."""
    assert muster.group is not None
    before = muster.group.status.conditions
    if phase_now == RUNNING and not muster.problem:
        wanted = {
            SCHEDULED: ("True", SCHEDULED, _placed(muster)),
            UNSCHEDULABLE: ("False", SCHEDULED, ""),
        }
        main = SCHEDULED
    elif why is not None and phase_now != COMPLETED:
        wanted = {
            UNSCHEDULABLE: ("True", why.group_reason, why.on_group),
            SCHEDULED: ("False", why.group_reason, ""),
        }
        main = UNSCHEDULABLE
    else:
        return before
    after: list[Condition] = []
    for condition in before:
        status, reason, message = wanted.pop(condition.type, (None, "", ""))
        if status is None or (status == condition.status == "False"):
            after.append(condition)
        else:
            after.append(_moved(condition, condition.type, status, reason, message, world))
    if main in wanted:
        after.append(_moved(None, main, *wanted[main], world))
    return after


def _moved(
    before: Condition | None, kind: str, status: str, reason: str, message: str, world: World
) -> Condition:
    same = before is not None and before.status == status
    if before is not None and same and (before.reason, before.message) == (reason, message):
        return before
    return Condition(
        type=kind,
        status=status,
        reason=reason,
        message=message,
        last_transition_time=before.last_transition_time
        if before is not None and same
        else rfc3339(world.now()),
        transition_id=world.uid(),
    )
