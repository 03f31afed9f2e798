"""Silent nodes, deleted nodes, and the pods on them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from posse.objects.kinds import LEASE, NODE, POD
from tests.unit.node.embedded import Embedded, conditions, embedded

pytestmark = pytest.mark.looptime

UNREACHABLE = "node.kubernetes.io/unreachable"


async def readiness(cluster: Embedded, status: str, within: float = 60.0) -> dict[str, Any]:
    async def holds() -> dict[str, Any] | None:
        node = await cluster.find(NODE, "node-0", "")
        return node if node and conditions(node).get("Ready") == status else None

    node: dict[str, Any] = await cluster.until(holds, within)
    return node


def taints(node: dict[str, Any]) -> list[tuple[str, str]]:
    return [(t["key"], t["effect"]) for t in node["spec"].get("taints") or []]


async def test_a_silent_node_is_unknown_after_forty_seconds_and_comes_back() -> None:
    async with embedded("core", "node", count=1) as cluster:
        await readiness(cluster, "True")
        await asyncio.sleep(20)
        await cluster.stop("node")
        stopped = cluster.world.monotonic()
        await asyncio.sleep(25)
        await readiness(cluster, "True", within=0)
        await readiness(cluster, "Unknown")
        assert 30 <= cluster.world.monotonic() - stopped <= 45
        await asyncio.sleep(3)
        node = await readiness(cluster, "Unknown", within=0)
        assert taints(node) == [(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")]
        cluster.start("node")
        await readiness(cluster, "True")
        await asyncio.sleep(3)
        assert taints(await readiness(cluster, "True", within=0)) == []


async def test_pods_of_a_silent_node_are_evicted_when_their_toleration_runs_out() -> None:
    async with embedded("core", "node", count=1) as cluster:
        await readiness(cluster, "True")
        await cluster.run_pod("a")
        await cluster.pod("a", "Running")
        await cluster.stop("node")
        await readiness(cluster, "Unknown", within=90)
        await asyncio.sleep(290)
        pod = await cluster.find(POD, "a")
        assert pod is not None
        assert "deletionTimestamp" not in pod["metadata"]
        assert conditions(pod)["Ready"] == "False"
        await asyncio.sleep(15)
        pod = await cluster.find(POD, "a")
        assert pod is not None
        assert pod["metadata"]["deletionTimestamp"]
        assert conditions(pod)["DisruptionTarget"] == "True"
        cluster.start("node")
        await cluster.until(lambda: cluster.gone(POD, "a"))


async def test_a_short_silence_leaves_pods_running() -> None:
    async with embedded("core", "node", count=1) as cluster:
        await readiness(cluster, "True")
        await cluster.run_pod("a")
        await cluster.pod("a", "Running")
        await cluster.stop("node")
        await readiness(cluster, "Unknown", within=90)
        await asyncio.sleep(60)
        cluster.start("node")
        await readiness(cluster, "True")
        await asyncio.sleep(600)
        pod = await cluster.pod("a", "Running", within=0)
        assert conditions(pod)["Ready"] == "True"


async def test_a_restarted_core_gives_every_node_the_whole_grace_again() -> None:
    async with embedded("core", "node", count=1) as cluster:
        await readiness(cluster, "True")
        await cluster.stop("core")
        await cluster.stop("node")
        await asyncio.sleep(3600)
        cluster.start("core")
        await asyncio.sleep(30)
        await readiness(cluster, "True", within=0)


async def test_pods_of_a_deleted_node_are_removed_and_its_lease_with_it() -> None:
    async with embedded("core", "node", count=1) as cluster:
        await readiness(cluster, "True")
        await cluster.run_pod("a")
        await cluster.pod("a", "Running")
        await cluster.stop("node")
        await cluster.connection.delete(NODE, "node-0")
        await asyncio.sleep(20)
        assert await cluster.find(POD, "a") is not None
        await cluster.until(lambda: cluster.gone(POD, "a"))
        await cluster.until(lambda: cluster.gone(LEASE, "node-0", "kube-node-lease"))


async def test_a_no_execute_taint_drives_out_whoever_does_not_tolerate_it() -> None:
    async with embedded("core", "node", count=1) as cluster:
        await readiness(cluster, "True")
        tolerant = [{"key": "maintenance", "operator": "Exists", "effect": "NoExecute"}]
        await cluster.run_pod("stays", tolerations=tolerant)
        await cluster.run_pod("goes")
        for name in ("stays", "goes"):
            await cluster.pod(name, "Running")
        taint = {"key": "maintenance", "effect": "NoExecute"}
        await cluster.connection.patch(NODE, "node-0", {"spec": {"taints": [taint]}})
        await cluster.until(lambda: cluster.gone(POD, "goes"))
        await asyncio.sleep(30)
        await cluster.pod("stays", "Running", within=0)


async def test_an_absent_api_server_makes_no_node_silent() -> None:
    async with embedded("core", "node", count=1) as cluster:
        await readiness(cluster, "True")
        cluster.cut = True
        await asyncio.sleep(120)
        cluster.cut = False
        for _ in range(300):
            node = await cluster.find(NODE, "node-0", "")
            assert node is not None
            assert conditions(node)["Ready"] == "True"
            assert taints(node) == []
            await asyncio.sleep(0.2)
