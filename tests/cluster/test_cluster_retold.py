"""What broke other gang schedulers, told in words that any cluster understands.

Each story begins with the issues that it retells. The embedded API server plays them on virtual
time, a real one in real time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from posse.objects import keys, kinds
from posse.objects.pods import Pod
from tests.cluster.backends import Riding
from tests.cluster.manifests import pod as bare_pod
from tests.cluster.manifests import pod_group
from tests.cluster.riding import cluster, mpi, pods_of, seated, tf, training, wait_for_status

pytestmark = pytest.mark.looptime

A_MINUTE = 60.0


def pod(name: str, group: str, **like: Any) -> dict[str, Any]:
    return bare_pod(name, group, schedulerName="posse", terminationGracePeriodSeconds=0, **like)


async def create(running: Riding, *pods: dict[str, Any]) -> None:
    await asyncio.gather(
        *(running.connection.create(kinds.POD, p, running.namespace) for p in pods)
    )


async def make_group(running: Riding, name: str, least: int) -> None:
    made = pod_group(name, least, queue="default")
    await running.connection.create(kinds.POD_GROUP, made, running.namespace)


async def gang(running: Riding, name: str, size: int, **like: Any) -> None:
    """A PodGroup and its pods, made by hand: nobody makes them again."""
    await make_group(running, name, size)
    await create(running, *(pod(f"{name}-{at}", name, **like) for at in range(size)))


async def bound(running: Riding, name: str) -> int:
    listed = await running.connection.list(kinds.POD, running.namespace, model=Pod)
    found = [p for p in listed.items if p.metadata.name.rpartition("-")[0] == name]
    return sum(1 for p in found if p.spec.node_name)


async def wait_for_bound(running: Riding, name: str, count: int) -> None:
    async def holds() -> bool:
        return await bound(running, name) == count

    await running.until(holds, f"{count} pods of {name} are bound")


async def wait_for_word(running: Riding, name: str, word: str) -> None:
    """Until the group says why it waits, and this is part of it."""

    async def said() -> bool:
        found = await running.connection.get(kinds.POD_GROUP, name, running.namespace)
        conditions = (found.get("status") or {}).get("conditions") or []
        return any(word in c.get("message", "") for c in conditions if c["status"] == "True")

    await running.until(said, f"{name} says {word!r}")


async def delete_gang(running: Riding, name: str, size: int) -> None:
    await running.connection.delete(kinds.POD_GROUP, name, running.namespace)
    for at in range(size):
        await running.connection.delete(kinds.POD, f"{name}-{at}", running.namespace, grace=0)


@asynccontextmanager
async def priority(running: Riding, value: int) -> AsyncIterator[str]:
    """A class of this priority, for as long as the story lasts."""
    name = f"{running.namespace}-{value}"
    await running.connection.create(
        kinds.PRIORITY_CLASS, {"metadata": {"name": name}, "value": value}
    )
    try:
        yield name
    finally:
        await running.connection.delete(kinds.PRIORITY_CLASS, name)


# -- no partial gang ---------------------------------------------------------------------------


async def test_of_twenty_with_room_for_eight_none_starts() -> None:
    """volcano#2462"""
    async with cluster(4, gpus=2) as running:
        await gang(running, "g", 20, gpus=1)
        await wait_for_word(running, "g", "20 GPUs")
        await running.linger(A_MINUTE)
        assert await bound(running, "g") == 0


async def test_of_two_gangs_that_need_every_node_one_gets_them_all() -> None:
    """volcano#3373, koordinator#872"""
    async with cluster(8, gpus=1) as running:
        await asyncio.gather(gang(running, "a", 8, gpus=1), gang(running, "b", 8, gpus=1))

        async def one() -> bool:
            return sorted([await bound(running, "a"), await bound(running, "b")]) == [0, 8]

        await running.until(one, "one of them has every node")
        await running.linger(A_MINUTE)
        assert await one()
        first, second = ("a", "b") if await bound(running, "a") else ("b", "a")
        await delete_gang(running, first, 8)
        await wait_for_bound(running, second, 8)


