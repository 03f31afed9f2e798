"""TFJobs and their parts, short enough for a table."""

from __future__ import annotations

from typing import Any

from posse.controllers.jobs.actions import Create, Decision
from posse.controllers.jobs.replicas.deciding import decide
from posse.controllers.jobs.replicas.observing import Observed
from posse.controllers.jobs.settings import Settings
from posse.controllers.runtime import Manifest, owner_reference
from posse.controllers.tf.kind import TFJOB
from posse.objects.kinds import TF_JOB
from posse.objects.times import rfc3339
from tests.unit.controllers.builders import NOW
from tests.unit.controllers.builders import member as as_member

SETTINGS = Settings()


def template(**fields: Any) -> Manifest:
    container = {"name": "tensorflow", "image": "train"} | fields.pop("container", {})
    metadata = fields.pop("metadata", None)
    made: Manifest = {"spec": {"containers": [container]} | fields}
    return made | ({"metadata": metadata} if metadata else {})


def replicas(count: int | None = 1, policy: str = "", **fields: Any) -> Manifest:
    made: Manifest = {"template": fields.pop("template", None) or template(**fields)}
    if count is not None:
        made["replicas"] = count
    if policy:
        made["restartPolicy"] = policy
    return made


def tf_job(
    roles: dict[str, Manifest] | None = None,
    *,
    run: Manifest | None = None,
    status: Manifest | None = None,
    metadata: Manifest | None = None,
    **spec: Any,
) -> Manifest:
    """One parameter server and two workers, unless told otherwise."""
    if roles is None:
        roles = {"PS": replicas(1), "Worker": replicas(2)}
    body: Manifest = {"tfReplicaSpecs": roles} | spec
    if run is not None:
        body["runPolicy"] = run
    job: Manifest = {
        "apiVersion": TF_JOB.api_version,
        "kind": TF_JOB.kind,
        "metadata": {"name": "train", "namespace": "ns", "uid": "job-1", "resourceVersion": "5"}
        | (metadata or {}),
        "spec": body,
    }
    return job | ({"status": status} if status is not None else {})


def owned(name: str, *, uid: str = "job-1", **fields: Any) -> Manifest:
    """An object of the job `train`, or of an earlier one by that name (another `uid`)."""
    owner = {"metadata": {"name": "train", "uid": uid}}
    metadata = {
        "name": name,
        "namespace": "ns",
        "uid": f"uid-{name}",
        "ownerReferences": [owner_reference(TF_JOB, owner)],
    }
    return {"metadata": metadata | fields.pop("metadata", {})} | fields


def pod(
    member: str,
    phase: str = "Running",
    *,
    code: int | None = None,
    restarts: int = 0,
    reason: str = "",
    disrupted: str = "",
    **fields: Any,
) -> Manifest:
    """`member`: "worker-0". `code`: the exit code of its container."""
    container: Manifest = {"name": "tensorflow", "restartCount": restarts, "state": {}}
    if code is not None:
        container["state"] = {"terminated": {"exitCode": code}}
    status: Manifest = {"phase": phase, "containerStatuses": [container]}
    if reason:
        status["reason"] = reason
    if disrupted:
        target = {"type": "DisruptionTarget", "status": "True", "reason": disrupted}
        status["conditions"] = [target]
    return as_member(owned(f"train-{member}", status=status, **fields))


def observed(job: Manifest, *pods: Manifest, now: float = NOW, **seen: Any) -> Observed:
    """With a service for each pod, unless told which there are."""
    names = [one["metadata"]["name"] for one in pods]
    services = seen.pop("services", None)
    if services is None:
        services = [owned(name) for name in names]
    return Observed(
        job=job,
        now=now,
        pods=dict(zip(names, pods, strict=True)),
        services={one["metadata"]["name"]: one for one in services},
        **seen,
    )


def decision(seen: Observed, settings: Settings = SETTINGS) -> Decision:
    return decide(TFJOB, seen, settings)


def group(min_member: int = 3, **fields: Any) -> Manifest:
    return owned("train", spec={"minMember": min_member} | fields.pop("spec", {}), **fields)


def deeds(decided: Decision, *, services: bool = False) -> list[str]:
    """The decision as a person reads it; services do as their pods do, and are left out."""
    told = []
    for action in decided.actions:
        if action.kind.kind == "Service" and not services:
            continue
        obj: Any = action.manifest if isinstance(action, Create) else action.present  # type: ignore[union-attr]
        verb = type(action).__name__.lower()
        told.append(f"{verb} {action.kind.kind} {obj['metadata']['name']}")
    return told


def states(decided: Decision) -> dict[str, str]:
    found = (decided.status or {}).get("conditions", [])
    return {item["type"]: f"{item['status']} {item['reason']}" for item in found}


def made(decided: Decision, kind: str, name: str) -> Manifest:
    for action in decided.actions:
        manifest = getattr(action, "manifest", None)
        if manifest and action.kind.kind == kind and manifest["metadata"]["name"] == name:
            return dict(manifest)
    raise AssertionError(f"no {kind} {name}")


def condition(type_: str, status: str = "True", reason: str = "", at: float = NOW) -> Manifest:
    stamp = rfc3339(at)
    return {
        "type": type_,
        "status": status,
        "reason": reason or f"TFJob{type_}",
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
