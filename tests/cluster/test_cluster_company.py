"""Gangs whose pods ask for company, or for none, in the whole system."""

from __future__ import annotations

from typing import Any

import pytest

from posse.objects import keys, kinds
from tests.cluster.backends import Riding
from tests.cluster.riding import cluster

pytestmark = pytest.mark.looptime

HOST = "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
OWN = {"matchLabels": {"job": "g"}}
APART = {"podAntiAffinity": {REQUIRED: [{"topologyKey": HOST, "labelSelector": OWN}]}}
TOGETHER = {"podAffinity": {REQUIRED: [{"topologyKey": HOST, "labelSelector": OWN}]}}


async def gang(running: Riding, members: int, *, port: int | None = None, **spec: Any) -> None:
    group = {"metadata": {"name": "g"}, "spec": {"minMember": members}}
    await running.connection.create(kinds.POD_GROUP, group, running.namespace)
    container: dict[str, Any] = {
        "name": "c",
        "image": "i",
        "resources": {"limits": {"nvidia.com/gpu": "1"}},
    }
    if port is not None:
        container["ports"] = [{"containerPort": port, "hostPort": port}]
    for at in range(members):
        pod = {
            "metadata": {
                "name": f"g-{at}",
                "labels": {"job": "g"},
                "annotations": {keys.GROUP_NAME: "g"},
            },
            "spec": {"schedulerName": "posse", "containers": [container]} | spec,
        }
        await running.connection.create(kinds.POD, pod, running.namespace)


async def nodes_of(running: Riding) -> list[str]:
    listed = await running.connection.list(kinds.POD, running.namespace)
    return [pod["spec"]["nodeName"] for pod in listed.items if pod["spec"].get("nodeName")]


async def sit(running: Riding, members: int, nodes: int) -> None:
    async def holds() -> bool:
        found = await nodes_of(running)
        return len(found) == members and len(set(found)) == nodes

    await running.until(holds, f"{members} members sit on {nodes} nodes")


async def verdict(running: Riding, words: str) -> None:
    async def told() -> bool:
        group = await running.connection.get(kinds.POD_GROUP, "g", running.namespace)
        conditions = group.get("status", {}).get("conditions") or []
        return any(words in condition.get("message", "") for condition in conditions)

    await running.until(told, f"its group says {words!r}")


async def test_members_that_avoid_one_another_sit_apart() -> None:
    async with cluster(4, gpus=4) as running:
        await gang(running, 4, affinity=APART)
        await sit(running, 4, 4)


async def test_and_wait_whole_where_there_are_too_few_nodes() -> None:
    async with cluster(3, gpus=4) as running:
        await gang(running, 4, affinity=APART)
        await verdict(running, "only 3 of its 4 pods find a node")
        assert not await nodes_of(running)


async def test_members_that_seek_one_another_sit_together() -> None:
    async with cluster(3, gpus=4) as running:
        await gang(running, 4, affinity=TOGETHER)
        await sit(running, 4, 1)


async def test_a_host_port_is_used_once_on_a_node() -> None:
    async with cluster(2, gpus=4) as running:
        await gang(running, 2, port=2222)
        await sit(running, 2, 2)


async def test_members_spread_evenly() -> None:
    spread = {
        "maxSkew": 1,
        "topologyKey": HOST,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": OWN,
    }
    async with cluster(3, gpus=4) as running:
        await gang(running, 6, topologySpreadConstraints=[spread])
        await sit(running, 6, 3)
