"""A job kind goes from an upstream operator to Posse and back, under jobs that run.

No pod is made anew or touched: whoever takes over finds what is there, and goes on from it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

import pytest

from posse.objects import kinds
from posse.objects.keys import SIMULATED_DURATION
from posse.objects.kinds import Kind
from tests.kubernetes.peers import jobs
from tests.kubernetes.peers.jobs import Manifest
from tests.kubernetes.peers.operators import Operators
from tests.kubernetes.peers.stories import cluster, pods, run, succeeds, waits_whole
from tests.kubernetes.plane import SYSTEM
from tests.kubernetes.programs import Program
from tests.kubernetes.riding import RealRide

pytestmark = pytest.mark.process


@dataclass(frozen=True)
class Handed:
    """A kind, who has it today, and how that shows; `speaks`: the role whose end is the job's."""

    kind: Kind
    make: Callable[..., Manifest]
    upstream: Callable[[Operators], AbstractContextManager[Program]]
    alive: str
    members: int
    speaks: str


CASES = {
    "MPIJob": Handed(
        kinds.MPI_JOB,
        jobs.mpi_job,
        lambda operators: operators.mpi_operator(),
        "mpi-operator (mpi-operator/mpi-operator) and its lease mpi-operator/mpi-operator is being",
        members=3,
        speaks="launcher",
    ),
    "TFJob": Handed(
        kinds.TF_JOB,
        jobs.tf_job,
        lambda operators: operators.training_operator("TFJob"),
        "training-operator (kubeflow/training-operator) and its Deployment has 1 replica",
        members=2,
        speaks="worker",
    ),
}

Lives = dict[str, tuple[str, str | None, int]]


async def lives(running: RealRide, name: str) -> Lives:
    """Which pods there are, since when each runs, and how often its containers had to start."""
    return {
        pod.metadata.name: (
            pod.metadata.uid,
            pod.status.start_time,
            sum(status.restart_count for status in pod.status.container_statuses),
        )
        for pod in await pods(running, name)
    }


async def since(running: RealRide, kind: Kind, name: str) -> tuple[str, dict[str, str]]:
    """When the job was started, and since when each of its conditions is as it is."""
    status = (await running.connection.get(kind, name, running.namespace))["status"]
    told = {item["type"]: item["lastTransitionTime"] for item in status["conditions"]}
    return status["startTime"], told


async def ends(running: RealRide, name: str, role: str) -> None:
    """The processes of a role come to their end, as if by themselves."""
    await running.stop("node")
    soon = {"metadata": {"annotations": {SIMULATED_DURATION: "1s"}}}
    for pod in await pods(running, f"{name}-{role}"):
        await running.connection.patch(kinds.POD, pod.metadata.name, soon, running.namespace)
    running.start("node")


@pytest.mark.parametrize("case", CASES)
async def test_a_kind_is_handed_over_and_back(operators: Operators, case: str) -> None:
    handed = CASES[case]
    kind = handed.kind

    async with cluster(operators, nodes=4, gpus=2) as running:

        async def begins(name: str) -> None:
            made = handed.make(name, 2)
            await running.connection.create(kind, made, running.namespace)
            await run(running, name, handed.members)

        with handed.upstream(operators):
            await begins("ends-with-us")
            await begins("ends-with-them")
            large = handed.make("too-large", 9)
            await running.connection.create(kind, large, running.namespace)
            await waits_whole(running, "too-large", handed.members + 7)
            said = await operators.posse(f"install --take {case} --dry-run", code=1)
            assert handed.alive in said
            assert "nothing was changed" in said
        names = ("ends-with-us", "ends-with-them")
        waiting = await lives(running, "too-large")
        alive = {name: await lives(running, name) for name in names}
        told = {name: await since(running, kind, name) for name in names}

        said = await operators.posse(f"install --take {case} --dry-run")
        assert "takes it" in next(line for line in said.splitlines() if line.startswith(case))
        with operators.posse_controllers(case):
            await begins("made-by-us")
            assert await lives(running, "too-large") == waiting
            for name in names:
                assert await lives(running, name) == alive[name]
                assert await since(running, kind, name) == told[name]
            await ends(running, "ends-with-us", handed.speaks)
            await succeeds(running, kind, "ends-with-us")
        names = ("ends-with-them", "made-by-us")
        alive = {name: await lives(running, name) for name in names}
        told = {name: await since(running, kind, name) for name in names}

        with handed.upstream(operators):
            await begins("made-by-them")
            assert await lives(running, "too-large") == waiting
            for name in names:
                assert await lives(running, name) == alive[name]
                assert await since(running, kind, name) == told[name]
            for name in names:
                await ends(running, name, handed.speaks)
                await succeeds(running, kind, name)


def test_nothing_was_denied_to_posse(operators: Operators) -> None:
    """In what the tests above had it do, under the roles of an installation."""
    denied = [
        f"{entry['user']['username']} {entry['verb']} {entry['requestURI']}"
        for entry in operators.plane.audited()
        if entry["user"]["username"].startswith(f"system:serviceaccount:{SYSTEM}:")
        and (entry.get("annotations") or {}).get("authorization.k8s.io/decision") == "forbid"
    ]
    assert denied == []
