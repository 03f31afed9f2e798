"""TF_CONFIG: the whole cluster by role, and which place in it is this one's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from posse.controllers.jobs.replicas.declaring import Told
from posse.controllers.jobs.replicas.templates import port_of
from posse.objects.jobs.replicas.spec import Job, Replicas
from posse.objects.jobs.tf.versions import V1
from posse.objects.keys import NO_TF_CONFIG

TF_CONFIG = "TF_CONFIG"


def tf_config(job: Job, cluster_domain: str) -> Told:
    """Nothing for a program that is alone: it is to run as if on one machine.

    The cluster is the same for all, and written down once: it grows with every replica.
    """
    if job.total == 1 or str(job.annotations.get(NO_TF_CONFIG)).lower() == "true":
        return lambda replicas, index: {}
    members = {one.role: _addresses(job, one, cluster_domain) for one in job.replicas}
    if is_dynamic(job):
        return lambda replicas, index: _written(_sparse(members, replicas, index), replicas, index)
    if job.version != V1:
        members.pop("evaluator", None)
    cluster = msgspec.Raw(msgspec.json.encode(dict(sorted(members.items()))))
    return lambda replicas, index: _written(cluster, replicas, index, environment="cloud")


def is_dynamic(job: Job) -> bool:
    return job.spec.get("enableDynamicWorker") is True


def _sparse(members: Mapping[str, list[str]], replicas: Replicas, index: int) -> dict[str, Any]:
    """A worker that comes and goes knows itself and the parameter servers; these know no one."""
    match replicas.role:
        case "worker":
            own = {str(index): members["worker"][index]}
            return {"worker": own, "ps": members.get("ps", [])}
        case "ps":
            return {"worker": {}, "ps": [members["ps"][index]]}
        case _:
            return {"worker": {}, "ps": []}


def _written(cluster: Any, replicas: Replicas, index: int, **rest: str) -> dict[str, str]:
    task = {"type": replicas.role, "index": index}
    config = {"cluster": cluster, "task": task, **rest}
    return {TF_CONFIG: msgspec.json.encode(config).decode()}


def _addresses(job: Job, replicas: Replicas, cluster_domain: str) -> list[str]:
    domain = f"svc.{cluster_domain}" if cluster_domain else "svc"
    port = port_of(replicas, job.declared.container, job.declared.port)
    return [
        f"{job.member_name(replicas, index)}.{job.namespace}.{domain}:{port}"
        for index in range(replicas.count)
    ]
