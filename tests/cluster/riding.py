"""Builders and questions for stories about the whole system, whatever it runs on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from posse.client.submitting.mpi import MPIJob
from posse.client.submitting.tf import TFJob
from posse.client.training import Training
from posse.local.node.manifests import simulated_nodes
from posse.objects import keys, kinds
from posse.objects.pods import Pod
from tests.cluster import backends
from tests.cluster.backends import Backend, Riding


@asynccontextmanager
async def cluster(
    nodes: int = 4, *, gpus: int = 2, on: Backend | None = None, **capacity: Any
) -> AsyncIterator[Riding]:
    made = simulated_nodes(nodes, gpus=gpus, **capacity)
    async with (on or backends.chosen).riding(made) as running:
        await running.until(lambda: _all_ready(running, nodes), "every node is Ready")
        yield running


async def _all_ready(running: Riding, count: int) -> bool:
    listed = await running.connection.list(kinds.NODE)
    ready = [
        node
        for node in listed.items
        for condition in node["status"].get("conditions", ())
        if condition["type"] == "Ready" and condition["status"] == "True"
    ]
    return len(ready) == count


def mpi(name: str = "mpi", *, workers: int = 4, gpus: int = 2, **flags: Any) -> MPIJob:
    return MPIJob(
        name=name, image="horovod", workers=workers, gpus=gpus, command="mpirun train", **flags
    )


def tf(name: str = "tf", *, workers: int = 4, gpus: int = 2, **flags: Any) -> TFJob:
    return TFJob(
        name=name, image="tensorflow", workers=workers, gpus=gpus, command="train", **flags
    )


def training(running: Riding) -> Training:
    return Training(running.connection, running.namespace)


async def pods_of(running: Riding, job: str) -> list[Pod]:
    listed = await running.connection.list(
        kinds.POD, running.namespace, model=Pod, labels=f"{keys.JOB_NAME_LABEL}={job}"
    )
    return sorted(listed.items, key=lambda pod: pod.metadata.name)


async def seated(running: Riding, job: str) -> int:
    return sum(1 for pod in await pods_of(running, job) if pod.spec.node_name)


async def wait_for_status(running: Riding, job: str, status: str) -> None:
    async def holds() -> bool:
        return (await training(running).get(job)).status == status

    await running.until(holds, f"{job} is {status}")