async def test_a_minimum_raised_before_all_are_there() -> None:
    """volcano#6010"""
    async with cluster(4, gpus=2) as running:
        await make_group(running, "g", 2)
        await create(running, pod("g-0", "g"))
        await running.connection.patch(
            kinds.POD_GROUP, "g", {"spec": {"minMember": 3}}, running.namespace
        )
        await create(running, pod("g-1", "g"))
        await wait_for_word(running, "g", "2 of 3 pods")
        assert await bound(running, "g") == 0
        await create(running, pod("g-2", "g"))
        await wait_for_bound(running, "g", 3)


async def test_one_member_that_fits_nowhere_keeps_all_others_waiting() -> None:
    """scheduler-plugins#713, scheduler-plugins#114"""
    async with cluster(4, gpus=2) as running:
        await make_group(running, "g", 4)
        await create(running, *(pod(f"g-{at}", "g", gpus=1) for at in range(3)))
        await create(running, pod("g-3", "g", gpus=1, nodeSelector={"zone": "nowhere"}))
        await wait_for_word(running, "g", "zone=nowhere")
        await running.linger(A_MINUTE)
        assert await bound(running, "g") == 0


# -- no overcommit -----------------------------------------------------------------------------


async def test_a_restart_counts_what_is_there_before_it_decides() -> None:
    """volcano#5174, volcano#2821, kubernetes#45220, kubernetes#136782"""
    async with cluster(4, gpus=2) as running:
        await gang(running, "a", 6, gpus=1)
        await wait_for_bound(running, "a", 6)
        await running.stop("scheduler")
        await gang(running, "b", 4, gpus=1)
        await gang(running, "c", 2, gpus=1)
        running.start("scheduler")
        await wait_for_bound(running, "c", 2)
        await wait_for_word(running, "b", "4 GPUs")
        assert (await bound(running, "a"), await bound(running, "b")) == (6, 0)


async def test_pods_that_avoid_each_other_and_one_node() -> None:
    """volcano#3138"""
    term = {
        "labelSelector": {"matchLabels": {"app": "db"}},
        "topologyKey": "kubernetes.io/hostname",
    }
    rule = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    async with cluster(1, gpus=2) as running:
        two = [pod(f"g-{at}", "", affinity=rule) for at in range(2)]
        for made in two:
            made["metadata"]["labels"] = {"app": "db"}
        await create(running, *two)
        await wait_for_bound(running, "g", 1)
        await running.linger(A_MINUTE)
        assert await bound(running, "g") == 1


async def test_a_claim_that_does_not_exist() -> None:
    """volcano#1073"""
    async with cluster(1, gpus=2) as running:
        volume = {"name": "data", "persistentVolumeClaim": {"claimName": "missing"}}
        await create(running, pod("a-0", "", volumes=[volume]), pod("b-0", ""))
        await wait_for_bound(running, "b", 1)

        async def told() -> bool:
            found = await running.connection.get(kinds.POD, "a-0", running.namespace, model=Pod)
            return any("missing" in condition.message for condition in found.status.conditions)

        await running.until(told, "the pod names its claim")
        assert await bound(running, "a") == 0


# -- no starvation -----------------------------------------------------------------------------


async def test_a_running_gang_that_loses_a_pod_heals_before_others_are_served() -> None:
    """volcano#5805, volcano#5385: and its PodGroup is the one that it was"""
    async with cluster(4, gpus=2) as running:
        await training(running).submit(tf("first", workers=4))
        await wait_for_status(running, "first", "RUNNING")
        before = await running.connection.get(kinds.POD_GROUP, "first", running.namespace)
        await gang(running, "thief", 1, gpus=2)
        lost = (await pods_of(running, "first"))[1]
        await running.connection.delete(kinds.POD, lost.metadata.name, running.namespace, grace=0)

        async def healed() -> bool:
            uids = [p.metadata.uid for p in await pods_of(running, "first") if p.spec.node_name]
            return len(uids) == 4 and lost.metadata.uid not in uids

        await running.until(healed, "four workers have their nodes again")
        await running.linger(A_MINUTE)
        assert await bound(running, "thief") == 0
        after = await running.connection.get(kinds.POD_GROUP, "first", running.namespace)
        assert after["metadata"]["uid"] == before["metadata"]["uid"]


