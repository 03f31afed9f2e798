"""Preemption through every layer: who ends, who starts, and that being moved is not failing."""

from __future__ import annotations

import pytest

from posse.kube.errors import AlreadyExists
from posse.objects import keys, kinds
from tests.cluster.backends import Riding
from tests.cluster.manifests import pod, pod_group
from tests.cluster.riding import cluster, mpi, pods_of, seated, tf, training, wait_for_status

pytestmark = pytest.mark.looptime


async def priority_class(running: Riding, name: str, policy: str) -> None:
    try:
        await running.connection.create(
            kinds.PRIORITY_CLASS,
            {
                "apiVersion": kinds.PRIORITY_CLASS.api_version,
                "kind": kinds.PRIORITY_CLASS.kind,
                "metadata": {"name": name},
                "value": 1000,
                "preemptionPolicy": policy,
            },
        )
    except AlreadyExists:
        return  # of an earlier story on the same server


async def urgent(running: Riding) -> None:
    await priority_class(running, "urgent", "PreemptLowerPriority")


async def annotation(running: Riding, job: str, key: str) -> str | None:
    group = await running.connection.get(kinds.POD_GROUP, job, running.namespace)
    found: str | None = (group["metadata"].get("annotations") or {}).get(key)
    return found


@pytest.mark.parametrize("kind", [tf, mpi])
async def test_an_urgent_job_ends_another_which_comes_back_when_there_is_room(kind) -> None:  # type: ignore[no-untyped-def]
    async with cluster(4, gpus=2) as running:
        await urgent(running)
        await training(running).submit(kind("slow", workers=4))
        await wait_for_status(running, "slow", "RUNNING")
        await training(running).submit(kind("fast", workers=4, priority="urgent"))
        await wait_for_status(running, "fast", "RUNNING")

        async def gone() -> bool:
            """Also its launcher, on whose room nobody waits."""
            return await seated(running, "slow") == 0

        await running.until(gone, "all of the job that makes way has gone")
        assert await annotation(running, "slow", keys.EVICTIONS) == "1"
        assert await annotation(running, "fast", keys.KEEPS) is None

        async def waits() -> bool:
            return (await training(running).get("slow")).status == "PENDING"

        await running.until(waits, "the job that made way is pending, not failed")
        why = (await training(running).why("slow")).sentence
        assert why.startswith("slow waits: ")
        await training(running).delete("fast")
        await wait_for_status(running, "slow", "RUNNING")
        job = await training(running).get("slow")
        assert {instance.status for instance in job.instances} == {"Running"}


async def test_a_class_that_must_not_preempt_waits() -> None:
    async with cluster(4, gpus=2) as running:
        await priority_class(running, "meek", "Never")
        await training(running).submit(tf("slow", workers=4))
        await wait_for_status(running, "slow", "RUNNING")
        await training(running).submit(tf("fast", workers=4, priority="meek"))
        await running.linger(60)
        assert await seated(running, "slow") == 4
        assert await seated(running, "fast") == 0


async def test_nobody_ends_for_a_job_that_does_not_fit_even_then() -> None:
    async with cluster(4, gpus=2) as running:
        await urgent(running)
        await training(running).submit(tf("slow", workers=4))
        await wait_for_status(running, "slow", "RUNNING")
        before = [p.metadata.uid for p in await pods_of(running, "slow")]
        await training(running).submit(tf("fast", workers=5, priority="urgent"))
        await running.linger(60)
        assert [p.metadata.uid for p in await pods_of(running, "slow")] == before


async def test_spare_members_make_way_and_the_gang_runs_on() -> None:
    async with cluster(4, gpus=2) as running:
        await urgent(running)
        connection, namespace = running.connection, running.namespace
        await connection.create(kinds.POD_GROUP, pod_group("elastic", 2), namespace)
        for at in range(4):
            member = pod(f"elastic-{at}", "elastic", gpus=2, schedulerName="posse")
            await connection.create(kinds.POD, member, namespace)

        async def all_run() -> bool:
            pods = (await connection.list(kinds.POD, namespace)).items
            phases = [p["status"].get("phase") for p in pods]
            return phases == ["Running"] * 4

        await running.until(all_run, "all four run")
        await training(running).submit(tf("fast", workers=2, priority="urgent"))
        await wait_for_status(running, "fast", "RUNNING")
        left = [
            p["metadata"]["name"]
            for p in (await connection.list(kinds.POD, namespace)).items
            if p["metadata"]["name"].startswith("elastic")
        ]
        assert len(left) == 2
        group = await connection.get(kinds.POD_GROUP, "elastic", namespace)
        assert group["status"]["phase"] == "Running"
        assert keys.EVICTIONS not in (group["metadata"].get("annotations") or {})


async def need(running: Riding, budget: str, number: int) -> None:
    """The disruption controller works out what that allows."""
    kind, namespace = kinds.POD_DISRUPTION_BUDGET, running.namespace
    await running.connection.patch(kind, budget, {"spec": {"minAvailable": number}}, namespace)


async def test_a_budget_spares_a_gang_that_it_does_not_allow_to_end_whole() -> None:
    async with cluster(2, gpus=2) as running:
        await urgent(running)
        connection, namespace = running.connection, running.namespace
        await connection.create(kinds.POD_GROUP, pod_group("served", 2), namespace)
        for at in range(2):
            member = pod(f"served-{at}", "served", gpus=2, schedulerName="posse")
            member["metadata"]["labels"] = {"app": "served"}
            await connection.create(kinds.POD, member, namespace)
        budget = {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "served"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "served"}}},
        }
        await connection.create(kinds.POD_DISRUPTION_BUDGET, budget, namespace)

        async def both_run() -> bool:
            pods = (await connection.list(kinds.POD, namespace, labels="app=served")).items
            return [p["status"].get("phase") for p in pods] == ["Running"] * 2

        await running.until(both_run, "both run")
        await training(running).submit(tf("fast", workers=2, priority="urgent"))
        await running.linger(5)
        assert await both_run()
        await need(running, "served", 0)
        await wait_for_status(running, "fast", "RUNNING")
        group = await connection.get(kinds.POD_GROUP, "served", namespace)
        assert group["metadata"]["annotations"][keys.EVICTIONS] == "1"
