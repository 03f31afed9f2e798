"""Claims are bound to the volumes there are."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from posse.kube.errors import Forbidden
from posse.objects.kinds import (
    EVENT,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    STORAGE_CLASS,
)
from posse.objects.volumes import BIND_COMPLETED, NO_PROVISIONER, SELECTED_NODE
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
        forced = {"metadata": {"finalizers": None}}
        await cluster.connection.patch(PERSISTENT_VOLUME, "disk", forced)
        await phase(cluster, claim(), "Lost")


async def test_a_bound_volume_outlives_its_deletion_until_its_claim_is_gone() -> None:
    async with embedded("core") as cluster:
        await make(cluster, volume())
        await make(cluster, claim())
        await phase(cluster, claim(), "Bound")
        await phase(cluster, volume(), "Bound")
        await cluster.connection.delete(PERSISTENT_VOLUME, "disk")
        await asyncio.sleep(30)
        assert not await cluster.gone(PERSISTENT_VOLUME, "disk", "")
        await cluster.connection.delete(PERSISTENT_VOLUME_CLAIM, "data", "default")
        await cluster.until(lambda: cluster.gone(PERSISTENT_VOLUME_CLAIM, "data"))
        await cluster.until(lambda: cluster.gone(PERSISTENT_VOLUME, "disk", ""))


async def test_a_claim_outlives_its_deletion_until_no_pod_on_a_node_has_it() -> None:
    using = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    async with embedded("core", "node") as cluster:
        await make(cluster, claim())
        await cluster.run_pod("user", volumes=using)
        await cluster.pod("user", "Running")
        await cluster.connection.delete(PERSISTENT_VOLUME_CLAIM, "data", "default")
        await asyncio.sleep(30)
        assert not await cluster.gone(PERSISTENT_VOLUME_CLAIM, "data")
        await cluster.connection.delete(POD, "user", "default")
        await cluster.until(lambda: cluster.gone(PERSISTENT_VOLUME_CLAIM, "data"))


def storage_class(name: str = "fast", mode: str = "WaitForFirstConsumer", **more: Any) -> Manifest:
    return {
        "metadata": {"name": name},
        "provisioner": NO_PROVISIONER,
        "volumeBindingMode": mode,
    } | more


async def told(cluster: Embedded, reason: str) -> Manifest:
    async def said() -> list[Manifest]:
        events = [one for one in await cluster.all(EVENT) if one["reason"] == reason]
        return [one for one in events if one["involvedObject"]["name"] == "data"]

    found: Manifest = (await cluster.until(said))[0]
    return found


async def test_a_claim_that_waits_for_its_pod_is_given_what_is_promised_to_it_alone() -> None:
    asked = claim(storageClassName="fast")
    async with embedded("core") as cluster:
        await cluster.connection.create(STORAGE_CLASS, storage_class())
        await make(cluster, volume("near", storageClassName="fast"))
        made = await make(cluster, asked)
        await told(cluster, "WaitForFirstConsumer")
        await asyncio.sleep(30)
        await phase(cluster, volume("near"), "Available")
        reference = {"namespace": "default", "name": "data", "uid": made["metadata"]["uid"]}
        await cluster.connection.patch(PERSISTENT_VOLUME, "near", {"spec": {"claimRef": reference}})
        bound = await phase(cluster, asked, "Bound")
        assert bound["spec"]["volumeName"] == "near"
        assert bound["metadata"]["annotations"][BIND_COMPLETED] == "yes"


async def test_a_claim_says_which_pod_it_waits_for() -> None:
    using = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    async with embedded("core") as cluster:
        await cluster.connection.create(STORAGE_CLASS, storage_class())
        await cluster.run_pod("user", "", volumes=using)
        await make(cluster, claim(storageClassName="fast"))
        event = await told(cluster, "WaitForPodScheduled")
        assert event["message"] == "waiting for pod user to be scheduled"


async def test_a_claim_whose_class_comes_late_is_bound_by_it() -> None:
    asked = claim(storageClassName="fast")
    async with embedded("core") as cluster:
        await make(cluster, asked)
        event = await told(cluster, "ProvisioningFailed")
        assert event["message"] == 'storageclass.storage.k8s.io "fast" not found'
        provisioned = storage_class(mode="Immediate", provisioner="example.com/disks")
        await cluster.connection.create(STORAGE_CLASS, provisioned)
        assert "'example.com/disks'" in (await told(cluster, "ExternalProvisioning"))["message"]
        found = await cluster.find(PERSISTENT_VOLUME_CLAIM, "data")
        assert found is not None
        named = found["metadata"]["annotations"]["volume.kubernetes.io/storage-provisioner"]
        assert named == "example.com/disks"
        await make(cluster, volume(storageClassName="fast"))
        await phase(cluster, asked, "Bound")


async def test_a_node_that_was_selected_is_for_the_provisioner_to_see() -> None:
    asked = claim(storageClassName="fast")
    async with embedded("core") as cluster:
        provisioned = storage_class(provisioner="example.com/disks")
        await cluster.connection.create(STORAGE_CLASS, provisioned)
        await make(cluster, asked)
        await told(cluster, "WaitForFirstConsumer")
        selected = {"metadata": {"annotations": {SELECTED_NODE: "node-0"}}}
        await cluster.connection.patch(PERSISTENT_VOLUME_CLAIM, "data", selected, "default")
        await told(cluster, "ExternalProvisioning")


async def test_a_pods_own_claim_comes_and_goes_with_it() -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": claim()["spec"]}
    own = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}]
    async with embedded("core", "node") as cluster:
        await make(cluster, volume())
        await cluster.run_pod("user", volumes=own)
        bound = await phase(cluster, claim("user-scratch"), "Bound")
        assert bound["metadata"]["labels"] == {"a": "b"}
        assert bound["metadata"]["ownerReferences"][0]["name"] == "user"
        await cluster.connection.delete(POD, "user", "default")
        await cluster.until(lambda: cluster.gone(PERSISTENT_VOLUME_CLAIM, "user-scratch"))


@pytest.mark.parametrize("named", [None, "", "slow"])
async def test_a_claim_that_names_no_class_gets_the_youngest_default(named: str | None) -> None:
    by_default = {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}
    asked = claim() if named is None else claim(storageClassName=named)
    async with embedded() as cluster:
        for name in ("old", "new"):
            one = storage_class(name)
            one["metadata"] |= by_default
            await cluster.connection.create(STORAGE_CLASS, one)
            await asyncio.sleep(5)
        made = await make(cluster, asked)
        assert made["spec"]["storageClassName"] == ("new" if named is None else named)


async def test_a_default_that_comes_later_counts_for_claims_that_wait() -> None:
    async with embedded("core") as cluster:
        await make(cluster, claim())
        await make(cluster, claim("none", storageClassName=""))
        await told(cluster, "FailedBinding")
        late = storage_class(mode="Immediate")
        late["metadata"]["annotations"] = {"storageclass.kubernetes.io/is-default-class": "true"}
        await cluster.connection.create(STORAGE_CLASS, late)
        await make(cluster, volume(storageClassName="fast"))
        bound = await phase(cluster, claim(), "Bound")
        assert bound["spec"]["storageClassName"] == "fast"
        await phase(cluster, claim("none"), "Pending")


@pytest.mark.parametrize(("grows", "allowed"), [(True, True), (False, False), (None, False)])
async def test_a_bound_claim_grows_where_its_class_can(grows: bool | None, allowed: bool) -> None:
    asked = claim(storageClassName="fast")
    larger = {"spec": {"resources": {"requests": {"storage": "8Gi"}}}}

    async def grow() -> str:
        kind = PERSISTENT_VOLUME_CLAIM
        try:
            await cluster.connection.patch(kind, "data", larger, "default")
        except Forbidden as refusal:
            return refusal.message
        return ""

    async with embedded("core") as cluster:
        more: Manifest = {} if grows is None else {"allowVolumeExpansion": grows}
        await cluster.connection.create(STORAGE_CLASS, storage_class(mode="Immediate", **more))
        await make(cluster, asked)
        assert "Only bound persistent volume claims" in await grow()
        await make(cluster, volume(storageClassName="fast"))
        await phase(cluster, asked, "Bound")
        assert (await grow() == "") is allowed
