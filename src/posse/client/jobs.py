"""A training job as its user sees it: one status, its instances, its GPUs.

Read from the job object and its pods, never from anything stored beside them.
"""

from __future__ import annotations

from typing import Any

import msgspec

from posse.client.trainers import Trainer
from posse.objects import keys
from posse.objects.pods import Pod, PodSpec
from posse.objects.requests import pod_requests
from posse.objects.times import parse_time

GPU = "nvidia.com/gpu"
FINISHED = ("SUCCEEDED", "FAILED")


class Instance(msgspec.Struct, frozen=True):
    name: str
    status: str
    age: float  # seconds
    node: str  # "N/A" while it has none
    node_ip: str
    ip: str
    chief: bool
    gpus: int
    created: str


class TrainingJob(msgspec.Struct, frozen=True):
    name: str
    namespace: str
    uid: str
    trainer: str
    status: str
    priority: str
    created: str
    ended: str
    duration: float  # seconds
    instances: tuple[Instance, ...]
    requested_gpus: int
    allocated_gpus: int
    tensorboard: str
    tensorboard_trouble: str = ""

    @property
    def chief(self) -> str:
        return next((i.name for i in self.instances if i.chief), "")

    @property
    def node(self) -> str:
        """Where its chief is, or another member that has a place; "N/A" while nobody has."""
        placed = [i for i in self.instances if i.node != "N/A"]
        return next((i.node for i in sorted(placed, key=lambda i: not i.chief)), "N/A")


def read_job(
    trainer: Trainer,
    job: dict[str, Any],
    pods: list[Pod],
    now: float,
    tensorboard: str = "",
    tensorboard_trouble: str = "",
) -> TrainingJob:
    metadata = job["metadata"]
    status = job.get("status") or {}
    instances = tuple(
        _instance(trainer, pod, now)
        for pod in sorted(pods, key=lambda p: _natural(p.metadata.name))
    )
    state = _status(job, instances)
    created = metadata.get("creationTimestamp") or ""
    ended = status.get("completionTime") or ""
    began = parse_time(created) if created else now
    allocated = sum(i.gpus for i in instances if i.node != "N/A" and i.status not in _DONE)
    return TrainingJob(
        name=metadata["name"],
        namespace=metadata.get("namespace", ""),
        uid=metadata.get("uid", ""),
        trainer=trainer.name,
        status=state,
        priority=_priority(job),
        created=created,
        ended=ended,
        duration=(parse_time(ended) if ended else now) - began,
        instances=instances,
        requested_gpus=_requested_gpus(trainer, job),
        allocated_gpus=allocated if state not in FINISHED else 0,
        tensorboard=tensorboard,
        tensorboard_trouble=tensorboard_trouble,
    )


_DONE = ("Succeeded", "Failed", "Completed", "Error")


def _instance(trainer: Trainer, pod: Pod, now: float) -> Instance:
    created = pod.metadata.creation_timestamp or ""
    return Instance(
        name=pod.metadata.name,
        status=pod_status(pod),
        age=max(0.0, now - parse_time(created)) if created else 0.0,
        node=pod.spec.node_name or "N/A",
        node_ip=pod.status.host_ip,
        ip=pod.status.pod_ip,
        chief=_is_chief(trainer, pod),
        gpus=pod_requests(pod.spec).get(GPU, 0),
        created=created,
    )


def pod_status(pod: Pod) -> str:
    """The pod's phase, or the more telling reason a container gives."""
    if pod.metadata.deletion_timestamp is not None:
        return "Terminating"
    if pod.status.reason and pod.terminal:
        return pod.status.reason
    for container in pod.status.container_statuses:
        waiting = container.state.waiting
        if waiting and waiting.reason not in ("", "ContainerCreating", "PodInitializing"):
            return waiting.reason
    return pod.status.phase or "Pending"


def _is_chief(trainer: Trainer, pod: Pod) -> bool:
    """The role that always speaks, or the pod that its controller has named to do so."""
    if trainer.chief:
        return _role(pod) == trainer.chief
    return pod.metadata.labels.get(keys.JOB_ROLE_LABEL) == "master"


def _role(pod: Pod) -> str:
    return (
        pod.metadata.annotations.get(keys.TASK_SPEC)
        or pod.metadata.labels.get(keys.REPLICA_TYPE_LABEL)
        or ""
    ).lower()


def _status(job: dict[str, Any], instances: tuple[Instance, ...]) -> str:
    """Kubeflow's conditions, corrected by what the pods show: a job with a pending pod waits."""
    conditions = {
        c["type"]: c.get("status") == "True"
        for c in (job.get("status") or {}).get("conditions") or []
    }
    for condition, name in (("Succeeded", "SUCCEEDED"), ("Failed", "FAILED")):
        if conditions.get(condition):
            return name
    if conditions.get("Suspended"):
        return "QUEUING"
    if conditions.get("Running") and not any(i.status == "Pending" for i in instances):
        return "RUNNING"
    return "PENDING"


def _priority(job: dict[str, Any]) -> str:
    policy = (job["spec"].get("runPolicy") or {}).get("schedulingPolicy") or {}
    return policy.get("priorityClass") or "N/A"


def _requested_gpus(trainer: Trainer, job: dict[str, Any]) -> int:
    """What the job asks for, whether its pods exist yet or not."""
    total = 0
    for role in (job["spec"].get(trainer.replicas_field) or {}).values():
        spec = ((role or {}).get("template") or {}).get("spec") or {}
        try:
            each = pod_requests(msgspec.convert(spec, PodSpec)).get(GPU, 0)
        except (ValueError, msgspec.ValidationError):
            continue  # the controller says what is wrong with it; a listing goes on
        replicas = role.get("replicas")
        total += each * (1 if replicas is None else replicas)
    return total


def _natural(name: str) -> tuple[str, int, str]:
    """worker-10 after worker-9."""
    stem, _, tail = name.rpartition("-")
    return (stem, int(tail), "") if tail.isdecimal() else (name, -1, "")
