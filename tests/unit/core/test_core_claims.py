"""Claims are bound to the volumes there are."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from posse.objects.kinds import EVENT, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM
from tests.unit.node.embedded import Embedded, embedded

pytestmark = pytest.mark.looptime

Manifest = dict[str, Any]


def volume(name: str = "disk", size: str = "10Gi", **spec: Any) -> Manifest:
    return {
        "metadata": {"name": name, "labels": {"disk": name}},
        "spec": {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce", "ReadOnlyMany"],
            "hostPath": {"path": "/data"},
            **spec,
        },
    }


def claim(name: str = "data", size: str = "5Gi", **spec: Any) -> Manifest:
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": size}},
            **spec,
        },
    }


async def phase(cluster: Embedded, made: Manifest, wanted: str) -> Manifest:
    """The claim or volume as it is once it is in that phase."""
    kind = PERSISTENT_VOLUME if "hostPath" in made["spec"] else PERSISTENT_VOLUME_CLAIM
    namespace = made["metadata"].get("namespace", "")

    async def holds() -> Manifest | None:
        found = await cluster.find(kind, made["metadata"]["name"], namespace)
        return found if found is not None and found["status"]["phase"] == wanted else None

    found: Manifest = await cluster.until(holds)
    return found


async def make(cluster: Embedded, made: Manifest) -> Manifest:
    kind = PERSISTENT_VOLUME if "hostPath" in made["spec"] else PERSISTENT_VOLUME_CLAIM
    created: Manifest = await cluster.connection.create(kind, made)
    return created


async def test_a_claim_gets_the_smallest_volume_that_will_do() -> None:
    async with embedded("core") as cluster:
        for one in (volume("large", "20Gi"), volume("small", "1Gi"), volume("right", "5Gi")):
            await make(cluster, one)
            await phase(cluster, one, "Available")
        await make(cluster, claim())
        bound = await phase(cluster, claim(), "Bound")
        assert bound["spec"]["volumeName"] == "right"
        assert bound["status"]["capacity"] == {"storage": "5Gi"}
        assert bound["status"]["accessModes"] == ["ReadWriteOnce", "ReadOnlyMany"]
        given = await phase(cluster, volume("right"), "Bound")
        assert given["spec"]["claimRef"]["uid"] == bound["metadata"]["uid"]
        await phase(cluster, volume("large"), "Available")


@pytest.mark.parametrize(
    "asked",
    [
        claim(size="11Gi"),
        claim(accessModes=["ReadWriteMany"]),
        claim(storageClassName="fast"),
        claim(volumeMode="Block"),
        claim(selector={"matchLabels": {"disk": "other"}}),
    ],
    ids=["size", "mode", "class", "block", "labels"],
)
async def test_a_claim_that_no_volume_fits_waits_and_says_so(asked: Manifest) -> None:
    async with embedded("core") as cluster:
        await make(cluster, volume())
        await make(cluster, asked)

        async def said() -> list[Manifest]:
            events = await cluster.all(EVENT)
            return [one for one in events if one["involvedObject"]["name"] == "data"]

        assert (await cluster.until(said))[0]["reason"] in ("FailedBinding", "ProvisioningFailed")
        await phase(cluster, asked, "Pending")
        await phase(cluster, volume(), "Available")


async def test_a_waiting_claim_is_bound_when_its_volume_comes() -> None:
    async with embedded("core") as cluster:
        await make(cluster, claim())
        await asyncio.sleep(60)
        await make(cluster, volume())
        await phase(cluster, claim(), "Bound")


async def test_a_volume_is_given_once() -> None:
    async with embedded("core") as cluster:
        await make(cluster, volume())
        for name in ("a", "b", "c"):
            await make(cluster, claim(name))
        await phase(cluster, volume(), "Bound")
        await asyncio.sleep(30)
        claims = await cluster.all(PERSISTENT_VOLUME_CLAIM)
        assert sorted(one["status"]["phase"] for one in claims) == ["Bound", "Pending", "Pending"]


async def test_a_volume_promised_to_a_claim_waits_for_it() -> None:
    async with embedded("core") as cluster:
        await make(cluster, volume(claimRef={"namespace": "default", "name": "mine"}))
        await make(cluster, claim("other"))
        await make(cluster, claim("mine"))
        await phase(cluster, claim("mine"), "Bound")
        await phase(cluster, claim("other"), "Pending")


async def test_a_volume_whose_claim_is_gone_is_released_not_given_again() -> None:
    async with embedded("core") as cluster:
        await make(cluster, volume())
        await make(cluster, claim())
        await phase(cluster, claim(), "Bound")
        await cluster.connection.delete(PERSISTENT_VOLUME_CLAIM, "data", "default")
        await phase(cluster, volume(), "Released")
        await make(cluster, claim())
        await asyncio.sleep(30)
        await phase(cluster, claim(), "Pending")


async def test_a_claim_whose_volume_is_gone_is_lost() -> None:
    async with embedded("core") as cluster:
        await make(cluster, volume())
        await make(cluster, claim())
        await phase(cluster, claim(), "Bound")
        await phase(cluster, volume(), "Bound")
        await cluster.connection.delete(PERSISTENT_VOLUME, "disk")
        await phase(cluster, claim(), "Lost")
