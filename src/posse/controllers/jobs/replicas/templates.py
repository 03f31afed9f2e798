"""The pods of a job and their services: the user's templates with what the job needs added.

Whatever else a template says passes through untouched. Additions come last, so that of two
environment variables of one name ours counts.
"""

from __future__ import annotations

from posse.controllers.jobs.grouping import GangSettings, Mark, marks
from posse.controllers.jobs.labels import member_labels
from posse.controllers.jobs.replicas.declaring import Told
from posse.controllers.runtime import Manifest
from posse.objects.jobs.replicas.declaring import Port
from posse.objects.jobs.replicas.spec import Job, Replicas


def pod(
    job: Job, replicas: Replicas, index: int, mark: Mark | None, gang: GangSettings, told: Told
) -> Manifest:
    declared = job.declared
    template = marks(replicas.template, replicas.role, mark, gang)
    given = template["spec"]
    spec = given | {
        "restartPolicy": _pods_own(replicas.restart_policy),
        "containers": [dict(container) for container in given["containers"]],
    }
    if spec.get("hostNetwork") and not spec.get("dnsPolicy"):
        # The node's own resolver does not know the cluster's names.
        spec["dnsPolicy"] = "ClusterFirstWithHostNet"
    main = _main_container(spec["containers"], declared.container)
    if not any(port.get("name") == declared.port.name for port in main.get("ports") or ()):
        added = {"name": declared.port.name, "containerPort": declared.port.number}
        main["ports"] = [*(main.get("ports") or []), added]
    if variables := told(replicas, index):
        added_env = [{"name": name, "value": value} for name, value in variables.items()]
        main["env"] = [*(main.get("env") or []), *added_env]
    role = "master" if job.is_chief(replicas, index) else ""
    labels = member_labels(declared.operator, job.name, replicas.role, index, role=role)
    metadata = template["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": job.owned_metadata(
            job.member_name(replicas, index), dict(metadata.get("labels") or {}) | labels
        )
        | {"annotations": metadata["annotations"]},
        "spec": spec,
    }


def service(job: Job, replicas: Replicas, index: int) -> Manifest:
    """It gives one pod its name; peers look for each other before anybody is ready."""
    declared = job.declared
    labels = member_labels(declared.operator, job.name, replicas.role, index)
    container = _main_container(replicas.template["spec"]["containers"], declared.container)
    ports = {
        str(port.get("name") or f"port-{port['containerPort']}"): port["containerPort"]
        for port in container.get("ports") or ()
        if isinstance(port.get("containerPort"), int)
    }
    ports.setdefault(declared.port.name, declared.port.number)
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": job.owned_metadata(job.member_name(replicas, index), labels),
        "spec": {
            "clusterIP": "None",
            "selector": labels,
            "publishNotReadyAddresses": True,
            "ports": [{"name": name, "port": number} for name, number in ports.items()],
        },
    }


def port_of(replicas: Replicas, container: str, default: Port) -> int:
    """The port on which the replicas of a role are called."""
    main = _main_container(replicas.template["spec"]["containers"], container)
    for port in main.get("ports") or ():
        if port.get("name") == default.name and isinstance(port.get("containerPort"), int):
            return int(port["containerPort"])
    return default.number


def _main_container(containers: list[Manifest], name: str) -> Manifest:
    return next((one for one in containers if one.get("name") == name), containers[0])


def _pods_own(restart_policy: str) -> str:
    """A pod that is judged by its exit code must not be restarted in place."""
    return "Never" if restart_policy == "ExitCode" else restart_policy
