"""MPIJob as Arena's users ask for it: one launcher, N workers, one gang."""

from __future__ import annotations

from typing import Any

from posse.client.errors import PosseError
from posse.client.submitting.template import (
    JobRequest,
    check,
    job_metadata,
    pod_template,
    scheduling,
)
from posse.client.submitting.tensorboard import companions
from posse.objects.kinds import MPI_JOB

_CLEAN_POLICIES = {"all": "All", "running": "Running", "none": "None"}


class MPIJob(JobRequest, kw_only=True):
    """`MPIJob(name="resnet", image="...", workers=4, gpus=2, command="mpirun python train.py")`"""

    clean_task_policy: str = "All"

    def manifest(self) -> dict[str, Any]:
        check(self)
        clean = _CLEAN_POLICIES.get(self.clean_task_policy.lower())
        if clean is None:
            raise PosseError(
                f"--clean-task-policy must be All, Running or None, not {self.clean_task_policy!r}"
            )
        policy: dict[str, Any] = {"cleanPodPolicy": clean, "backoffLimit": self.retry}
        if placed := scheduling(self):
            policy["schedulingPolicy"] = placed
        return {
            "apiVersion": MPI_JOB.api_version,
            "kind": MPI_JOB.kind,
            "metadata": job_metadata(self, "mpijob"),
            "spec": {
                "slotsPerWorker": max(1, self.gpus),
                # The launcher appears when its workers are there; its seat is held from the start.
                "launcherCreationPolicy": "WaitForWorkersReady",
                "runPolicy": policy,
                "mpiReplicaSpecs": {
                    "Launcher": {
                        "replicas": 1,
                        "restartPolicy": "OnFailure" if self.retry else "Never",
                        "template": pod_template(self, "mpi", command=True, devices=False),
                    },
                    "Worker": {
                        "replicas": self.workers,
                        "restartPolicy": "Never",
                        "template": pod_template(self, "mpi", command=False, devices=True),
                    },
                },
            },
        }

    def companions(self) -> list[dict[str, Any]]:
        """What belongs to the job and goes with it."""
        return companions(self)
