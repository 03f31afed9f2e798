"""MPIJobs and their parts, short enough for a table."""

from __future__ import annotations

import asyncio
import random
from typing import Any

from posse.controllers.jobs.settings import Settings
from posse.controllers.mpi.observing import Observed
from posse.controllers.runtime import Manifest, owner_reference
from posse.objects.keys import GROUP_NAME
from posse.objects.kinds import MPI_JOB
from posse.objects.times import rfc3339
from posse.world import World

NOW = 1_700_000_000.0
SETTINGS = Settings()


class LoopClock:
    """The event loop's time, which looptime makes jump."""

    def now(self) -> float:
        return NOW + asyncio.get_running_loop().time()

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()


def world(seed: int = 7) -> World:
    return World(LoopClock(), random.Random(seed))


def template(**fields: Any) -> Manifest:
    resources = {"limits": {"nvidia.com/gpu": "2"}, "requests": {"cpu": "4"}}
    container = {"name": "main", "image": "train", "resources": resources}
    return {"spec": {"containers": [container]} | fields}


def launcher_template(**fields: Any) -> Manifest:
    container = {
        "name": "main",
        "image": "train",
        "command": ["mpirun", "train"],
        "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
    }
    return {"spec": {"containers": [container]} | fields}


def mpi_job(
    *,
    workers: int | None = 2,
    waits: bool = False,
    run: Manifest | None = None,
    status: Manifest | None = None,
    metadata: Manifest | None = None,
    worker: Manifest | None = None,
    launcher: Manifest | None = None,
    **spec: Any,
) -> Manifest:
    replicas: Manifest = {"Launcher": {"replicas": 1, "template": launcher or launcher_template()}}
    if workers is not None:
        replicas["Worker"] = {"replicas": workers, "template": worker or template()}
    body: Manifest = {"mpiReplicaSpecs": replicas} | spec
    if waits:
        body["launcherCreationPolicy"] = "WaitForWorkersReady"
    if run is not None:
        body["runPolicy"] = run
    job: Manifest = {
        "apiVersion": MPI_JOB.api_version,
        "kind": MPI_JOB.kind,
        "metadata": {"name": "train", "namespace": "ns", "uid": "job-1", "resourceVersion": "5"}
        | (metadata or {}),
        "spec": body,
    }
    if status is not None:
        job["status"] = status
    return job


def owned(name: str, *, uid: str = "job-1", **fields: Any) -> Manifest:
    """An object of the job `train`, or of an earlier one by that name (another `uid`)."""
    owner = {"metadata": {"name": "train", "uid": uid}}
    metadata = {
        "name": name,
        "namespace": "ns",
        "uid": f"uid-{name}",
        "ownerReferences": [owner_reference(MPI_JOB, owner)],
    }
    return {"metadata": metadata | fields.pop("metadata", {})} | fields


def worker_pod(
    index: int,
    phase: str = "Running",
    *,
    ready: bool = True,
    reason: str = "",
    message: str = "",
    **fields: Any,
) -> Manifest:
    status: Manifest = {"phase": phase}
    if phase == "Running":
        status["conditions"] = [{"type": "Ready", "status": "True" if ready else "False"}]
    if reason:
        status["reason"] = reason
    if message:
        status["message"] = message
    return member(owned(f"train-worker-{index}", status=status, **fields))


def member(pod: Manifest, group: str = "train", scheduler: str = "posse") -> Manifest:
    """The pod as a controller makes it that has gangs; without a group, as one that has none."""
    marks = {"annotations": {GROUP_NAME: group}} if group else {}
    return pod | {"metadata": marks | pod["metadata"], "spec": {"schedulerName": scheduler}}


def ending() -> Manifest:
    return {"deletionTimestamp": rfc3339(NOW)}


def launcher(condition: str | None = None, *, suspend: bool = False, **fields: Any) -> Manifest:
    status: Manifest = dict(fields.pop("status", {}))
    if condition:
        status["conditions"] = [{"type": condition, "status": "True"} | fields.pop("why", {})]
    return owned("train-launcher", spec={"suspend": suspend}, status=status, **fields)


def launcher_pod(phase: str = "Running", **status: Any) -> Manifest:
    metadata = {"name": "train-launcher-x", "namespace": "ns"}
    return member({"metadata": metadata, "status": {"phase": phase} | status})


def observed(job: Manifest, *pods: Manifest, now: float = NOW, **seen: Any) -> Observed:
    by_name = {pod["metadata"]["name"]: pod for pod in pods}
    return Observed(job=job, now=now, pods=by_name, **seen)


def condition(type_: str, status: str = "True", reason: str = "", at: float = NOW) -> Manifest:
    stamp = rfc3339(at)
    return {
        "type": type_,
        "status": status,
        "reason": reason or f"MPIJob{type_}",
        "message": "",
        "lastUpdateTime": stamp,
        "lastTransitionTime": stamp,
    }


def started(*more: Manifest, at: float = NOW, **fields: Any) -> Manifest:
    """The status of a job that has been acknowledged."""
    return {"conditions": [condition("Created", at=at), *more], "startTime": rfc3339(at)} | fields


def finished(
    type_: str = "Succeeded", reason: str = "", at: float = NOW, **fields: Any
) -> Manifest:
    return started(condition(type_, reason=reason), at=at, completionTime=rfc3339(at)) | fields
