"""What a pod does next: which containers start, when to look again, whether it is over.

Pure. Init containers run one after another before the others; a sidecar among them stays up. The
pod's restart policy says who is started again, and never before its backoff has passed.
"""

from __future__ import annotations

import msgspec

from posse.local.node.lives import LONGEST_BACKOFF, ContainerLife, Ended, Life, Outcome, Running

DEADLINE = Outcome(
    "Failed",
    "DeadlineExceeded",
    "Pod was active on the node longer than the specified deadline",
)


class Step(msgspec.Struct, frozen=True):
    start: tuple[str, ...] = ()
    wake_in: float | None = None  # seconds until there may be something to do
    outcome: Outcome | None = None


def next_step(life: Life, now: float) -> Step:
    """`now` in wall seconds, the clock in which the containers' lives are kept."""
    left = _time_left(life, now)
    if left is not None and left <= 0:
        return Step(outcome=DEADLINE)
    step = _containers(life, now)
    if left is not None and step.outcome is None:
        wake = left if step.wake_in is None else min(left, step.wake_in)
        return Step(step.start, wake)
    return step


def _containers(life: Life, now: float) -> Step:
    start: list[str] = []
    waits: list[float] = []
    for container in life.containers.values():
        if not container.init:
            continue
        match _judge(container, life.restart_policy, now):
            case "start":
                start.append(container.name)
            case "over":
                assert isinstance(container.state, Ended)
                if container.state.how.code != 0:
                    return Step(outcome=Outcome("Failed"))
            case float(wait):
                waits.append(wait)
            case _:
                pass
        if not _passed(container) and not (container.sidecar and container.name in start):
            return Step(tuple(start), min(waits, default=None))
    mains = [c for c in life.containers.values() if not c.init]
    verdicts = [_judge(container, life.restart_policy, now) for container in mains]
    if mains and all(verdict == "over" for verdict in verdicts):
        return Step(outcome=ending(life))
    for container, verdict in zip(mains, verdicts, strict=True):
        if verdict == "start":
            start.append(container.name)
        elif isinstance(verdict, float):
            waits.append(verdict)
    return Step(tuple(start), min(waits, default=None))


def ending(life: Life) -> Outcome:
    """The outcome of a pod none of whose containers will run again."""
    mains = [c for c in life.containers.values() if not c.init]
    clean = all(isinstance(c.state, Ended) and c.state.how.code == 0 for c in mains)
    return Outcome("Succeeded" if clean else "Failed")


def restarts(container: ContainerLife, policy: str) -> bool:
    """An ended container of a pod of that policy is started again."""
    if not isinstance(container.state, Ended):
        return False
    failed = container.state.how.code != 0
    if container.sidecar:
        return True
    if container.init:
        return failed and policy != "Never"
    return policy == "Always" or (failed and policy == "OnFailure")


def _judge(container: ContainerLife, policy: str, now: float) -> str | float:
    """start | running | over, or the seconds until it may be started again."""
    if isinstance(container.state, Running):
        return "running"
    held = 0.0 if container.hindrance is None else container.hindrance.until - now
    # Longer than any pause is: the clock was set back meanwhile.
    if 0 < held <= LONGEST_BACKOFF and (container.state is None or restarts(container, policy)):
        return held
    if container.state is None:
        return "start"
    if not restarts(container, policy):
        return "over"
    return container.pause_left(now) or "start"


def _passed(container: ContainerLife) -> bool:
    """The containers after this init container may start."""
    if container.sidecar:
        return isinstance(container.state, Running)
    return isinstance(container.state, Ended) and container.state.how.code == 0


def _time_left(life: Life, now: float) -> float | None:
    seconds = life.spec.active_deadline_seconds
    return None if seconds is None else life.started_at + seconds - now
