"""A pod's status as its node reports it. Pure: a life in, a status out.

Conditions keep the time of their last transition, so an unchanged pod gives an unchanged status and
nothing is written.
"""

from __future__ import annotations

from typing import Any

from posse.local.node.lifecycle import restarts
from posse.local.node.lives import ContainerLife, Ended, Life, Outcome, Running
from posse.local.node.manifests import ADDRESS
from posse.objects.times import rfc3339

Manifest = dict[str, Any]


def rejected_status(life: Life, outcome: Outcome) -> Manifest:
    """The pod was bound here and never admitted."""
    return {
        "phase": outcome.phase,
        "reason": outcome.reason,
        "message": outcome.message,
        "startTime": rfc3339(life.started_at),
    }


def status_of(life: Life, now: float) -> Manifest:
    """What a kubelet would report; `now` stamps conditions that just changed."""
    outcome = life.outcome
    status: Manifest = {
        "phase": _phase(life),
        "hostIP": ADDRESS,
        "hostIPs": [{"ip": ADDRESS}],
        "podIP": life.ip,
        "podIPs": [{"ip": life.ip}],
        "startTime": rfc3339(life.started_at),
        "conditions": _conditions(life, now),
        "containerStatuses": [_container(life, c) for c in life.containers.values() if not c.init],
    }
    if any(c.init for c in life.containers.values()):
        status["initContainerStatuses"] = [
            _container(life, c) for c in life.containers.values() if c.init
        ]
    if outcome is not None and outcome.reason:
        status["reason"], status["message"] = outcome.reason, outcome.message
    return status


def shows(current: Any, wanted: Manifest) -> bool:
    """`current` already says all of `wanted`; what others wrote beside it does not matter."""
    if not isinstance(current, dict):
        return False
    for field, value in wanted.items():
        if field != "conditions":
            if current.get(field) != value:
                return False
            continue
        present = {c.get("type"): c for c in current.get(field) or [] if isinstance(c, dict)}
        for condition in value:
            had = present.get(condition["type"], {})
            if any(had.get(name) != text for name, text in condition.items()):
                return False
    return True


def _phase(life: Life) -> str:
    if life.outcome is not None:
        return life.outcome.phase
    mains = [c for c in life.containers.values() if not c.init]
    return "Running" if any(c.state is not None for c in mains) else "Pending"


def _container(life: Life, container: ContainerLife) -> Manifest:
    state = container.state
    running = isinstance(state, Running)
    serving = running and container.ready
    ready = serving if not container.init or container.sidecar else _completed(container)
    last = container.previous
    shown: Manifest
    if isinstance(state, Running):
        shown = {"running": {"startedAt": rfc3339(state.started_at)}}
    elif container.hindrance is not None and life.outcome is None:
        hindrance = container.hindrance
        shown = {"waiting": {"reason": hindrance.reason, "message": hindrance.message}}
        last = state if isinstance(state, Ended) else last
    elif isinstance(state, Ended) and life.outcome is None and _will_restart(life, container):
        shown = {
            "waiting": {
                "reason": "CrashLoopBackOff",
                "message": f"restarting failed container={container.name}",
            }
        }
        last = state
    elif isinstance(state, Ended):
        shown = {"terminated": _terminated(life, container, state)}
    else:
        waiting = "PodInitializing" if _initializing(life) else "ContainerCreating"
        shown = {"waiting": {"reason": waiting}}
    return {
        "name": container.name,
        "image": container.image,
        "imageID": "",
        "containerID": _container_id(life, container) if state is not None else "",
        "ready": bool(ready),
        "started": running,
        "restartCount": container.attempt,
        "state": shown,
        "lastState": {"terminated": _terminated(life, container, last)} if last else {},
    }


def _container_id(life: Life, container: ContainerLife) -> str:
    return f"{life.scheme}://{life.uid}/{container.name}/{container.attempt}"


def _terminated(life: Life, container: ContainerLife, ended: Ended) -> Manifest:
    shown: Manifest = {
        "exitCode": ended.how.code,
        "reason": ended.how.reason or ("Error" if ended.how.code else "Completed"),
        "startedAt": rfc3339(ended.started_at),
        "finishedAt": rfc3339(ended.finished_at),
        "containerID": _container_id(life, container),
    }
    if ended.how.message:
        shown["message"] = ended.how.message
    return shown


def _conditions(life: Life, now: float) -> list[Manifest]:
    mains = [c for c in life.containers.values() if not c.init]
    unready = [c.name for c in mains if not (isinstance(c.state, Running) and c.ready)]
    over = life.outcome is not None
    reason = message = ""
    if life.outcome is not None:
        reason = "PodCompleted" if life.outcome.phase == "Succeeded" else "PodFailed"
    elif unready:
        reason = "ContainersNotReady"
        message = f"containers with unready status: [{' '.join(unready)}]"
    ready = not over and not unready
    rows = (
        ("PodReadyToStartContainers", not over, "", ""),
        ("Initialized", not _initializing(life), "", ""),
        ("Ready", ready, reason, message),
        ("ContainersReady", ready, reason, message),
        ("PodScheduled", True, "", ""),
    )
    present = {
        c.get("type"): c
        for c in (life.pod.get("status") or {}).get("conditions") or []
        if isinstance(c, dict)
    }
    return [
        _condition(present.get(kind, {}), kind, "True" if holds else "False", why, text, now)
        for kind, holds, why, text in rows
    ]


def _condition(
    had: Manifest, kind: str, status: str, reason: str, message: str, now: float
) -> Manifest:
    since = had.get("lastTransitionTime") if had.get("status") == status else None
    condition = {"type": kind, "status": status, "lastTransitionTime": since or rfc3339(now)}
    # A strategic merge keeps what it is not told to drop, so an old reason is nulled.
    for field, text in (("reason", reason), ("message", message)):
        if text or had.get(field):
            condition[field] = text or None
    return condition


def _initializing(life: Life) -> bool:
    return any(
        not (isinstance(c.state, Running) if c.sidecar else _completed(c))
        for c in life.containers.values()
        if c.init
    ) and not any(c.state is not None for c in life.containers.values() if not c.init)


def _completed(container: ContainerLife) -> bool:
    return isinstance(container.state, Ended) and container.state.how.code == 0


def _will_restart(life: Life, container: ContainerLife) -> bool:
    return restarts(container, life.restart_policy)
