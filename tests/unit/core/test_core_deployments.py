"""Deployments and ReplicaSets over a real API server and simulated nodes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from posse.kube.connection import Patch
from posse.objects.kinds import DEPLOYMENT, POD, REPLICA_SET
from tests.unit.node.embedded import Embedded, conditions, embedded

pytestmark = pytest.mark.looptime

Manifest = dict[str, Any]


def deployment(replicas: int = 2, image: str = "one", **spec: Any) -> Manifest:
    labels = {"app": "board"}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "main", "image": image}], "nodeName": "node-0"},
    }
    return {
        "metadata": {"name": "board", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": template,
            **spec,
        },
    }


async def available(cluster: Embedded, replicas: int, within: float = 60.0) -> Manifest:
    """The deployment, once it is wholly of its present template."""

    async def holds() -> Manifest | None:
        found = await cluster.find(DEPLOYMENT, "board")
        assert found is not None
        status = found.get("status") or {}
        return (
            found
            if status.get("observedGeneration") == found["metadata"]["generation"]
            and (status.get("updatedReplicas") or 0) == replicas
            and (status.get("availableReplicas") or 0) == replicas
            and (status.get("replicas") or 0) == replicas
            else None
        )

    found: Manifest = await cluster.until(holds, within)
    return found


def images(pods: list[Manifest]) -> list[str]:
    return sorted(pod["spec"]["containers"][0]["image"] for pod in pods)


async def set_image(cluster: Embedded, image: str) -> None:
    path = "/spec/template/spec/containers/0/image"
    change = [{"op": "replace", "path": path, "value": image}]
    await cluster.connection.patch(DEPLOYMENT, "board", change, "default", how=Patch.JSON)


async def test_a_deployment_runs_its_replicas_through_a_named_replica_set() -> None:
    async with embedded("core", "node") as cluster:
        await cluster.connection.create(DEPLOYMENT, deployment())
        found = await available(cluster, 2)
        assert conditions(found) == {"Available": "True", "Progressing": "True"}
        (replica_set,) = await cluster.all(REPLICA_SET)
        digest = replica_set["metadata"]["labels"]["pod-template-hash"]
        assert replica_set["metadata"]["name"] == f"board-{digest}"
        pods = await cluster.all(POD)
        assert all(pod["metadata"]["labels"]["pod-template-hash"] == digest for pod in pods)
        assert all(pod["metadata"]["name"].startswith(f"board-{digest}-") for pod in pods)
        assert found["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "1"


async def test_a_lost_pod_is_replaced() -> None:
    async with embedded("core", "node") as cluster:
        await cluster.connection.create(DEPLOYMENT, deployment())
        await available(cluster, 2)
        lost = (await cluster.all(POD))[0]["metadata"]["name"]
        await cluster.connection.delete(POD, lost, "default")
        await cluster.until(lambda: cluster.gone(POD, lost))
        await available(cluster, 2)
        assert len(await cluster.all(POD)) == 2


@pytest.mark.parametrize("replicas", [5, 1, 0])
async def test_a_deployment_follows_its_replicas(replicas: int) -> None:
    async with embedded("core", "node") as cluster:
        await cluster.connection.create(DEPLOYMENT, deployment(3))
        await available(cluster, 3)
        await cluster.connection.patch(
            DEPLOYMENT, "board", {"spec": {"replicas": replicas}}, "default"
        )
        await available(cluster, replicas)

        async def as_many() -> bool:
            return len(await cluster.all(POD)) == replicas

        await cluster.until(as_many)


async def test_a_rolling_update_replaces_every_pod_and_keeps_the_old_set_empty() -> None:
    async with embedded("core", "node") as cluster:
        await cluster.connection.create(DEPLOYMENT, deployment(4))
        await available(cluster, 4)
        await set_image(cluster, "two")
        found = await available(cluster, 4)
        assert images(await cluster.all(POD)) == ["two"] * 4
        assert found["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "2"
        sizes = sorted(s["spec"]["replicas"] for s in await cluster.all(REPLICA_SET))
        assert sizes == [0, 4]


async def test_going_back_to_a_template_uses_its_replica_set_again() -> None:
    async with embedded("core", "node") as cluster:
        await cluster.connection.create(DEPLOYMENT, deployment())
        await available(cluster, 2)
        for image in ("two", "one"):
            await set_image(cluster, image)
            await available(cluster, 2)
        await asyncio.sleep(5)
        assert images(await cluster.all(POD)) == ["one"] * 2
        assert len(await cluster.all(REPLICA_SET)) == 2
        found = await cluster.connection.get(DEPLOYMENT, "board", "default")
        assert found["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "3"


async def test_recreate_never_runs_two_templates_at_once() -> None:
    async with embedded("core", "node") as cluster:
        await cluster.connection.create(DEPLOYMENT, deployment(3, strategy={"type": "Recreate"}))
        await available(cluster, 3)
        await set_image(cluster, "two")
        for _ in range(200):
            assert len(dict.fromkeys(images(await cluster.all(POD)))) <= 1
            await asyncio.sleep(0.05)
        await available(cluster, 3)
        assert images(await cluster.all(POD)) == ["two"] * 3


async def test_a_deployment_that_gets_nowhere_says_so() -> None:
    async with embedded("core", "node") as cluster:
        stuck = deployment(1, progressDeadlineSeconds=60)
        del stuck["spec"]["template"]["spec"]["nodeName"]
        await cluster.connection.create(DEPLOYMENT, stuck)

        async def late() -> bool:
            found = await cluster.find(DEPLOYMENT, "board")
            return conditions(found or {}).get("Progressing") == "False"

        await cluster.until(late, within=120)
        assert conditions(await cluster.connection.get(DEPLOYMENT, "board", "default")) == {
            "Available": "False",
            "Progressing": "False",
        }


async def test_a_deleted_deployment_takes_everything_along() -> None:
    async with embedded("core", "node") as cluster:
        await cluster.connection.create(DEPLOYMENT, deployment())
        await available(cluster, 2)
        await cluster.connection.delete(DEPLOYMENT, "board", "default", propagation="Foreground")
        await cluster.until(lambda: cluster.gone(DEPLOYMENT, "board"))
        assert await cluster.all(REPLICA_SET) == []
        assert await cluster.all(POD) == []


async def test_a_settled_deployment_writes_nothing() -> None:
    async with embedded("core", "node") as cluster:
        await cluster.connection.create(DEPLOYMENT, deployment())
        await available(cluster, 2)
        await asyncio.sleep(5)
        before = len(cluster.journal.records)
        await asyncio.sleep(120)
        resources = {record.resource for record in cluster.journal.records[before:]}
        assert resources == {"leases.coordination.k8s.io"}
