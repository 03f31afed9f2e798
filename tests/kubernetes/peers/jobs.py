"""Jobs of the kinds that other people's operators run, for simulated nodes."""

from __future__ import annotations

from typing import Any

from posse.objects.keys import SIMULATED_DURATION, SIMULATED_EXIT_CODE
from posse.objects.kinds import MPI_JOB, TF_JOB, Kind

PYTORCH_JOB = Kind("kubeflow.org", "v1", "PyTorchJob", "pytorchjobs")
FIRST_MPI_JOB = Kind("kubeflow.org", "v1", "MPIJob", "mpijobs")
VOLCANO_JOB = Kind("batch.volcano.sh", "v1alpha1", "Job", "jobs")
COMMAND = Kind("bus.volcano.sh", "v1alpha1", "Command", "commands")

Manifest = dict[str, Any]


def template(container: str, *, gpus: int = 0, lasts: str = "", code: int = 0) -> Manifest:
    """`lasts`: how long its process runs, before it ends with `code`; for ever if not given."""
    notes = {}
    if lasts:
        notes = {SIMULATED_DURATION: lasts, SIMULATED_EXIT_CODE: str(code)}
    main: Manifest = {"name": container, "image": "train"}
    if gpus:
        main["resources"] = {"limits": {"nvidia.com/gpu": str(gpus)}}
    return {"metadata": {"annotations": notes}, "spec": {"containers": [main]}}


def replicas(count: int, made: Manifest) -> Manifest:
    return {"replicas": count, "restartPolicy": "Never", "template": made}


def tf_job(name: str, workers: int, *, lasts: str = "") -> Manifest:
    roles = {"Worker": replicas(workers, template("tensorflow", gpus=1, lasts=lasts))}
    return _job(TF_JOB, name, {"tfReplicaSpecs": roles, "successPolicy": "AllWorkers"})


def pytorch_job(name: str, workers: int, *, lasts: str = "") -> Manifest:
    """One of the workers is the master."""
    made = template("pytorch", gpus=1, lasts=lasts)
    roles = {"Master": replicas(1, made), "Worker": replicas(workers - 1, made)}
    return _job(PYTORCH_JOB, name, {"pytorchReplicaSpecs": roles})


def first_mpi_job(name: str, workers: int, *, lasts: str = "") -> Manifest:
    return _job(FIRST_MPI_JOB, name, {"mpiReplicaSpecs": _mpi_roles(workers, lasts)})


def mpi_job(name: str, workers: int, *, lasts: str = "", **spec: Any) -> Manifest:
    return _job(MPI_JOB, name, {"mpiReplicaSpecs": _mpi_roles(workers, lasts)} | spec)


def volcano_job(
    name: str, workers: int, *, lasts: str = "", code: int = 0, **spec: Any
) -> Manifest:
    made = template("train", gpus=1, lasts=lasts, code=code)
    made["spec"]["restartPolicy"] = "Never"
    task = {"name": "worker", "replicas": workers, "template": made}
    given = {"schedulerName": "volcano", "queue": "default", "minAvailable": workers}
    return _job(VOLCANO_JOB, name, given | {"tasks": [task]} | spec)


def _mpi_roles(workers: int, lasts: str) -> Manifest:
    """The launcher ends; its workers run until they are taken away."""
    return {
        "Launcher": replicas(1, template("mpi", lasts=lasts)),
        "Worker": replicas(workers, template("mpi", gpus=1)),
    }


def _job(kind: Kind, name: str, spec: Manifest) -> Manifest:
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": name},
        "spec": spec,
    }
