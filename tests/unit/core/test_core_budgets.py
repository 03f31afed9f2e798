"""Disruption budgets: what is reckoned from pods and their controllers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from posse.kube.connection import Patch
from posse.kube.errors import TooManyRequests
from posse.objects.kinds import DEPLOYMENT, EVENT, JOB, POD, POD_DISRUPTION_BUDGET, REPLICA_SET
from tests.unit.node.embedded import Embedded, embedded, pod

pytestmark = pytest.mark.looptime

Manifest = dict[str, Any]
APP = {"app": "a"}


def budget(name: str = "b", **spec: Any) -> Manifest:
    spec = {"selector": {"matchLabels": APP}} | spec
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}


def workload(name: str = "w", replicas: int = 4) -> Manifest:
    container = {"name": "main", "image": "i"}
    template = {
        "metadata": {"labels": APP},
        "spec": {"containers": [container], "nodeName": "node-0"},
    }
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": APP}, "template": template},
    }


def job() -> Manifest:
    made = workload("j")
    template = made["spec"]["template"]
    template["spec"]["restartPolicy"] = "Never"
    return {**made, "spec": {"template": template}}


async def run_alone(cluster: Embedded, *names: str, **fields: Any) -> None:
    for name in names:
        made = pod(name, "node-0", **fields)
        made["metadata"]["labels"] = APP
        await cluster.connection.create(POD, made)


async def reckoned(cluster: Embedded, *counts: int, name: str = "b") -> Manifest:
    """The budget once it says so: allowed, healthy, desired, expected."""
    fields = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")

    async def holds() -> Manifest | None:
        found = await cluster.find(POD_DISRUPTION_BUDGET, name)
        assert found is not None
        status = found["status"]
        observed = status.get("observedGeneration") == found["metadata"]["generation"]
        return found if observed and counts == tuple(status[f] for f in fields) else None

    found: Manifest = await cluster.until(holds)
    return found


def condition(found: Manifest) -> tuple[str, str]:
    (only,) = found["status"]["conditions"]
    return only["status"], only["reason"]


async def evict(cluster: Embedded, name: str) -> None:
    found = await cluster.find(POD, name)
    assert found is not None
    await cluster.connection.evict(name, "default", uid=found["metadata"]["uid"])


async def test_a_number_is_of_the_pods_there_are() -> None:
    async with embedded("core", "node") as cluster:
        await run_alone(cluster, "x", "y", "z")
        await cluster.connection.create(POD_DISRUPTION_BUDGET, budget(minAvailable=2))
        assert condition(await reckoned(cluster, 1, 3, 2, 3)) == ("True", "SufficientPods")
        await cluster.connection.delete(POD, "x", "default", grace=0)
        assert condition(await reckoned(cluster, 0, 2, 2, 2)) == ("False", "InsufficientPods")


@pytest.mark.parametrize(
    ("spec", "counts"),
    [
        ({"maxUnavailable": 1}, (1, 4, 3, 4)),
        ({"maxUnavailable": "30%"}, (2, 4, 2, 4)),
        ({"minAvailable": "60%"}, (1, 4, 3, 4)),
        ({"minAvailable": "100%"}, (0, 4, 4, 4)),
        ({"maxUnavailable": 9}, (4, 4, 0, 4)),
        ({}, (0, 4, 0, 0)),
        ({"minAvailable": 1, "selector": None}, (0, 0, 1, 0)),
        ({"minAvailable": 1, "selector": {}}, (3, 4, 1, 4)),
    ],
)
@pytest.mark.parametrize("kind", [DEPLOYMENT, REPLICA_SET], ids=lambda kind: kind.kind)
async def test_a_part_is_of_what_the_controllers_ask(
    kind: Any, spec: Manifest, counts: tuple[int, ...]
) -> None:
    async with embedded("core", "node") as cluster:
        await cluster.connection.create(kind, workload())
        await cluster.connection.create(POD_DISRUPTION_BUDGET, budget(**spec))
        await reckoned(cluster, *counts)


async def test_pods_that_are_missing_count_against_the_budget() -> None:
    async with embedded("core", "node") as cluster:
        made = workload(replicas=3)
        made["spec"]["template"]["spec"].pop("nodeName")
        await cluster.connection.create(REPLICA_SET, made)
        await cluster.connection.create(POD_DISRUPTION_BUDGET, budget(maxUnavailable=1))
        await reckoned(cluster, 0, 0, 2, 3)


async def test_evictions_stop_where_the_budget_ends() -> None:
    async with embedded("core", "node") as cluster:
        await run_alone(cluster, "x", "y", "z", terminationGracePeriodSeconds=5)
        await cluster.connection.create(POD_DISRUPTION_BUDGET, budget(minAvailable=2))
        await reckoned(cluster, 1, 3, 2, 3)
        await evict(cluster, "x")
        with pytest.raises(TooManyRequests):
            await evict(cluster, "y")
        found = await reckoned(cluster, 0, 2, 2, 2)
        assert "disruptedPods" not in found["status"], "its deletion has been seen"
        await run_alone(cluster, "w")
        await reckoned(cluster, 1, 3, 2, 3)
        await evict(cluster, "y")


async def test_an_evicted_pod_that_stays_is_counted_again() -> None:
    async with embedded("core", "node") as cluster:
        await run_alone(cluster, "x", "y")
        await cluster.connection.create(POD_DISRUPTION_BUDGET, budget(minAvailable=1))
        await reckoned(cluster, 1, 2, 1, 2)
        since = (await cluster.find(POD, "x"))["status"]["startTime"]  # type: ignore[index]
        status = {"disruptedPods": {"x": since}, "disruptionsAllowed": 0}
        await cluster.connection.patch(
            POD_DISRUPTION_BUDGET, "b", {"status": status}, "default", subresource="status"
        )
        await reckoned(cluster, 0, 1, 1, 2)
        await asyncio.sleep(125)
        found = await reckoned(cluster, 1, 2, 1, 2)
        assert "disruptedPods" not in found["status"]
        reasons = [event["reason"] for event in await cluster.all(EVENT)]
        assert "NotDeleted" in reasons


async def test_a_budget_whose_controllers_have_no_scale_allows_nothing_and_says_so() -> None:
    async with embedded("core", "node") as cluster:
        await cluster.connection.create(JOB, job())
        await cluster.connection.create(POD_DISRUPTION_BUDGET, budget(maxUnavailable=1))

        async def failed() -> Manifest | None:
            found = await cluster.find(POD_DISRUPTION_BUDGET, "b")
            assert found is not None
            return found if "SyncFailed" in str(found["status"]) else None

        found = await cluster.until(failed)
        assert condition(found) == ("False", "SyncFailed")
        (only,) = found["status"]["conditions"]
        assert only["message"] == "jobs.batch does not implement the scale subresource"
        assert found["status"]["disruptionsAllowed"] == 0


async def test_pods_of_nobody_are_told_of_and_count_for_nothing() -> None:
    async with embedded("core", "node") as cluster:
        await run_alone(cluster, "x")
        await cluster.connection.create(POD_DISRUPTION_BUDGET, budget(maxUnavailable=1))
        await reckoned(cluster, 0, 1, 0, 0)

        async def said() -> list[Manifest]:
            events = await cluster.all(EVENT)
            return [event for event in events if event["reason"] == "UnmanagedPods"]

        await cluster.until(said)


async def test_labels_and_selectors_that_change_are_followed() -> None:
    async with embedded("core", "node") as cluster:
        await run_alone(cluster, "x", "y")
        await cluster.connection.create(POD_DISRUPTION_BUDGET, budget(minAvailable=1))
        await reckoned(cluster, 1, 2, 1, 2)
        other = {"metadata": {"labels": {"app": "other"}}}
        await cluster.connection.patch(POD, "x", other, "default")
        await reckoned(cluster, 0, 1, 1, 1)
        selector = {"spec": {"selector": {"matchLabels": {"app": "other"}}, "minAvailable": 0}}
        await cluster.connection.patch(
            POD_DISRUPTION_BUDGET, "b", selector, "default", how=Patch.STRATEGIC
        )
        await reckoned(cluster, 1, 1, 0, 1)