# -- others end only where that places somebody ------------------------------------------------


async def test_others_end_only_where_that_places_somebody_and_no_more_than_it_takes() -> None:
    """volcano#5011, volcano#4926, volcano#5984, volcano#2685"""
    async with cluster(4, gpus=2) as running, priority(running, 1000) as urgent:
        names = [f"low{at}" for at in range(4)]
        for name in names:
            await training(running).submit(tf(name, workers=1))
        for name in names:
            await wait_for_status(running, name, "RUNNING")
        await gang(running, "wide", 5, gpus=2, priorityClassName=urgent)
        await wait_for_word(running, "wide", "10 GPUs")
        await running.linger(A_MINUTE)
        assert sum([await seated(running, name) for name in names]) == 4, "nobody ended for it"
        await gang(running, "one", 1, gpus=2, priorityClassName=urgent)
        await wait_for_bound(running, "one", 1)
        await running.linger(A_MINUTE)
        left = [await seated(running, name) for name in names]
        assert sorted(left) == [0, 1, 1, 1]
        ended = names[left.index(0)]
        group = await running.connection.get(kinds.POD_GROUP, ended, running.namespace)
        assert group["status"]["phase"] != "Running"


# -- once, and by one --------------------------------------------------------------------------


async def test_a_job_deleted_and_applied_again_at_once() -> None:
    """training-operator#1306, volcano#2284"""
    async with cluster(4, gpus=2) as running:
        for workers in (4, 2, 4):
            await training(running).submit(mpi("j", workers=workers))
            await running.until(lambda: _any_pods(running, "j"), "it has pods")
            await training(running).delete("j")
        await training(running).submit(mpi("j", workers=4))
        await wait_for_status(running, "j", "RUNNING")
        assert len(await pods_of(running, "j")) == 5


async def _any_pods(running: Riding, job: str) -> bool:
    return bool(await pods_of(running, job))


async def test_finished_work_when_the_scheduler_restarts() -> None:
    """kueue#8186"""
    async with cluster(2, gpus=2) as running:
        await gang(running, "g", 2, gpus=1, seconds=1)

        async def finished() -> bool:
            listed = await running.connection.list(kinds.POD, running.namespace, model=Pod)
            return [p.status.phase for p in listed.items] == ["Succeeded"] * 2

        await running.until(finished, "both have ended well")
        before = await running.connection.list(kinds.POD, running.namespace)
        await running.stop("scheduler")
        running.start("scheduler")
        await gang(running, "next", 2, gpus=1)
        await wait_for_bound(running, "next", 2)
        after = await running.connection.list(kinds.POD, running.namespace, model=Pod)
        old = [p.metadata.uid for p in after.items if p.metadata.name.startswith("g-")]
        assert old == [p["metadata"]["uid"] for p in before.items]


# -- nodes and inputs --------------------------------------------------------------------------


async def test_a_node_that_is_shut_and_opened_again() -> None:
    """volcano#1492"""
    async with cluster(2, gpus=2) as running:
        await running.connection.patch(kinds.NODE, "node-1", {"spec": {"unschedulable": True}})
        await gang(running, "g", 2, gpus=2)
        await wait_for_word(running, "g", "cordoned")
        assert await bound(running, "g") == 0
        await running.connection.patch(kinds.NODE, "node-1", {"spec": {"unschedulable": None}})
        await wait_for_bound(running, "g", 2)


async def test_one_malformed_annotation_stops_nobody() -> None:
    """CVE-2026-40886: it is set aside, and an event tells of it"""
    async with cluster(2, gpus=2) as running:
        made = pod_group("bad", 1, {keys.EXPECTS: "{"}, queue="default")
        await running.connection.create(kinds.POD_GROUP, made, running.namespace)
        await create(running, pod("bad-0", "bad"))
        await gang(running, "good", 2, gpus=2)
        await wait_for_bound(running, "good", 2)

        async def told() -> bool:
            events = (await running.connection.list(kinds.EVENT, running.namespace)).items
            return any(
                event["involvedObject"]["name"] == "bad" and keys.EXPECTS in event["message"]
                for event in events
            )

        await running.until(told, "an event names the annotation")
        assert await bound(running, "bad") == 0
