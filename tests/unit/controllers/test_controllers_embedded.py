"""The MPIJob controller on the embedded API server: its defaults, its checks, its watches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from posse.controllers.program import ControllersConfig, run
from posse.controllers.runtime import Manifest
from posse.kube.connection import Connection, Patch
from posse.kube.inprocess import AsgiTransport
from posse.kube.transport import Transport
from posse.local.apiserver.app import ApiServer
from posse.local.apiserver.journal import MemoryJournal
from posse.local.apiserver.store import Store
from posse.objects.crds import definitions
from posse.objects.kinds import (
    CONFIG_MAP,
    CUSTOM_RESOURCE_DEFINITION,
    JOB,
    MPI_JOB,
    NAMESPACE,
    POD,
    POD_GROUP,
    SECRET,
    SERVICE,
)
from tests.unit.controllers.builders import mpi_job, world

pytestmark = pytest.mark.looptime

MADE = (POD_GROUP, POD, JOB, SERVICE, CONFIG_MAP, SECRET)


def no_node(node: Manifest) -> Transport:
    raise RuntimeError("this cluster has no nodes")


@asynccontextmanager
async def cluster(crds: bool = True) -> AsyncIterator[Connection]:
    """An API server with the controllers at work; the connection is a user's."""
    chance = world()
    server = ApiServer(Store(MemoryJournal()), chance, {"token": "admin"}, no_node)
    headers = {"authorization": "Bearer token", "host": "localhost"}
    connection = Connection(AsgiTransport(server, headers), chance)
    await server.start()
    if crds:
        await establish(connection)
    await connection.create(NAMESPACE, {"metadata": {"name": "ns"}})
    program = asyncio.create_task(
        run(
            ControllersConfig(identity="me"),
            Connection(AsgiTransport(server, headers), chance),
            chance,
        )
    )
    try:
        yield connection
    finally:
        program.cancel()
        await asyncio.gather(program, return_exceptions=True)
        await connection.close()


async def establish(connection: Connection) -> None:
    for definition in definitions():
        await connection.create(CUSTOM_RESOURCE_DEFINITION, definition)


async def until(holds: Callable[[], Awaitable[bool]], within: float = 60.0) -> None:
    """On virtual time: to look again costs nothing."""
    for _ in range(int(within * 10)):
        if await holds():
            return
        await asyncio.sleep(0.1)
    raise TimeoutError(f"not within {within:g}s")


async def names(connection: Connection, kind: Any) -> list[str]:
    listing = await connection.list(kind, "ns")
    return sorted(item["metadata"]["name"] for item in listing.items)


async def states(connection: Connection) -> dict[str, str]:
    job = await connection.get(MPI_JOB, "train", "ns")
    return {c["type"]: c["status"] for c in (job.get("status") or {}).get("conditions", [])}


async def report(connection: Connection, name: str, **status: Any) -> None:
    await connection.patch(
        POD, name, {"status": status}, "ns", how=Patch.MERGE, subresource="status"
    )


async def submit(connection: Connection, **fields: Any) -> None:
    job = mpi_job(**fields)
    for server_made in ("uid", "resourceVersion"):
        del job["metadata"][server_made]
    await connection.create(MPI_JOB, job)


def complete(connection: Connection, *expected: int) -> Callable[[], Awaitable[bool]]:
    """Whether as many objects of each kind are there."""

    async def holds() -> bool:
        return tuple([len(await names(connection, kind)) for kind in MADE[:3]]) == expected

    return holds


async def test_the_server_accepts_every_object_of_a_job() -> None:
    async with cluster() as connection:
        await submit(connection)
        await until(complete(connection, 1, 2, 1))
        assert await names(connection, SERVICE) == ["train"]
        assert "train-config" in await names(connection, CONFIG_MAP)
        assert await names(connection, SECRET) == ["train-ssh"]
        pod = await connection.get(POD, "train-worker-0", "ns")
        assert pod["spec"]["schedulerName"] == "posse"
        assert pod["spec"]["containers"][0]["resources"]["requests"]["nvidia.com/gpu"] == "2"


async def test_the_servers_defaults_are_no_difference_to_be_mended() -> None:
    async with cluster() as connection:
        await submit(connection)
        await until(complete(connection, 1, 2, 1))
        await asyncio.sleep(5)
        before = [
            item["metadata"]["resourceVersion"]
            for kind in (*MADE, MPI_JOB)
            for item in (await connection.list(kind, "ns")).items
        ]
        await connection.patch(MPI_JOB, "train", {"metadata": {"labels": {"a": "b"}}}, "ns")
        await asyncio.sleep(5)
        after = [
            item["metadata"]["resourceVersion"]
            for kind in MADE
            for item in (await connection.list(kind, "ns")).items
        ]
        assert after == before[:-1]


async def test_the_launcher_follows_its_workers() -> None:
    async with cluster() as connection:
        await submit(connection, waits=True)
        await until(complete(connection, 1, 2, 0))
        ready = [{"type": "Ready", "status": "True"}]
        for index in range(2):
            await report(connection, f"train-worker-{index}", phase="Running", conditions=ready)
        await until(complete(connection, 1, 2, 1))
        group = await connection.get(POD_GROUP, "train", "ns")
        assert group["spec"]["minMember"] == 2
        assert "posse.dev/expects" in group["metadata"]["annotations"]


async def test_a_finished_job_is_tidied_up() -> None:
    async with cluster() as connection:
        await submit(connection, run={"cleanPodPolicy": "All"})
        await until(complete(connection, 1, 2, 1))
        job = await connection.get(JOB, "train-launcher", "ns")
        done = {
            "conditions": [
                {"type": type_, "status": "True"} for type_ in ("SuccessCriteriaMet", "Complete")
            ],
            "startTime": "2023-11-14T22:13:20Z",
            "completionTime": "2023-11-14T22:13:25Z",
            "succeeded": 1,
        }
        await connection.replace(JOB, job | {"status": done}, subresource="status")

        async def tidy() -> bool:
            return await names(connection, POD) == [] and await names(connection, POD_GROUP) == []

        await until(tidy)
        assert await states(connection) == {"Created": "True", "Succeeded": "True"}
        status = (await connection.get(MPI_JOB, "train", "ns"))["status"]
        assert status["completionTime"] == "2023-11-14T22:13:25Z"
        assert status["replicaStatuses"] == {"Launcher": {"succeeded": 1}, "Worker": {}}


async def test_suspending_and_resuming() -> None:
    async with cluster() as connection:
        await submit(connection)
        await until(complete(connection, 1, 2, 1))
        suspend = {"spec": {"runPolicy": {"suspend": True}}}
        await connection.patch(MPI_JOB, "train", suspend, "ns", how=Patch.MERGE)
        await until(complete(connection, 0, 0, 1))
        assert (await connection.get(JOB, "train-launcher", "ns"))["spec"]["suspend"] is True
        resume = {"spec": {"runPolicy": {"suspend": False}}}
        await connection.patch(MPI_JOB, "train", resume, "ns", how=Patch.MERGE)
        await until(complete(connection, 1, 2, 1))
        assert (await connection.get(JOB, "train-launcher", "ns"))["spec"]["suspend"] is False


async def test_a_kind_that_comes_later_is_waited_for() -> None:
    async with cluster(crds=False) as connection:
        await asyncio.sleep(30)
        await establish(connection)
        await submit(connection)
        await until(complete(connection, 1, 2, 1), within=120)
