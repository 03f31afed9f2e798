"""How the members find each other: one headless Service, a hostfile, and who runs just now."""

from __future__ import annotations

from collections.abc import Iterable

from posse.controllers.jobs.labels import job_labels
from posse.controllers.runtime import Manifest
from posse.objects.jobs.mpi.spec import OPEN_MPI, OPERATOR, Job

HOSTFILE = "hostfile"
DISCOVER_HOSTS = "discover_hosts.sh"


def service(job: Job) -> Manifest:
    """It gives every pod a name; a launcher that works too must find itself before it is ready."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": job.owned_metadata(job.name, _labels(job)),
        "spec": {
            "clusterIP": "None",
            "selector": job_labels(OPERATOR, job.name),
            "publishNotReadyAddresses": job.launcher_as_worker,
        },
    }


def config_map(job: Job, running: Iterable[str], cluster_domain: str) -> Manifest:
    """`running`: the names of the workers that run, by index."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": job.owned_metadata(job.config_name, _labels(job)),
        "data": {
            HOSTFILE: hostfile(job, cluster_domain),
            DISCOVER_HOSTS: discover_hosts(job, running, cluster_domain),
        },
    }


def hostfile(job: Job, cluster_domain: str) -> str:
    names = [job.launcher_name] if job.launcher_as_worker else []
    names += [job.worker_name(index) for index in range(job.workers)]
    slots = f" slots={job.slots}" if job.implementation == OPEN_MPI else f":{job.slots}"
    return "".join(f"{_host(job, name, cluster_domain)}{slots}\n" for name in names)


def discover_hosts(job: Job, running: Iterable[str], cluster_domain: str) -> str:
    """The script that elastic training asks, again and again, who is there."""
    names = [job.launcher_name] if job.launcher_as_worker else []
    names += running
    return "#!/bin/sh\n" + "".join(f"echo {_host(job, name, cluster_domain)}\n" for name in names)


def search_domain(job: Job, cluster_domain: str) -> str:
    """Lets a worker call the launcher by its bare host name, as Hydra does."""
    return f"{job.name}.{job.namespace}.svc.{cluster_domain or 'cluster.local'}"


def _host(job: Job, name: str, cluster_domain: str) -> str:
    host = f"{name}.{job.name}.{job.namespace}.svc"
    return f"{host}.{cluster_domain}" if cluster_domain else host


def _labels(job: Job) -> dict[str, str]:
    return {"app": job.name} | job_labels(OPERATOR, job.name)
