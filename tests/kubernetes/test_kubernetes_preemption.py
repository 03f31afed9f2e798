"""Preemption on a real API server, whose own budgets are asked before anybody ends."""

from __future__ import annotations

from posse.objects import keys, kinds
from tests.cluster.backends import Riding
from tests.cluster.manifests import pod, pod_group
from tests.cluster.riding import cluster, training, wait_for_status
from tests.cluster.riding import tf as tf_job
from tests.cluster.test_cluster_preemption import *  # noqa: F403 - its tests are run here once more
from tests.cluster.test_cluster_preemption import urgent

del pytestmark  # noqa: F821 - time is real here


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
        await training(running).submit(tf_job("fast", workers=2, priority="urgent"))
        await running.linger(5)
        assert await both_run()
        await need(running, "served", 0)
        await wait_for_status(running, "fast", "RUNNING")
        group = await connection.get(kinds.POD_GROUP, "served", namespace)
        assert group["metadata"]["annotations"][keys.EVICTIONS] == "1"
