"""A running gang keeps its seats, in the whole system on virtual time: whatever it loses a member
to, and whoever else wants the room."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from posse.kube.errors import NotFound
from posse.objects import keys, kinds
from tests.cluster.backends import VirtualRide
from tests.cluster.manifests import NAMESPACE, pod
from tests.cluster.riding import mpi, pods_of, seated, tf, training, wait_for_status
from tests.cluster.test_cluster_incidents import bound, change_node, gang, wait_for_bound
from tests.cluster.witness import witnessed

pytestmark = pytest.mark.looptime(noop_cycles=0)


async def kept(running: VirtualRide, job: str) -> dict[str, list[str]]:
    group = await running.connection.get(kinds.POD_GROUP, job, NAMESPACE)
    text = (group["metadata"].get("annotations") or {}).get(keys.KEEPS)
    seats: dict[str, list[str]] = json.loads(text)["seats"] if text else {}
    return seats


async def wait_for_kept(
    running: VirtualRide, job: str, number: int, *, within: float = 120
) -> None:
    async def holds() -> bool:
        return sum(map(len, (await kept(running, job)).values())) == number

    await running.until(holds, f"{number} seats are kept for {job}", within=within)


async def wait_for_seat(
    running: VirtualRide, name: str, *, on: str = "", other_than: str = ""
) -> None:
    async def sits() -> bool:
        try:
            node = await node_of(running, name)
        except NotFound:
            return False
        return bool(node) and node != other_than and on in ("", node)

    await running.until(sits, f"{name} sits on {on or 'a node'}, not {other_than or 'nowhere'}")


async def node_of(running: VirtualRide, name: str) -> str:
    found: dict[str, Any] = await running.connection.get(kinds.POD, name, NAMESPACE)
    return str(found["spec"].get("nodeName", ""))


async def start(running: VirtualRide, workers: int = 4) -> None:
    await training(running).submit(mpi("first", workers=workers))
    await wait_for_status(running, "first", "RUNNING")


async def lose(running: VirtualRide, name: str) -> None:
    await running.connection.delete(kinds.POD, name, NAMESPACE, grace=0)


async def test_the_seat_of_a_member_that_died_waits_for_its_replacement() -> None:
    async with witnessed() as running:
        await start(running)
        await gang(running, "greedy", 1, gpus=2)
        was = await node_of(running, "first-worker-2")
        await running.kill("controllers")
        await lose(running, "first-worker-2")
        await wait_for_kept(running, "first", 1)
        await asyncio.sleep(60)
        assert await bound(running, "greedy") == 0
        running.start("controllers")
        await wait_for_seat(running, "first-worker-2", on=was)
        await wait_for_kept(running, "first", 0)
        assert await bound(running, "greedy") == 0


async def test_a_scheduler_that_dies_while_a_seat_is_kept_leaves_it_to_its_successor() -> None:
    async with witnessed() as running:
        await start(running)
        was = await node_of(running, "first-worker-2")
        await running.kill("controllers")
        await lose(running, "first-worker-2")
        await wait_for_kept(running, "first", 1)
        await running.kill("scheduler")
        await gang(running, "greedy", 1, gpus=2)
        running.start("scheduler")
        await asyncio.sleep(60)
        assert await bound(running, "greedy") == 0
        running.start("controllers")
        await wait_for_seat(running, "first-worker-2", on=was)
        assert await bound(running, "greedy") == 0


async def test_a_member_lost_while_no_scheduler_looked_finds_a_seat() -> None:
    async with witnessed() as running:
        await start(running)
        await asyncio.sleep(30)
        await running.kill("controllers")
        await running.kill("scheduler")
        await lose(running, "first-worker-2")
        await gang(running, "greedy", 1, gpus=2)
        running.start("scheduler")
        await wait_for_kept(running, "first", 1)
        assert await bound(running, "greedy") == 0
        running.start("controllers")
        await wait_for_seat(running, "first-worker-2")
        await wait_for_kept(running, "first", 0)
        assert await bound(running, "greedy") == 0


async def test_a_node_that_dies_under_a_gang_costs_it_no_place_in_the_line() -> None:
    async with witnessed(5, gpus=2, agents=5, lag=60.0) as running:
        await start(running)
        lost = await node_of(running, "first-worker-1")
        running.pause(lost)
        await wait_for_kept(running, "first", 1, within=600)
        await gang(running, "greedy", 1, gpus=2)
        await asyncio.sleep(60)
        assert await bound(running, "greedy") == 0, "the spare node is for the member that is lost"
        await running.connection.delete(kinds.NODE, lost)
        await wait_for_seat(running, "first-worker-1", other_than=lost)
        await wait_for_kept(running, "first", 0)
        assert await bound(running, "greedy") == 0


async def test_a_node_that_is_away_for_a_while_costs_its_gang_nothing() -> None:
    async with witnessed(4, gpus=2, agents=4, lag=60.0) as running:
        await start(running)
        uids = {p.metadata.uid for p in await pods_of(running, "first")}
        away = await node_of(running, "first-worker-1")
        running.pause(away)
        await gang(running, "greedy", 1, gpus=2)
        await asyncio.sleep(120)
        running.resume(away)
        await asyncio.sleep(600)
        assert {p.metadata.uid for p in await pods_of(running, "first")} == uids
        assert await bound(running, "greedy") == 0


async def test_a_drained_member_finds_its_seat_on_another_node() -> None:
    async with witnessed(5, gpus=2) as running:
        await start(running)
        lost = await node_of(running, "first-worker-2")
        await running.kill("controllers")
        await change_node(running, lost, {"unschedulable": True})
        found = await running.connection.get(kinds.POD, "first-worker-2", NAMESPACE)
        await running.connection.evict("first-worker-2", NAMESPACE, uid=found["metadata"]["uid"])
        await wait_for_kept(running, "first", 1)
        await gang(running, "greedy", 1, gpus=2)
        await asyncio.sleep(60)
        assert await bound(running, "greedy") == 0
        running.start("controllers")
        await wait_for_seat(running, "first-worker-2", other_than=lost)


async def test_a_member_that_its_node_turns_away_is_seated_elsewhere() -> None:
    """The replacement meets a pod on its node that the scheduler has not heard of."""
    async with witnessed(5, gpus=2, lag=60.0) as running:
        await start(running)
        was = await node_of(running, "first-worker-2")
        running.line("scheduler").silence("pods")
        foreign = pod("f", "", gpus=2, nodeName=was, schedulerName="somebody")
        await lose(running, "first-worker-2")
        await running.connection.create(kinds.POD, foreign, NAMESPACE)
        running.line("scheduler").listen()
        await wait_for_seat(running, "first-worker-2", other_than=was)
        await asyncio.sleep(60)
        await wait_for_status(running, "first", "RUNNING")


async def test_the_only_node_of_a_gang_dies_and_comes_back_to_it() -> None:
    """All its pods are evicted in time, and none can end before the node is back."""
    async with witnessed(1, gpus=4, agents=1, lag=60.0) as running:
        await start(running, workers=2)
        before = {p.metadata.uid for p in await pods_of(running, "first")}
        running.pause("node")

        async def all_go() -> bool:
            pods = await pods_of(running, "first")
            return all(p.metadata.deletion_timestamp for p in pods)

        await running.until(all_go, "all its pods are evicted", within=600)
        await gang(running, "greedy", 1, gpus=4)
        running.resume("node")

        async def runs_again() -> bool:
            pods = await pods_of(running, "first")
            fresh = [p for p in pods if p.metadata.uid not in before]
            return [p.status.phase for p in fresh] == ["Running"] * 3

        await running.until(runs_again, "all of it runs anew", within=300)
        assert await bound(running, "greedy") == 0
        await wait_for_kept(running, "first", 0)


async def test_a_gang_drained_from_its_only_node_finds_its_seats_on_another() -> None:
    """While its controllers are away, and the scheduler for a moment too."""
    async with witnessed(2, gpus=4) as running:
        await training(running).submit(tf("first", workers=2))
        await wait_for_status(running, "first", "RUNNING")
        lost = await node_of(running, "first-worker-0")
        await running.kill("controllers")
        await change_node(running, lost, {"unschedulable": True})
        for one in await pods_of(running, "first"):
            await running.connection.evict(one.metadata.name, NAMESPACE, uid=one.metadata.uid)
        await wait_for_kept(running, "first", 2)
        await asyncio.sleep(30)
        assert await pods_of(running, "first") == []
        await running.kill("scheduler")
        await gang(running, "greedy", 1, gpus=4)
        running.start("scheduler")
        await asyncio.sleep(60)
        assert await bound(running, "greedy") == 0
        running.start("controllers")
        await wait_for_seat(running, "first-worker-1", other_than=lost)
        await wait_for_kept(running, "first", 0)
        assert await bound(running, "greedy") == 0


async def test_a_job_that_ended_or_rests_keeps_no_seats() -> None:
    async with witnessed(1, gpus=4) as running:
        await start(running, workers=2)
        await gang(running, "greedy", 1, gpus=4)
        rest = {"spec": {"runPolicy": {"suspend": True}}}
        await running.connection.patch(kinds.MPI_JOB, "first", rest, NAMESPACE)
        await wait_for_bound(running, "greedy", 1)


async def test_a_seat_for_somebody_who_never_comes_back_is_given_away_in_the_end() -> None:
    async with witnessed() as running:
        await start(running)
        await gang(running, "greedy", 1, gpus=2)
        await running.kill("controllers")
        await lose(running, "first-worker-2")
        await asyncio.sleep(500)
        assert await bound(running, "greedy") == 0
        await wait_for_bound(running, "greedy", 1)
        running.start("controllers")
        await asyncio.sleep(60)
        assert await seated(running, "first") == 0, "it waits whole"


async def test_a_job_made_smaller_keeps_no_seats() -> None:
    async with witnessed() as running:
        await training(running).submit(tf("first", workers=4))
        await wait_for_status(running, "first", "RUNNING")
        await gang(running, "greedy", 1, gpus=2)
        fewer = {"spec": {"tfReplicaSpecs": {"Worker": {"replicas": 3}}}}
        await running.connection.patch(kinds.TF_JOB, "first", fewer, NAMESPACE)
        await wait_for_bound(running, "greedy", 1)
        assert await kept(running, "first") == {}


async def test_a_gang_that_does_not_come_to_run_is_let_go_and_says_so() -> None:
    async with witnessed(lag=60.0) as running:
        running.pause("node")
        job = mpi("first", workers=4).manifest()
        job["metadata"]["annotations"] = {keys.START_TIMEOUT: "20s"}
        await running.connection.create(kinds.MPI_JOB, job, NAMESPACE)

        async def told() -> bool:
            events = (await running.connection.list(kinds.EVENT, NAMESPACE)).items
            return any(
                "are not running 20s after they got their nodes" in e["message"] for e in events
            )

        await running.until(told, "it is told that it does not run", within=300)
        running.resume("node")
        await wait_for_status(running, "first", "RUNNING")
