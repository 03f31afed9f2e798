"""Why a job is where it is, in one sentence.

The scheduler's own verdict stands on the PodGroup and on the pods; this reads it and adds what
happens before (no pods yet) and after (placed, but not running).
"""

from __future__ import annotations

from typing import Any

import msgspec

from posse.client.jobs import FINISHED, TrainingJob, pod_status
from posse.objects.groups import PodGroup
from posse.objects.meta import Condition
from posse.objects.pods import Pod

_MEMBERS_MISSING = "NotEnoughTasks"


class Explanation(msgspec.Struct, frozen=True):
    sentence: str
    settled: bool  # False while nobody has looked at the job yet


def explain(
    job: TrainingJob, manifest: dict[str, Any], pods: list[Pod], group: PodGroup | None
) -> Explanation:
    name = job.name
    if job.status in FINISHED:
        return Explanation(_finished(job, manifest), True)
    if job.status == "RUNNING":
        count = len(job.instances)
        return Explanation(f"{name} is not waiting: all {count} of its pods run.", True)
    if job.status == "QUEUING":
        return Explanation(f"{name} is suspended; resume it to let it start.", True)
    if verdict := _group_verdict(group):
        # Members that do not exist yet are on their way; what is then missing is the answer.
        return Explanation(f"{name} waits: {verdict.message}", verdict.reason != _MEMBERS_MISSING)
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
        first = starting[0]
        return Explanation(
            f"{name} is starting: {len(starting)} of {len(pods)} pods are placed but not running"
            f" yet ({first.metadata.name} on {first.spec.node_name}: {pod_status(first)}).",
            True,
        )
    return Explanation(f"{name} waits: the scheduler has not looked at it yet.", False)


def why_not_running(pod: Pod) -> str:
    """What keeps one pod from running, as far as it says so; "" for one that runs."""
    if pod.status.phase == "Running" and all(
        c.state.running for c in pod.status.container_statuses
    ):
        return ""
    if verdict := _pod_verdict(pod):
        return verdict
    for container in pod.status.container_statuses:
        # What it ended with last says more than that it will be tried again.
        last = container.last_state.terminated
        for state in (last, container.state.waiting, container.state.terminated):
            if state is not None:
                return f"{state.reason}: {state.message}" if state.message else state.reason
    return pod_status(pod)


def _group_verdict(group: PodGroup | None) -> Condition | None:
    for condition in group.status.conditions if group else ():
        if condition.type == "Unschedulable" and condition.status == "True":
            return condition
    return None


def _pod_verdict(pod: Pod) -> str:
    if pod.spec.node_name:
        return ""
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status == "False":
            return condition.message
    return ""


def _finished(job: TrainingJob, manifest: dict[str, Any]) -> str:
    for condition in reversed((manifest.get("status") or {}).get("conditions") or []):
        if condition.get("type") == "Failed" and condition.get("status") == "True":
            return f"{job.name} is not waiting: it failed: {condition.get('message', '')}"
    return f"{job.name} is not waiting: it has {job.status.lower()}."
