"""The pods of an MPIJob: the user's templates with what MPI needs added to them.

Whatever else a template says passes through untouched. Additions come last, so that of two
environment variables of one name ours counts.
"""

from __future__ import annotations

from typing import Any

from posse.controllers.jobs.grouping import GangSettings, Mark, marks
from posse.controllers.jobs.labels import job_labels, member_labels
from posse.controllers.mpi import hosts, ssh
from posse.controllers.runtime import Manifest
from posse.objects.jobs.mpi.spec import INTEL, LAUNCHER, MPICH, OPEN_MPI, OPERATOR, WORKER, Job
from posse.objects.trainingjobs import ReplicaSpec

CONFIG_VOLUME = "mpi-job-config"
CONFIG_PATH = "/etc/mpi"

_HOSTFILE_PATH = f"{CONFIG_PATH}/{hosts.HOSTFILE}"
_PATIENT_SSH = "-o ConnectionAttempts=10"

# The launcher only starts others: without this a container runtime may show it every GPU.
_NO_GPUS = (("NVIDIA_VISIBLE_DEVICES", ""), ("NVIDIA_DRIVER_CAPABILITIES", ""))

_BEING_MOVED_IS_NOT_FAILING = {
    "action": "Ignore",
    "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
}

# The launcher's Job must outlive our reading of how it ended.
_SHORTEST_LAUNCHER_TTL = 60


def worker_pod(
    job: Job, index: int, mark: Mark | None, gang: GangSettings, cluster_domain: str
) -> Manifest:
    worker = _present(job.worker)
    name = job.worker_name(index)
    # Where the launcher works too it is number 0.
    number = index + 1 if job.launcher_as_worker else index
    template = marks(worker.template, WORKER, mark, gang)
    spec = _member_spec(job, template["spec"], name, worker.restart_policy)
    dns = dict(spec.get("dnsConfig") or {})
    dns["searches"] = [*(dns.get("searches") or []), hosts.search_domain(job, cluster_domain)]
    spec["dnsConfig"] = dns
    main = _main_container(spec)
    if not main.get("command") and not main.get("args"):
        main["command"] = ["/usr/sbin/sshd", "-De"]
    _add_environment(main, (("K_MPI_JOB_ROLE", WORKER),))
    _mount(spec, main, ssh.volume(job), job.ssh_path)
    labels = member_labels(OPERATOR, job.name, WORKER, number, role=WORKER)
    given = template["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": job.owned_metadata(name, dict(given.get("labels") or {}) | labels)
        | {"annotations": given["annotations"]},
        "spec": spec,
    }


def launcher_job(
    job: Job, mark: Mark | None, gang: GangSettings, *, suspended: bool = False
) -> Manifest:
    spec: Manifest = {"template": _launcher_template(job, mark, gang)}
    if job.run.backoff_limit is not None:
        spec["backoffLimit"] = job.run.backoff_limit
    if job.run.active_deadline_seconds is not None:
        spec["activeDeadlineSeconds"] = job.run.active_deadline_seconds
    if job.run.ttl_seconds_after_finished is not None:
        ttl = max(job.run.ttl_seconds_after_finished, _SHORTEST_LAUNCHER_TTL)
        spec["ttlSecondsAfterFinished"] = ttl
    # A launcher that is still ending must not meet its successor on the same workers.
    spec["podReplacementPolicy"] = "Failed"
    if spec["template"]["spec"]["restartPolicy"] == "Never":
        # The API takes it for no other: there, a launcher that is moved counts as one failure.
        spec["podFailurePolicy"] = {"rules": [_BEING_MOVED_IS_NOT_FAILING]}
    if suspended:
        spec["suspend"] = True
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": job.owned_metadata(
            job.launcher_name, {"app": job.name} | job_labels(OPERATOR, job.name)
        ),
        "spec": spec,
    }


def placed_alike(present: Manifest, desired: Manifest) -> bool:
    """Whether two launcher Jobs would have their pods placed in the same way."""
    old, new = (_where_and_how(job["spec"].get("template") or {}) for job in (present, desired))
    return old[0] == new[0] and all(
        found.get(key) == value
        for found, wanted in zip(old[1], new[1], strict=True)
        for key, value in wanted.items()
    )


