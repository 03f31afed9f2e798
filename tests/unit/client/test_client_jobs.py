"""One status of a job out of its conditions and its pods."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from posse.client.jobs import read_job
from posse.client.trainers import MPI
from posse.objects.pods import Pod

CREATED = "2026-01-02T15:04:05Z"
NOW = 1767366245.0 + 50


def manifest(*conditions: str, workers: int = 2, **status: Any) -> dict[str, Any]:
    gpus = {"limits": {"nvidia.com/gpu": 2}}
    template = {"spec": {"containers": [{"name": "mpi", "resources": gpus}]}}
    return {
        "metadata": {"name": "j", "namespace": "default", "creationTimestamp": CREATED},
        "spec": {
            "mpiReplicaSpecs": {
                "Launcher": {"replicas": 1, "template": {"spec": {"containers": []}}},
                "Worker": {"replicas": workers, "template": template},
            }
        },
        "status": {"conditions": [{"type": c, "status": "True"} for c in conditions], **status},
    }


def pod(name: str, phase: str = "Running", node: str = "n1", gpus: int = 2) -> Pod:
    raw = {
        "metadata": {
            "name": name,
            "namespace": "default",
            "creationTimestamp": CREATED,
            "labels": {"training.kubeflow.org/replica-type": name.split("-")[1]},
        },
        "spec": {
            "nodeName": node,
            "containers": [{"name": "mpi", "resources": {"requests": {"nvidia.com/gpu": gpus}}}],
        },
        "status": {"phase": phase},
    }
    return msgspec.convert(raw, Pod)


@pytest.mark.parametrize(
    ("conditions", "phases", "status"),
    [
        ((), (), "PENDING"),
        (("Created",), ("Pending",), "PENDING"),
        (("Created", "Running"), ("Running", "Running"), "RUNNING"),
        (("Created", "Running"), ("Running", "Pending"), "PENDING"),
        (("Created", "Suspended"), (), "QUEUING"),
        (("Created", "Succeeded"), ("Succeeded",), "SUCCEEDED"),
        (("Created", "Running", "Failed"), ("Failed",), "FAILED"),
    ],
)
def test_the_status_of_a_job(
    conditions: tuple[str, ...], phases: tuple[str, ...], status: str
) -> None:
    pods = [pod(f"j-worker-{i}", phase) for i, phase in enumerate(phases)]
    assert read_job(MPI, manifest(*conditions), pods, NOW).status == status


def test_gpus_asked_are_counted_without_any_pod() -> None:
    job = read_job(MPI, manifest(workers=5), [], NOW)
    assert (job.requested_gpus, job.allocated_gpus) == (10, 0)


def test_gpus_taken_are_those_of_pods_with_a_node() -> None:
    pods = [pod("j-worker-0"), pod("j-worker-1", "Pending", node="")]
    job = read_job(MPI, manifest(), pods, NOW)
    assert job.allocated_gpus == 2
    assert [i.node for i in job.instances] == ["n1", "N/A"]


def test_the_launcher_is_the_chief_and_workers_count_naturally() -> None:
    names = ["j-worker-10", "j-worker-9", "j-launcher-x2k4p"]
    job = read_job(MPI, manifest(), [pod(name) for name in names], NOW)
    assert [i.name for i in job.instances] == ["j-launcher-x2k4p", "j-worker-9", "j-worker-10"]
    assert job.chief == "j-launcher-x2k4p"


def test_a_finished_job_stops_the_clock() -> None:
    finished = manifest("Succeeded", completionTime="2026-01-02T15:04:15Z")
    assert read_job(MPI, finished, [], NOW).duration == 10
