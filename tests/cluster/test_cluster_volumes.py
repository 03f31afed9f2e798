"""Claims that wait for their first pod: the gang and its volumes find each other."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from posse.objects import kinds
from posse.objects.kinds import Kind
from posse.objects.volumes import NO_PROVISIONER, SELECTED_NODE
from tests.cluster.backends import Riding
from tests.cluster.riding import cluster

pytestmark = pytest.mark.looptime

MEMBERS = 2
HOST = "kubernetes.io/hostname"


@asynccontextmanager
async def made(running: Riding, *things: tuple[Kind, dict[str, Any]]) -> AsyncIterator[None]:
    """Things that belong to no namespace, for the length of a story."""
    for kind, thing in things:
        await running.connection.create(kind, thing)
    try:
        yield
    finally:
        for kind, thing in things:
            await running.connection.delete(kind, thing["metadata"]["name"])


def storage_class(name: str, provisioner: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def volume(name: str, host: str, of: str, **spec: Any) -> dict[str, Any]:
    term = {"matchExpressions": [{"key": HOST, "operator": "In", "values": [host]}]}
    return {
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": of,
            "persistentVolumeReclaimPolicy": "Retain",
            "local": {"path": "/mnt/disk"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        }
        | spec,
    }


async def gang(running: Riding, of: str) -> None:
    """Two pods, each with a claim of its own."""
    group = {"metadata": {"name": "g"}, "spec": {"minMember": MEMBERS}}
    await running.connection.create(kinds.POD_GROUP, group, running.namespace)
    for at in range(MEMBERS):
        claim = {
            "metadata": {"name": f"data-{at}"},
            "spec": {
                "storageClassName": of,
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
            },
        }
        await running.connection.create(kinds.PERSISTENT_VOLUME_CLAIM, claim, running.namespace)
        pod = {
            "metadata": {
                "name": f"g-{at}",
                "annotations": {"scheduling.k8s.io/group-name": "g"},
            },
            "spec": {
                "schedulerName": "posse",
                "containers": [
                    {"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
                ],
                "volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": f"data-{at}"}}],
            },
        }
        await running.connection.create(kinds.POD, pod, running.namespace)


async def hosts(running: Riding) -> list[str]:
    listed = await running.connection.list(kinds.NODE)
    return sorted(node["metadata"]["labels"][HOST] for node in listed.items)


async def placed(running: Riding) -> dict[str, str]:
    listed = await running.connection.list(kinds.POD, running.namespace)
    return {
        pod["metadata"]["name"]: pod["spec"]["nodeName"]
        for pod in listed.items
        if pod["spec"].get("nodeName")
    }


async def test_a_gang_takes_local_volumes_where_they_are() -> None:
    async with cluster(3, gpus=1) as running:
        _, one, other = await hosts(running)
        async with made(
            running,
            (kinds.STORAGE_CLASS, storage_class("local", NO_PROVISIONER)),
            (kinds.PERSISTENT_VOLUME, volume("disk-1", one, "local")),
            (kinds.PERSISTENT_VOLUME, volume("disk-2", other, "local")),
        ):
            await gang(running, "local")

            async def sits() -> bool:
                return sorted((await placed(running)).values()) == sorted([one, other])

            await running.until(sits, "each sits where its volume is")


async def test_claims_of_a_gang_get_their_nodes_before_anybody_is_bound() -> None:
    async with (
        cluster(2, gpus=1) as running,
        made(running, (kinds.STORAGE_CLASS, storage_class("made", "example.com/nobody"))),
    ):
        await gang(running, "made")
        nodes: dict[str, str] = {}

        async def chosen() -> bool:
            listed = await running.connection.list(kinds.PERSISTENT_VOLUME_CLAIM, running.namespace)
            for claim in listed.items:
                on = (claim["metadata"].get("annotations") or {}).get(SELECTED_NODE)
                if on:
                    nodes[claim["metadata"]["name"]] = on
            return len(nodes) == MEMBERS

        await running.until(chosen, "both claims have a node")
        assert not await placed(running), "nobody is bound before the volumes are there"
        volumes = [
            volume(
                f"made-{at}",
                nodes[f"data-{at}"],
                "made",
                claimRef={"namespace": running.namespace, "name": f"data-{at}"},
            )
            for at in range(MEMBERS)
        ]
        async with made(running, *((kinds.PERSISTENT_VOLUME, each) for each in volumes)):

            async def sits() -> bool:
                return await placed(running) == {
                    f"g-{at}": nodes[f"data-{at}"] for at in range(MEMBERS)
                }

            await running.until(sits, "each sits where its volume was made")