def _where_and_how(template: Manifest) -> tuple[list[Any], list[Manifest]]:
    """What must be equal, and what must be there: the API adds labels of its own."""
    spec, metadata = template.get("spec") or {}, template.get("metadata") or {}
    equal = [
        spec.get("nodeSelector") or {},
        spec.get("tolerations") or [],
        spec.get("schedulingGates") or [],
    ]
    return equal, [metadata.get("labels") or {}, metadata.get("annotations") or {}]


def _launcher_template(job: Job, mark: Mark | None, gang: GangSettings) -> Manifest:
    launcher = _present(job.launcher)
    template = marks(launcher.template, LAUNCHER, mark, gang)
    spec = _member_spec(job, template["spec"], job.launcher_name, launcher.restart_policy)
    main = _main_container(spec)
    _add_environment(main, (("K_MPI_JOB_ROLE", LAUNCHER), *_implementation_environment(job)))
    if not job.launcher_as_worker:
        _add_environment(main, _NO_GPUS)
    _mount(spec, main, ssh.volume(job), job.ssh_path)
    _mount(spec, main, _config_volume(job), CONFIG_PATH)
    labels = member_labels(OPERATOR, job.name, LAUNCHER, 0, role=LAUNCHER)
    metadata = dict(template["metadata"])
    metadata["labels"] = dict(metadata.get("labels") or {}) | labels
    return template | {"metadata": metadata, "spec": spec}


def _present(spec: ReplicaSpec | None) -> ReplicaSpec:
    """Validation and the count of replicas say that it is there."""
    if spec is None:
        raise ValueError("the job has no such replicas")
    return spec


def _implementation_environment(job: Job) -> tuple[tuple[str, str], ...]:
    return {
        OPEN_MPI: (
            ("OMPI_MCA_orte_keep_fqdn_hostnames", "true"),
            ("OMPI_MCA_orte_default_hostfile", _HOSTFILE_PATH),
            ("OMPI_MCA_plm_rsh_args", _PATIENT_SSH),
            ("OMPI_MCA_orte_set_default_slots", str(job.slots)),
        ),
        INTEL: (
            ("I_MPI_HYDRA_HOST_FILE", _HOSTFILE_PATH),
            ("I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS", _PATIENT_SSH),
            ("I_MPI_PERHOST", str(job.slots)),
        ),
        MPICH: (
            ("HYDRA_HOST_FILE", _HOSTFILE_PATH),
            ("HYDRA_LAUNCH_EXTRA_ARGS", _PATIENT_SSH),
        ),
    }[job.implementation]


def _member_spec(job: Job, given: Manifest, hostname: str, restart_policy: str) -> Manifest:
    """The pod spec as a member of this job, its containers ready to be added to."""
    spec = given | {
        "hostname": hostname,
        "subdomain": job.name,
        "restartPolicy": restart_policy,
        "containers": [dict(container) for container in given["containers"]],
    }
    if spec.get("hostNetwork"):
        # The node's own resolver does not know the cluster's names.
        spec["dnsPolicy"] = "ClusterFirstWithHostNet"
    return spec


def _main_container(spec: Manifest) -> Manifest:
    container: Manifest = spec["containers"][0]
    return container


def _add_environment(container: Manifest, variables: tuple[tuple[str, str], ...]) -> None:
    added = [{"name": name, "value": value} for name, value in variables]
    container["env"] = [*(container.get("env") or []), *added]


def _mount(spec: Manifest, container: Manifest, volume: Manifest, path: str) -> None:
    mount: dict[str, Any] = {"name": volume["name"], "mountPath": path}
    spec["volumes"] = [*(spec.get("volumes") or []), volume]
    container["volumeMounts"] = [*(container.get("volumeMounts") or []), mount]


def _config_volume(job: Job) -> Manifest:
    return {
        "name": CONFIG_VOLUME,
        "configMap": {
            "name": job.config_name,
            "items": [
                {"key": hosts.HOSTFILE, "path": hosts.HOSTFILE, "mode": 0o444},
                {"key": hosts.DISCOVER_HOSTS, "path": hosts.DISCOVER_HOSTS, "mode": 0o555},
            ],
        },
    }
