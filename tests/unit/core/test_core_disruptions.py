"""A mark of disruption that nothing followed is taken back."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from posse.kube.connection import Patch
from posse.objects.kinds import POD
from posse.objects.times import rfc3339
from tests.unit.node.embedded import Embedded, conditions, embedded

pytestmark = pytest.mark.looptime


async def mark(cluster: Embedded, name: str, reason: str) -> None:
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": reason,
        "message": "for somebody else",
        "lastTransitionTime": rfc3339(cluster.world.now()),
    }
    await cluster.connection.patch(
        POD,
        name,
        {"status": {"conditions": [condition]}},
        "default",
        how=Patch.STRATEGIC,
        subresource="status",
    )


async def marked(cluster: Embedded, name: str) -> Any:
    found = await cluster.find(POD, name)
    assert found is not None
    return conditions(found).get("DisruptionTarget")


async def test_a_pod_that_stays_is_no_target_any_more() -> None:
    async with embedded("core", "node") as cluster:
        await cluster.run_pod("a")
        await cluster.pod("a", "Running")
        await mark(cluster, "a", "PreemptionByScheduler")
        await asyncio.sleep(110)
        assert await marked(cluster, "a") == "True", "its deletion may still come"
        await asyncio.sleep(20)
        assert await marked(cluster, "a") == "False"
        found = await cluster.find(POD, "a")
        assert found is not None
        (left,) = [c for c in found["status"]["conditions"] if c["type"] == "DisruptionTarget"]
        assert "reason" not in left


async def test_what_its_node_marked_and_what_has_ended_stays_marked() -> None:
    async with embedded("core", "node") as cluster:
        await cluster.run_pod("a")
        await cluster.run_pod("b", annotations={"posse.dev/simulated-duration": "10s"})
        await cluster.pod("a", "Running")
        await cluster.pod("b", "Running")
        await mark(cluster, "a", "TerminationByKubelet")
        await mark(cluster, "b", "EvictionByEvictionAPI")
        await asyncio.sleep(200)
        assert [await marked(cluster, name) for name in ("a", "b")] == ["True", "True"]
