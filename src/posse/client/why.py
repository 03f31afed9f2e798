"""Why a job is where it is: one sentence, and the last words of whoever died.

The scheduler's own verdict stands on the PodGroup and on the pods; this reads it and adds what
happens before (pods that nobody lets be created) and after (an image, a secret, a claim, an init
container, the first rank that died).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from posse.client.happenings import when
from posse.client.jobs import FINISHED, TrainingJob, pod_status
from posse.objects.groups import PodGroup
from posse.objects.meta import Condition
from posse.objects.pods import ContainerStatus, Pod, Terminated

_MEMBERS_MISSING = ("NotEnoughTasks", "NotEnoughPodsOfTask")
# What container runtimes say of a program that they could not start.
_NEVER_BEGAN = ("StartError", "ContainerCannotRun")
_FAILED_CREATE = "FailedCreate"
# What stands on a PodGroup of each API while it waits: the type of the condition and its status.
_WAITING = (
    ("Unschedulable", "True"),
    ("PodGroupScheduled", "False"),
    ("PodGroupInitiallyScheduled", "False"),
)


class Casualty(msgspec.Struct, frozen=True):
    """The first container of a job that ended badly."""

    pod: str
    container: str
    ended: Terminated
    # It was started again since: its words are those of the run before.
    restarted: bool

    def words(self) -> str:
        # Who could not even be started has left no words of its own.
        never = self.ended.reason in _NEVER_BEGAN and self.ended.message
        why = f": {' '.join(self.ended.message.split())}" if never else ""
        return f"{self.pod} was the first to die: {_how(self.ended)}{why}"


class Explanation(msgspec.Struct, frozen=True):
    sentence: str
    settled: bool  # False while nobody has looked at the job yet
    # Whose last words say more than any sentence.
    casualty: Casualty | None = None


def explain(
    job: TrainingJob,
    manifest: dict[str, Any],
    pods: list[Pod],
    group: PodGroup | None,
    events: Sequence[dict[str, Any]] = (),
) -> Explanation:
    """`events` are those about the job, what it consists of and its pods."""
    if job.status in FINISHED:
        died = first_to_die(pods) if job.status == "FAILED" else None
        return Explanation(_finished(job, manifest, pods), True, died)
    if job.status == "RUNNING":
        return _running(job.name, pods)
    if job.status == "QUEUING":
        return Explanation(f"{job.name} is suspended; resume it to let it start.", True)
    return _not_running(job.name, pods, group, events)


def explain_group(
    group: PodGroup, pods: list[Pod], events: Sequence[dict[str, Any]]
) -> Explanation:
    """Why pods that name a group are where they are, whoever made them."""
    name = group.metadata.name
    if pods and all(pod.terminal for pod in pods):
        died = first_to_die(pods)
        how = f"; {died.words()}" if died else ""
        return Explanation(f"{name} is not waiting: all its pods have ended{how}.", True, died)
    if pods and all(pod.terminal or pod.status.phase == "Running" for pod in pods):
        return _running(name, [pod for pod in pods if not pod.terminal])
    return _not_running(name, pods, group, events)


def _running(name: str, pods: list[Pod]) -> Explanation:
    """It has begun; that does not mean that all of it is well."""
    its = "its pod is" if len(pods) == 1 else f"its {len(pods)} pods are"
    died = first_to_die(pods)
    if died is None:
        return Explanation(f"{name} is not waiting: {its} running.", True)
    if down := [pod for pod in pods if _is_down(pod)]:
        are = "is" if len(down) == 1 else "are"
        which = "its pod is" if len(pods) == 1 else f"{len(down)} of its {len(pods)} pods {are}"
        restarts = sum(s.restart_count for pod in down for s in pod.status.container_statuses)
        again = f" and started again, {restarts} times so far" if restarts else ""
        said = f"{name} is not waiting, but {which} down{again}: {died.words()}."
    else:
        said = f"{name} is not waiting: {its} running; before that, {died.words()}."
    return Explanation(said, True, died)


def _is_down(pod: Pod) -> bool:
    return not pod.terminal and any(
        status.state.waiting or (status.state.terminated and status.state.terminated.exit_code)
        for status in pod.status.container_statuses
    )


def _not_running(
    name: str, pods: list[Pod], group: PodGroup | None, events: Sequence[dict[str, Any]]
) -> Explanation:
    verdict = _group_verdict(group)
    if (verdict is None or verdict.reason in _MEMBERS_MISSING) and (
        refused := _not_created(pods, events)
    ):
        return Explanation(f"{name} waits: {refused}", True)
    if verdict is not None:
        # Members that do not exist yet are on their way; what is then missing is the answer.
        settled = verdict.reason not in _MEMBERS_MISSING
        return Explanation(_waits(name, verdict.message), settled)
    waiting = [(pod, message) for pod in pods if (message := _pod_verdict(pod))]
    if waiting:
        pod, message = waiting[0]
        seated = sum(1 for p in pods if p.spec.node_name)
        return Explanation(
            f"{name} waits: {seated} of {len(pods)} pods have a node;"
            f" {pod.metadata.name}: {message}",
            True,
        )
    if not pods:
        return Explanation(f"{name} waits: its pods are not created yet.", False)
    died = first_to_die(pods)
    starting = [pod for pod in pods if pod.spec.node_name and pod.status.phase == "Pending"]
    if starting:
        # One that says what is wrong says more than one that only takes its time.
        told = [(pod, why) for pod in starting if (why := _trouble(pod, events))]
        first, why = told[0] if told else (starting[0], pod_status(starting[0]))
        are = "is" if len(starting) == 1 else "are"
        which = "its pod" if len(pods) == 1 else f"{len(starting)} of {len(pods)} pods"
        return Explanation(
            f"{name} is starting: {which} {are} placed but not running yet"
            f" ({first.metadata.name} on {first.spec.node_name}: {why}).",
            True,
            died,
        )
    if died is not None:
        return Explanation(f"{name} is being restarted: {died.words()}.", True, died)
    if unready := [pod for pod in pods if pod.status.phase == "Running" and not pod.ready]:
        are = "is" if len(unready) == 1 else "are"
        first = unready[0]
        return Explanation(
            f"{name} is starting: {len(unready)} of {len(pods)} pods {are} running but not ready"
            f" yet ({first.metadata.name} on {first.spec.node_name}).",
            True,
        )
    if all(pod.spec.node_name for pod in pods):
        its = "its pod has" if len(pods) == 1 else f"its {len(pods)} pods have"
        return Explanation(f"{name} is starting: {its} a node; no others are created yet.", True)
    return Explanation(
        f"{name} waits: no scheduler has said anything of it yet; `posse status` tells whether one"
        " runs, and its log whether it is frozen.",
        False,
    )


def _waits(name: str, verdict: str) -> str:
    """Some verdicts say by themselves that somebody waits, and for what."""
    return f"{name} {verdict}" if verdict.startswith("waits ") else f"{name} waits: {verdict}"


def first_to_die(pods: list[Pod]) -> Casualty | None:
    """Whoever ended badly before all others; the rest of a gang mostly follows."""
    found: list[tuple[str, str, Casualty]] = []
    for pod in pods:
        for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
            for ended, restarted in (
                (status.state.terminated, False),
                (status.last_state.terminated, True),
            ):
                if ended is not None and ended.exit_code:
                    casualty = Casualty(pod.metadata.name, status.name, ended, restarted)
                    found.append((ended.finished_at or "", pod.metadata.name, casualty))
    return min(found, key=lambda one: one[:2])[2] if found else None


def why_not_running(pod: Pod) -> str:
    """What keeps one pod from running, as far as it says so; "" for one that runs."""
    if pod.status.phase == "Running" and all(
        c.state.running for c in pod.status.container_statuses
    ):
        return ""
    return _pod_verdict(pod) or _container_trouble(pod) or pod_status(pod)


def _not_created(pods: list[Pod], events: Sequence[dict[str, Any]]) -> str:
    """What keeps pods from being created: a quota, a webhook, whatever answers to who tries."""
    refusals = [e for e in events if e.get("reason") == _FAILED_CREATE]
    if not refusals:
        return ""
    message = max(refusals, key=when).get("message", "")
    created = [p.metadata.creation_timestamp or "" for p in pods]
    if pods and max(created) > when(max(refusals, key=when)):
        return ""  # it was let through since
    exist = "exists" if len(pods) == 1 else "exist"
    there = f"{len(pods)} of its pods {exist}, another" if pods else "none of its pods exists, one"
    return f"{there} cannot be created: {message}"


def _trouble(pod: Pod, events: Sequence[dict[str, Any]]) -> str:
    """What a placed pod is kept up by: a container says it, or its node said it in an event."""
    if said := _container_trouble(pod):
        return said
    warnings = [
        event
        for event in events
        if event.get("type") == "Warning"
        and (event.get("involvedObject") or {}).get("uid") == pod.metadata.uid
    ]
    if not warnings:
        return ""
    last = max(warnings, key=when)
    return f"{last.get('reason', '')}: {last.get('message', '')}"


# What a container that is only on its way says.
_PATIENCE = ("ContainerCreating", "PodInitializing")


def _container_trouble(pod: Pod) -> str:
    for status in pod.status.init_container_statuses:
        if said := _said(status):
            return f"init container {status.name}: {said}"
    for status in pod.status.container_statuses:
        if said := _said(status):
            return said
    return ""


def _said(status: ContainerStatus) -> str:
    # What it ended with last says more than that it will be tried again.
    for state in (status.last_state.terminated, status.state.waiting, status.state.terminated):
        if state is None or state.reason in ("", "Completed", *_PATIENCE):
            continue
        what = _how(state) if isinstance(state, Terminated) else state.reason
        return f"{what}: {state.message}" if state.message else what
    return ""


def _how(ended: Terminated) -> str:
    """`OOMKilled, exit code 137`."""
    how = f"{ended.reason}, " if ended.reason not in ("", "Error") else ""
    return f"{how}exit code {ended.exit_code}"


def _group_verdict(group: PodGroup | None) -> Condition | None:
    for condition in group.status.conditions if group else ():
        if (condition.type, condition.status) in _WAITING:
            return condition
    return None


def _pod_verdict(pod: Pod) -> str:
    if pod.spec.node_name:
        return ""
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status == "False":
            return condition.message
    return ""


def _finished(job: TrainingJob, manifest: dict[str, Any], pods: list[Pod]) -> str:
    for condition in reversed((manifest.get("status") or {}).get("conditions") or []):
        if condition.get("type") == "Failed" and condition.get("status") == "True":
            said = f"{job.name} is not waiting: it failed: {condition.get('message', '')}"
            casualty = first_to_die(pods)
            return f"{said.rstrip('.')}; {casualty.words()}." if casualty else said
    return f"{job.name} is not waiting: it has {job.status.lower()}."
