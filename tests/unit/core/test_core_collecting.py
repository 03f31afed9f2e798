"""Garbage collection and the end of namespaces, over a real API server."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from posse.kube.errors import NotFound
from posse.objects.kinds import (
    CONFIG_MAP,
    CUSTOM_RESOURCE_DEFINITION,
    NAMESPACE,
    NODE,
    SECRET,
    Kind,
)
from tests.unit.node.embedded import Embedded, embedded

pytestmark = pytest.mark.looptime

Manifest = dict[str, Any]

WIDGET = Kind("example.com", "v1", "Widget", "widgets")
DEFINITION: Manifest = {
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}


def owned_by(kind: Kind, owner: Manifest, *, blocks: bool = False) -> Manifest:
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "blockOwnerDeletion": blocks,
    }


async def make(
    cluster: Embedded,
    name: str,
    *owners: Manifest,
    kind: Kind = CONFIG_MAP,
    namespace: str = "default",
    **metadata: Any,
) -> Manifest:
    made: Manifest = await cluster.connection.create(
        kind,
        {
            "metadata": {
                "name": name,
                "namespace": namespace,
                "ownerReferences": list(owners),
                **metadata,
            }
        },
        namespace,
    )
    return made


async def delete(cluster: Embedded, name: str, propagation: str, kind: Kind = CONFIG_MAP) -> None:
    await cluster.connection.delete(kind, name, "default", propagation=propagation)


async def test_dependents_follow_their_owner_through_every_generation() -> None:
    async with embedded("core") as cluster:
        owner = await make(cluster, "owner")
        child = await make(cluster, "child", owned_by(CONFIG_MAP, owner))
        await make(cluster, "grandchild", owned_by(CONFIG_MAP, child), kind=SECRET)
        await delete(cluster, "owner", "Background")
        await cluster.until(lambda: cluster.gone(CONFIG_MAP, "child"))
        await cluster.until(lambda: cluster.gone(SECRET, "grandchild"))


async def test_an_object_stays_while_one_of_its_owners_does_and_forgets_the_other() -> None:
    async with embedded("core") as cluster:
        first, second = await make(cluster, "first"), await make(cluster, "second")
        references = [owned_by(CONFIG_MAP, first), owned_by(CONFIG_MAP, second)]
        await make(cluster, "child", *references)
        await delete(cluster, "first", "Background")

        async def one_owner() -> bool:
            child = await cluster.find(CONFIG_MAP, "child")
            assert child is not None
            owners = child["metadata"]["ownerReferences"]
            return [owner["name"] for owner in owners] == ["second"]

        await cluster.until(one_owner)
        await delete(cluster, "second", "Background")
        await cluster.until(lambda: cluster.gone(CONFIG_MAP, "child"))


async def test_an_owner_of_the_same_name_and_another_uid_is_no_owner() -> None:
    async with embedded("core") as cluster:
        owner = await make(cluster, "owner")
        reference = {**owned_by(CONFIG_MAP, owner), "uid": "somebody-else"}
        await make(cluster, "child", reference)
        await cluster.until(lambda: cluster.gone(CONFIG_MAP, "child"))
        assert await cluster.find(CONFIG_MAP, "owner") is not None


async def test_dependents_made_after_their_owner_is_gone_are_collected() -> None:
    async with embedded("core") as cluster:
        owner = await make(cluster, "owner")
        await delete(cluster, "owner", "Background")
        await asyncio.sleep(5)
        await make(cluster, "late", owned_by(CONFIG_MAP, owner))
        await cluster.until(lambda: cluster.gone(CONFIG_MAP, "late"))


async def test_what_was_left_while_nobody_collected_is_collected_at_the_start() -> None:
    async with embedded() as cluster:
        owner = await make(cluster, "owner")
        await make(cluster, "child", owned_by(CONFIG_MAP, owner))
        await delete(cluster, "owner", "Background")
        cluster.start("core")
        await cluster.until(lambda: cluster.gone(CONFIG_MAP, "child"))


async def test_a_foreground_deletion_waits_for_the_dependents_that_block_it() -> None:
    async with embedded("core") as cluster:
        owner = await make(cluster, "owner")
        await make(
            cluster,
            "child",
            owned_by(CONFIG_MAP, owner, blocks=True),
            finalizers=["example.com/wait"],
        )
        await delete(cluster, "owner", "Foreground")
        await asyncio.sleep(10)
        child = await cluster.find(CONFIG_MAP, "child")
        assert child is not None
        assert child["metadata"]["deletionTimestamp"]
        assert await cluster.find(CONFIG_MAP, "owner") is not None
        await cluster.connection.patch(
            CONFIG_MAP, "child", {"metadata": {"finalizers": None}}, "default"
        )
        await cluster.until(lambda: cluster.gone(CONFIG_MAP, "owner"))
        assert await cluster.gone(CONFIG_MAP, "child")


async def test_a_foreground_deletion_without_dependents_ends_at_once() -> None:
    async with embedded("core") as cluster:
        await make(cluster, "owner")
        await delete(cluster, "owner", "Foreground")
        await cluster.until(lambda: cluster.gone(CONFIG_MAP, "owner"))


async def test_orphans_stay_and_forget_their_owner() -> None:
    async with embedded("core") as cluster:
        owner = await make(cluster, "owner")
        await make(cluster, "child", owned_by(CONFIG_MAP, owner))
        await asyncio.sleep(5)
        await delete(cluster, "owner", "Orphan")
        await cluster.until(lambda: cluster.gone(CONFIG_MAP, "owner"))
        await asyncio.sleep(10)
        child = await cluster.find(CONFIG_MAP, "child")
        assert child is not None
        assert not child["metadata"].get("ownerReferences")


async def test_kinds_that_come_with_a_definition_are_collected_too() -> None:
    async with embedded("core") as cluster:
        await asyncio.sleep(5)
        await cluster.connection.create(CUSTOM_RESOURCE_DEFINITION, DEFINITION)

        async def served() -> bool:
            try:
                await cluster.connection.list(WIDGET, "default")
            except NotFound:
                return False
            return True

        await cluster.until(served)
        owner = await make(cluster, "owner", kind=WIDGET)
        await make(cluster, "child", owned_by(WIDGET, owner), kind=CONFIG_MAP)
        await make(cluster, "twin", owned_by(WIDGET, owner), kind=WIDGET)
        await asyncio.sleep(5)
        await delete(cluster, "owner", "Background", WIDGET)
        await cluster.until(lambda: cluster.gone(CONFIG_MAP, "child"))
        await cluster.until(lambda: cluster.gone(WIDGET, "twin"))


async def test_an_owner_of_a_kind_that_is_not_served_deletes_nothing() -> None:
    async with embedded("core") as cluster:
        reference = {
            "apiVersion": "example.com/v1",
            "kind": "Widget",
            "name": "owner",
            "uid": "unknown",
        }
        await make(cluster, "child", reference)
        await asyncio.sleep(60)
        assert await cluster.find(CONFIG_MAP, "child") is not None


async def test_a_cluster_scoped_owner_holds_objects_of_any_namespace() -> None:
    async with embedded("core", "node", count=1) as cluster:
        node = await cluster.until(lambda: cluster.find(NODE, "node-0", ""))
        await make(cluster, "child", owned_by(NODE, node))
        await asyncio.sleep(10)
        assert await cluster.find(CONFIG_MAP, "child") is not None
        await cluster.connection.delete(NODE, "node-0")
        await cluster.until(lambda: cluster.gone(CONFIG_MAP, "child"))


async def test_a_deleted_namespace_is_emptied_and_goes() -> None:
    async with embedded("core", "node") as cluster:
        await cluster.connection.create(NAMESPACE, {"metadata": {"name": "team"}})
        await make(cluster, "a", namespace="team")
        await make(cluster, "b", kind=SECRET, namespace="team")
        await cluster.connection.delete(NAMESPACE, "team")
        await cluster.until(lambda: cluster.gone(NAMESPACE, "team", ""))
        assert await cluster.all(CONFIG_MAP, "team") == []
        assert await cluster.all(SECRET, "team") == []


async def test_a_namespace_waits_for_an_object_that_waits_for_its_finalizer() -> None:
    async with embedded("core") as cluster:
        await cluster.connection.create(NAMESPACE, {"metadata": {"name": "team"}})
        await make(cluster, "a", namespace="team", finalizers=["example.com/wait"])
        await cluster.connection.delete(NAMESPACE, "team")
        await asyncio.sleep(30)
        namespace = await cluster.find(NAMESPACE, "team", "")
        assert namespace is not None
        assert namespace["status"]["phase"] == "Terminating"
        await cluster.connection.patch(CONFIG_MAP, "a", {"metadata": {"finalizers": None}}, "team")
        await cluster.until(lambda: cluster.gone(NAMESPACE, "team", ""))
