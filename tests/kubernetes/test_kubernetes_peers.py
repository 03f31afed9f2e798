"""Other people's operators run their own jobs under Posse's scheduler, on our definitions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from posse.kube.errors import NotFound
from posse.local.node.manifests import simulated
from posse.objects import kinds
from posse.objects.groups import PodGroup
from posse.objects.kinds import Kind
from posse.objects.pods import Pod
from tests.kubernetes.peers import jobs
from tests.kubernetes.peers.jobs import Manifest
from tests.kubernetes.peers.operators import Operators
from tests.kubernetes.riding import RealBackend, RealRide

pytestmark = pytest.mark.process

TRAINING: dict[str, tuple[Kind, Callable[..., Manifest]]] = {
    "TFJob": (kinds.TF_JOB, jobs.tf_job),
    "PyTorchJob": (jobs.PYTORCH_JOB, jobs.pytorch_job),
    "MPIJob": (jobs.FIRST_MPI_JOB, jobs.first_mpi_job),
}


@asynccontextmanager
async def cluster(operators: Operators, nodes: int, gpus: int) -> AsyncIterator[RealRide]:
    """Simulated nodes and our scheduler, without our controllers."""
    capacity = {"nvidia.com/gpu": str(gpus), "ephemeral-storage": "100Gi"}
    made = [
        simulated({"metadata": {"name": f"node-{index}"}, "status": {"capacity": capacity}})
        for index in range(nodes)
    ]
    async with RealBackend(operators.plane, ("node", "scheduler")).riding(made) as running:
        yield running


async def conditions(running: RealRide, kind: Kind, name: str) -> dict[str, str]:
    found = await running.connection.get(kind, name, running.namespace)
    items = (found.get("status") or {}).get("conditions") or []
    return {item["type"]: item["status"] for item in items}


async def succeeds(running: RealRide, kind: Kind, name: str) -> None:
    async def succeeded() -> bool:
        now = await conditions(running, kind, name)
        assert now.get("Failed") != "True", f"{name} has failed"
        return now.get("Succeeded") == "True"

    await running.until(succeeded, f"{kind.kind} {name} has succeeded")


async def pods(running: RealRide, name: str) -> list[Pod]:
    listed = await running.connection.list(kinds.POD, running.namespace, model=Pod)
    return [pod for pod in listed.items if pod.metadata.name.startswith(f"{name}-")]


async def seated(running: RealRide, name: str) -> int:
    return sum(1 for pod in await pods(running, name) if pod.spec.node_name)


async def verdict(running: RealRide, name: str) -> str:
    """Why the gang waits, as its PodGroup says it; "" while it says nothing."""
    listed = await running.connection.list(kinds.POD_GROUP, running.namespace, model=PodGroup)
    said = [
        condition.message
        for group in listed.items
        for condition in group.status.conditions
        if group.metadata.name.startswith(name)
        and (condition.type, condition.status) == ("Unschedulable", "True")
    ]
    return said[0] if said else ""


async def waits_whole(running: RealRide, name: str, members: int) -> None:
    """Every pod is there, none has a node, and the group says what is short."""

    async def waits() -> bool:
        there = len(await pods(running, name)) == members
        return there and "GPUs" in await verdict(running, name)

    await running.until(waits, f"{name} waits for GPUs")
    await running.linger(2)
    assert await seated(running, name) == 0


async def one_after_the_other(
    running: RealRide, kind: Kind, make: Callable[..., Manifest], beside: int = 0
) -> None:
    """A gang runs; one for which there is no room waits whole until there is, and succeeds.

    `beside`: the members that a job has beside its workers.
    """
    create = running.connection.create
    await create(kind, make("first", 2), running.namespace)
    await running.until(lambda: _are(running, "first", 2 + beside), "the first gang runs")
    await create(kind, make("second", 3, lasts="1s"), running.namespace)
    await waits_whole(running, "second", 3 + beside)
    assert {pod.spec.scheduler_name for pod in await pods(running, "second")} == {"volcano"}
    await running.connection.delete(kind, "first", running.namespace, propagation="Background")


async def _are(running: RealRide, name: str, count: int) -> bool:
    found = await pods(running, name)
    return [pod.status.phase for pod in found] == ["Running"] * count


@pytest.mark.parametrize("kind", TRAINING)
async def test_training_operator(operators: Operators, kind: str) -> None:
    api, make = TRAINING[kind]
    with operators.training_operator(kind):
        async with cluster(operators, nodes=2, gpus=2) as running:
            beside = 1 if kind == "MPIJob" else 0
            await one_after_the_other(running, api, make, beside)
            await succeeds(running, api, "second")


async def test_mpi_operator(operators: Operators) -> None:
    with operators.mpi_operator():
        async with cluster(operators, nodes=2, gpus=2) as running:
            await one_after_the_other(running, kinds.MPI_JOB, jobs.mpi_job, beside=1)
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
    """Its commands open and close queues; what Posse says of a group decides on its pods."""
    with operators.volcano_controllers():
        async with cluster(operators, nodes=2, gpus=2) as running, queue(running, "night") as night:
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
