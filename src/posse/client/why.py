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


class Explanation(msgspec.Struct, frozen=True):
    sentence: str
    settled: bool  # False while nobody has looked at the job yet


class Casualty(msgspec.Struct, frozen=True):
    """The first container of a job that ended badly."""

    pod: str
    container: str
    ended: Terminated
    # It was started again since: its words are those of the run before.
    restarted: bool

    def words(self) -> str:
        how = self.ended.reason if self.ended.reason not in ("", "Error") else ""
        code = f"exit code {self.ended.exit_code}"
        # Who could not even be started has left no words of its own.
        never = how in _NEVER_BEGAN and self.ended.message
        why = f": {' '.join(self.ended.message.split())}" if never else ""
        return f"{self.pod} was the first to die: {f'{how}, ' if how else ''}{code}{why}"


def explain(
    job: TrainingJob,
    manifest: dict[str, Any],
    pods: list[Pod],
    group: PodGroup | None,
    events: Sequence[dict[str, Any]] = (),
) -> Explanation:
    """`events` are those about the job, what it consists of and its pods."""
    name = job.name
    if job.status in FINISHED:
        return Explanation(_finished(job, manifest, pods), True)
    if job.status == "RUNNING":
        count = len(job.instances)
        its = "its pod is" if count == 1 else f"its {count} pods are"
        return Explanation(f"{name} is not waiting: {its} running.", True)
    if job.status == "QUEUING":
        return Explanation(f"{name} is suspended; resume it to let it start.", True)
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
        )
    if (casualty := first_to_die(pods)) is not None:
        return Explanation(f"{name} is being restarted: {casualty.words()}.", True)
    return Explanation(f"{name} waits: the scheduler has not looked at it yet.", False)


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
        return f"{state.reason}: {state.message}" if state.message else state.reason
    return ""


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
