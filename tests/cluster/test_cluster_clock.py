"""Somebody sets the wall clock by a day, in either direction: nothing stops, nothing is lost."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from posse.local.node.manifests import simulated_nodes
from posse.objects import keys, kinds
from posse.objects.nodes import Node
from posse.objects.pods import Pod
from posse.virtual.world import LoopClock
from posse.world import World
from tests.cluster.backends import VirtualRide
from tests.cluster.riding import mpi, pods_of, seated, training, wait_for_status

DAY = 86_400.0
JUMPS = pytest.mark.parametrize("jump", [DAY, -DAY], ids=["forwards", "backwards"])
pytestmark = pytest.mark.looptime


class SetClock(LoopClock):
    """A clock that people set; its monotonic side does not notice."""

    offset = 0.0

    def now(self) -> float:
        return super().now() + self.offset


@asynccontextmanager
async def ticking(nodes: int = 2, gpus: int = 2) -> AsyncIterator[tuple[VirtualRide, SetClock]]:
    clock = SetClock(asyncio.get_running_loop())
    world = World(clock, random.Random(0))
    cluster = VirtualRide(world, simulated_nodes(nodes, gpus=gpus))
    async with cluster:
        await cluster.until(lambda: _ready(cluster, nodes), "every node is Ready")
        yield cluster, clock


async def _ready(cluster: VirtualRide, count: int) -> bool:
    listed = await cluster.connection.list(kinds.NODE, model=Node)
    return sum(node.ready for node in listed.items) == count


async def _attempts(cluster: VirtualRide, name: str) -> int:
    pod = await cluster.connection.get(kinds.POD, name, "default", model=Pod)
    return sum(status.restart_count for status in pod.status.container_statuses)


@JUMPS
async def test_what_runs_keeps_running_and_what_comes_is_placed(jump: float) -> None:
    async with ticking() as (cluster, clock):
        await training(cluster).submit(mpi("before", workers=1))
        await wait_for_status(cluster, "before", "RUNNING")
        uids = [pod.metadata.uid for pod in await pods_of(cluster, "before")]
        clock.offset += jump
        await asyncio.sleep(120)
        assert await _ready(cluster, 2)
        assert [pod.metadata.uid for pod in await pods_of(cluster, "before")] == uids
        await training(cluster).submit(mpi("after", workers=1))
        await wait_for_status(cluster, "after", "RUNNING")


@JUMPS
async def test_a_gang_that_waits_is_placed_when_there_is_room(jump: float) -> None:
    async with ticking() as (cluster, clock):
        await training(cluster).submit(mpi("first", workers=2))
        await wait_for_status(cluster, "first", "RUNNING")
        await training(cluster).submit(mpi("second", workers=2))
        await asyncio.sleep(5)
        assert await seated(cluster, "second") == 0
        clock.offset += jump
        await training(cluster).delete("first")
        await wait_for_status(cluster, "second", "RUNNING")


@JUMPS
async def test_a_leader_that_was_killed_is_followed_in_time(jump: float) -> None:
    async with ticking() as (cluster, clock):
        for service in ("scheduler", "controllers"):
            await cluster.stop(service)
        clock.offset += jump
        for service in ("scheduler", "controllers"):
            cluster.start(service)
        await training(cluster).submit(mpi("job", workers=1))
        await wait_for_status(cluster, "job", "RUNNING")


@JUMPS
async def test_a_container_that_crashes_is_started_again(jump: float) -> None:
    """Its backoff is minutes, not a day."""
    async with ticking() as (cluster, clock):
        pod = {
            "metadata": {
                "name": "crashing",
                "annotations": {keys.SIMULATED_DURATION: "1s", keys.SIMULATED_EXIT_CODE: "1"},
            },
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        }
        await cluster.connection.create(kinds.POD, pod, "default")
        await asyncio.sleep(60)
        before = await _attempts(cluster, "crashing")
        assert before > 0
        clock.offset += jump
        await asyncio.sleep(400)
        assert await _attempts(cluster, "crashing") > before


@JUMPS
async def test_a_failed_pod_of_a_job_is_replaced(jump: float) -> None:
    async with ticking() as (cluster, clock):
        fails = {keys.SIMULATED_DURATION: "1s", keys.SIMULATED_EXIT_CODE: "1"}
        template = {
            "metadata": {"annotations": fails},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]},
        }
        job = {"metadata": {"name": "job"}, "spec": {"backoffLimit": 20, "template": template}}
        await cluster.connection.create(kinds.JOB, job, "default")
        await asyncio.sleep(60)
        before = (await cluster.connection.get(kinds.JOB, "job", "default"))["status"]["failed"]
        clock.offset += jump
        await asyncio.sleep(700)
        after = (await cluster.connection.get(kinds.JOB, "job", "default"))["status"]["failed"]
        assert after > before
