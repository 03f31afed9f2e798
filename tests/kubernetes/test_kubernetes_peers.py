"""Other people's operators run their own jobs under Posse's scheduler, on our definitions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from posse.kube.errors import NotFound
from posse.objects import kinds
from posse.objects.kinds import Kind
from tests.kubernetes.peers import jobs
from tests.kubernetes.peers.jobs import Manifest
from tests.kubernetes.peers.operators import Operators
from tests.kubernetes.peers.stories import cluster, pods, run, succeeds, verdict, waits_whole
from tests.kubernetes.riding import RealRide

pytestmark = pytest.mark.process

TRAINING: dict[str, tuple[Kind, Callable[..., Manifest]]] = {
    "TFJob": (kinds.TF_JOB, jobs.tf_job),
    "PyTorchJob": (jobs.PYTORCH_JOB, jobs.pytorch_job),
    "MPIJob": (jobs.FIRST_MPI_JOB, jobs.first_mpi_job),
}
# Kubeflow's operators make Volcano's groups for the scheduler `volcano`, and those of the
# scheduler-plugins for one of any other name.
DIALECTS = ("volcano", "posse")


async def one_after_the_other(
    running: RealRide,
    kind: Kind,
    make: Callable[..., Manifest],
    *,
    beside: int = 0,
    scheduler: str = "volcano",
) -> None:
    """A gang runs; one for which there is no room waits whole until there is.

    `beside`: the members that a job has beside its workers.
    """
    create = running.connection.create
    await create(kind, make("first", 2), running.namespace)
    await run(running, "first", 2 + beside)
    await create(kind, make("second", 3, lasts="1s"), running.namespace)
    await waits_whole(running, "second", 3 + beside)
    assert {pod.spec.scheduler_name for pod in await pods(running, "second")} == {scheduler}
    await running.connection.delete(kind, "first", running.namespace, propagation="Background")


@pytest.mark.parametrize("scheduler", DIALECTS)
@pytest.mark.parametrize("kind", TRAINING)
async def test_training_operator(operators: Operators, kind: str, scheduler: str) -> None:
    api, make = TRAINING[kind]
    beside = 1 if kind == "MPIJob" else 0
    with operators.training_operator(kind, scheduler=scheduler):
        async with cluster(operators, nodes=2, gpus=2) as running:
            await one_after_the_other(running, api, make, beside=beside, scheduler=scheduler)
            await succeeds(running, api, "second")


@pytest.mark.parametrize("scheduler", DIALECTS)
async def test_mpi_operator(operators: Operators, scheduler: str) -> None:
    with operators.mpi_operator(scheduler):
        async with cluster(operators, nodes=2, gpus=2) as running:
            await one_after_the_other(
                running, kinds.MPI_JOB, jobs.mpi_job, beside=1, scheduler=scheduler
            )
            await succeeds(running, kinds.MPI_JOB, "second")


async def phase(running: RealRide, name: str) -> str:
    try:
        found = await running.connection.get(jobs.VOLCANO_JOB, name, running.namespace)
    except NotFound:
        return ""
    return str(((found.get("status") or {}).get("state") or {}).get("phase") or "")


async def _is(running: RealRide, name: str, wanted: str) -> None:
    async def reached() -> bool:
        return await phase(running, name) == wanted

    await running.until(reached, f"{name} is {wanted}")


async def test_volcanos_controllers(operators: Operators) -> None:
    with operators.volcano_controllers():
        async with cluster(operators, nodes=2, gpus=2) as running:
            await one_after_the_other(running, jobs.VOLCANO_JOB, jobs.volcano_job)
            await _is(running, "second", "Completed")


async def test_volcanos_controllers_restart_a_job_that_fails(operators: Operators) -> None:
    with operators.volcano_controllers():
        async with cluster(operators, nodes=2, gpus=2) as running:
            policies = [{"event": "PodFailed", "action": "RestartJob"}]
            job = jobs.volcano_job("fails", 2, lasts="1s", code=1, policies=policies, maxRetry=2)
            await running.connection.create(jobs.VOLCANO_JOB, job, running.namespace)
            await _is(running, "fails", "Failed")
            found = await running.connection.get(jobs.VOLCANO_JOB, "fails", running.namespace)
            assert found["status"]["retryCount"] == 2


async def test_volcanos_controllers_make_no_pods_for_a_closed_queue(operators: Operators) -> None:
    """Its commands close and open a queue that Posse has called open; Posse holds back its groups,
    and so their pods are not made."""
    async with cluster(operators, nodes=2, gpus=2) as running, queue(running, "night") as night:
        await running.until(lambda: stands(running, "Open"), "the queue is open")
        with operators.volcano_controllers():
            await command(running, "CloseQueue", night)
            await running.until(lambda: stands(running, "Closed"), "the queue is closed")
            job = jobs.volcano_job("late", 2, lasts="1s", queue="night")
            await running.connection.create(jobs.VOLCANO_JOB, job, running.namespace)

            async def refused() -> bool:
                return "closed" in await verdict(running, "late")

            await running.until(refused, "the group says that its queue is closed")
            assert await pods(running, "late") == []
            await command(running, "OpenQueue", night)
            await _is(running, "late", "Completed")


@asynccontextmanager
async def queue(running: RealRide, name: str) -> AsyncIterator[Manifest]:
    made = {"metadata": {"name": name}, "spec": {"weight": 1}}
    yield await running.connection.create(kinds.QUEUE, made)
    await running.connection.delete(kinds.QUEUE, name)


async def stands(running: RealRide, state: str) -> bool:
    found = await running.connection.get(kinds.QUEUE, "night")
    return bool((found.get("status") or {}).get("state") == state)


async def command(running: RealRide, action: str, target: Manifest) -> None:
    about = {
        "apiVersion": kinds.QUEUE.api_version,
        "kind": kinds.QUEUE.kind,
        "name": target["metadata"]["name"],
        "uid": target["metadata"]["uid"],
        "controller": True,
    }
    made = {"metadata": {"name": action.lower()}, "action": action, "target": about}
    await running.connection.create(jobs.COMMAND, made, running.namespace)
