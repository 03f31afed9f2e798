"""MPIJob as Arena's users ask for it: one launcher, N workers, one gang."""

from __future__ import annotations

from typing import Any

from posse.client.errors import PosseError
from posse.client.submitting.template import JobRequest, check, config_map, pod_template
from posse.client.submitting.tensorboard import tensorboard
from posse.objects import keys
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
        if scheduling := self._scheduling():
            policy["schedulingPolicy"] = scheduling
        return {
            "apiVersion": MPI_JOB.api_version,
            "kind": MPI_JOB.kind,
            "metadata": {
                "name": self.name,
                "labels": {"app": "mpijob", "release": self.name, **self.labels},
                "annotations": {
                    **self.annotations,
                    **({keys.GANG: "false"} if self.gang is False else {}),
                },
            },
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
        files = config_map(self)
        return [*([files] if files else []), *(tensorboard(self) if self.tensorboard else [])]

    def _scheduling(self) -> dict[str, Any]:
        scheduling: dict[str, Any] = {}
        if self.queue:
            scheduling["queue"] = self.queue
        if self.priority:
            scheduling["priorityClass"] = self.priority
        return scheduling
