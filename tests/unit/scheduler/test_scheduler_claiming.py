"""Gangs whose pods have claims, from the objects to the writes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.unit.scheduler.double import Write
from tests.unit.scheduler.rig import GPU, Rig, group, node, pod

SELECTED = "volume.kubernetes.io/selected-node"
COMPLETED = "pv.kubernetes.io/bind-completed"

pytestmark = pytest.mark.looptime


@pytest.fixture
async def rig() -> Rig:
    rig = Rig()
    rig.api.served |= {
        "storageclasses",
        "csinodes",
        "csidrivers",
        "csistoragecapacities",
        "persistentvolumes",
        "persistentvolumeclaims",
    }
    return rig


def claim(name: str, *, volume: str = "", of: str = "late") -> dict[str, Any]:
    return {
        "metadata": {"name": name, "annotations": {COMPLETED: "yes"} if volume else {}},
        "spec": {
            "volumeName": volume,
            "storageClassName": of,
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
        "status": {"phase": "Bound" if volume else "Pending"},
    }


def volume(name: str, host: str, **spec: Any) -> dict[str, Any]:
    term = {"matchExpressions": [{"key": "host", "operator": "In", "values": [host]}]}
    return {
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "late",
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        }
        | spec,
        "status": {"phase": "Available"},
    }


def late(provisioner: str = "ebs") -> dict[str, Any]:
    return {
        "metadata": {"name": "late"},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def using(name: str) -> list[dict[str, Any]]:
    return [{"name": "d", "persistentVolumeClaim": {"claimName": name}}]


def gang(rig: Rig, members: int, gpus: int = 2) -> None:
    rig.api.put("podgroups", group("g", members))
    for at in range(members):
        rig.api.put("pods", pod(f"g-{at}", "g", gpus, volumes=using(f"data-{at}")))


def hosts(rig: Rig, number: int, gpus: int = 2) -> None:
    for at in range(number):
        labelled = node(f"n{at}", gpus)
        labelled["metadata"]["labels"] = {"host": f"n{at}"}
        rig.api.put("nodes", labelled)


def provision(rig: Rig, name: str) -> None:
    """What a provisioner and the volume controller do once a claim has its node."""
    found = rig.api.get("persistentvolumeclaims", name)
    on = found["metadata"]["annotations"][SELECTED]
    reference = {"namespace": "ns", "name": name, "uid": found["metadata"]["uid"]}
    rig.api.put("persistentvolumes", volume(f"pv-{name}", on, claimRef=reference))
    bind(rig, name, f"pv-{name}")


def bind(rig: Rig, name: str, to: str) -> None:
    found = rig.api.get("persistentvolumeclaims", name)
    found["metadata"]["annotations"][COMPLETED] = "yes"
    found["spec"]["volumeName"] = to
    found["status"]["phase"] = "Bound"
    rig.api.put("persistentvolumeclaims", found)


def selected(rig: Rig) -> dict[str, str]:
    return {
        each["metadata"]["name"]: each["metadata"]["annotations"][SELECTED]
        for each in rig.api.all("persistentvolumeclaims")
        if each["metadata"].get("annotations", {}).get(SELECTED)
    }


def condition(rig: Rig, name: str) -> dict[str, str]:
    conditions = rig.api.get("pods", name)["status"].get("conditions", [])
    return next((c for c in conditions if c["type"] == "PodScheduled"), {})


def says(rig: Rig, name: str) -> str:
    return condition(rig, name).get("message", "")


def reason(rig: Rig, name: str) -> str:
    return condition(rig, name).get("reason", "")


async def test_a_pod_waits_for_its_claim_and_says_so(rig: Rig) -> None:
    hosts(rig, 2)
    rig.api.put("pods", pod("alone", volumes=using("data")))
    async with rig.running():
        await rig.until(lambda: "claim data, which does not exist" in says(rig, "alone"))
        rig.api.put("persistentvolumeclaims", claim("data", volume="v"))
        await rig.until(lambda: "volume v of claim data" in says(rig, "alone"))
        rig.api.put("persistentvolumes", volume("v", "n1"))
        await rig.until(lambda: rig.api.placed() == {"alone": "n1"})


async def test_a_gang_waits_for_the_claim_of_one_member(rig: Rig) -> None:
    hosts(rig, 2)
    rig.api.put("persistentvolumeclaims", claim("data-0", volume="v0"))
    rig.api.put("persistentvolumes", volume("v0", "n1"))
    gang(rig, 2)
    async with rig.running():
        await rig.until(lambda: "claim data-1, which does not exist" in says(rig, "g-1"))
        assert not rig.api.binds
        assert reason(rig, "g-1") == "Unschedulable"
        rig.api.put("persistentvolumeclaims", claim("data-1", volume="v1"))
        rig.api.put("persistentvolumes", volume("v1", "n0"))
        await rig.until(lambda: rig.bound_of("g") == {"g-0": "n1", "g-1": "n0"})


async def test_claims_of_a_gang_get_their_nodes_together_and_binds_wait_for_them(rig: Rig) -> None:
    hosts(rig, 2)
    rig.api.put("storageclasses", late())
    for at in range(2):
        rig.api.put("persistentvolumeclaims", claim(f"data-{at}"))
    gang(rig, 2)
    async with rig.running():
        await rig.until(lambda: len(selected(rig)) == 2)
        provision(rig, "data-0")
        await rig.settle(20)
        assert not rig.api.binds, "one of two has no volume yet"
        nodes = selected(rig)
        provision(rig, "data-1")
        await rig.until(lambda: len(rig.bound_of("g")) == 2)
    assert rig.bound_of("g") == {"g-0": nodes["data-0"], "g-1": nodes["data-1"]}
    rig.check()


async def test_who_waits_for_volumes_says_so_until_they_are_there(rig: Rig) -> None:
    hosts(rig, 2)
    rig.api.put("storageclasses", late())
    for at in range(2):
        rig.api.put("persistentvolumeclaims", claim(f"data-{at}"))
    gang(rig, 2)
    async with rig.running():
        await rig.until(lambda: says(rig, "g-1").startswith("waits for the volume of claim data-0"))
        assert (reason(rig, "g-1"), says(rig, "g-1")) == (
            "Reserved",
            f"waits for the volume of claim data-0 on node {selected(rig)['data-0']} and 1 more;"
            " its room is kept",
        )
        for name in selected(rig):
            provision(rig, name)
        await rig.until(lambda: len(rig.bound_of("g")) == 2)
        await rig.until(lambda: rig.api.get("podgroups", "g")["status"]["phase"] == "Running")
        told = rig.api.get("podgroups", "g")["status"]["conditions"]
    assert {each["type"]: each["status"] for each in told} == {
        "Scheduled": "True",
        "Unschedulable": "False",
    }


async def test_others_start_while_volumes_are_made(rig: Rig) -> None:
    hosts(rig, 3)
    rig.api.put("storageclasses", late())
    rig.api.put("persistentvolumeclaims", claim("data-0"))
    gang(rig, 1)
    async with rig.running(gangs_in_flight=1):
        await rig.until(lambda: len(selected(rig)) == 1)
        rig.gang("h", 2)
        await rig.until(lambda: len(rig.bound_of("h")) == 2)
        provision(rig, "data-0")
        await rig.until(lambda: len(rig.bound_of("g")) == 1)
    rig.check()


async def test_a_volume_that_cannot_be_made_ends_the_decision_not_the_gang(rig: Rig) -> None:
    hosts(rig, 1)
    rig.api.put("storageclasses", late())
    rig.api.put("persistentvolumeclaims", claim("data-0"))
    gang(rig, 1)
    async with rig.running(claim_patience=30.0):
        await rig.until(lambda: len(selected(rig)) == 1)
        await rig.until(lambda: not selected(rig), within=60)
        assert not rig.api.binds
        await rig.until(lambda: len(selected(rig)) == 1, within=120)
        provision(rig, "data-0")
        await rig.until(lambda: rig.bound_of("g") == {"g-0": "n0"})


async def test_a_provisioner_that_gives_up_is_heard(rig: Rig) -> None:
    hosts(rig, 2)
    rig.api.put("storageclasses", late())
    rig.api.put("persistentvolumeclaims", claim("data-0"))
    gang(rig, 1)
    async with rig.running():
        await rig.until(lambda: len(selected(rig)) == 1)
        await rig.settle(5)
        found = rig.api.get("persistentvolumeclaims", "data-0")
        del found["metadata"]["annotations"][SELECTED]
        rig.api.put("persistentvolumeclaims", found)
        await rig.until(lambda: len(selected(rig)) == 1)
        provision(rig, "data-0")
        await rig.until(lambda: len(rig.bound_of("g")) == 1)


async def give_back(rig: Rig) -> None:
    """As an external provisioner does that lacks the means there (ResourceExhausted)."""
    await rig.settle(1)
    found = rig.api.get("persistentvolumeclaims", "data-0")
    del found["metadata"]["annotations"][SELECTED]
    rig.api.put("persistentvolumeclaims", found)


async def keep_silent(rig: Rig) -> None:
    await rig.until(lambda: not selected(rig), within=60)


@pytest.mark.parametrize("refuse", [give_back, keep_silent])
@pytest.mark.parametrize("alone", [False, True])
async def test_where_no_volume_could_be_made_is_tried_last(
    rig: Rig, refuse: Callable[[Rig], Awaitable[None]], alone: bool
) -> None:
    hosts(rig, 3)
    rig.api.put("storageclasses", late())
    rig.api.put("persistentvolumeclaims", claim("data-0"))
    if alone:
        rig.api.put("pods", pod("g-0", volumes=using("data-0")))
    else:
        gang(rig, 1)
    tried: list[str] = []
    async with rig.running(claim_patience=30.0):
        for _ in range(4):
            await rig.until(lambda: len(selected(rig)) == 1)
            tried.append(selected(rig)["data-0"])
            await refuse(rig)
        assert sorted(tried[:3]) == ["n0", "n1", "n2"]
        # None is left out for good.
        await rig.until(lambda: len(selected(rig)) == 1)
        provision(rig, "data-0")
        await rig.until(lambda: len(rig.bound_of("g")) == 1)


async def test_volumes_made_by_hand_are_taken_where_they_are(rig: Rig) -> None:
    hosts(rig, 3)
    rig.api.put("storageclasses", late("kubernetes.io/no-provisioner"))
    for at in range(2):
        rig.api.put("persistentvolumeclaims", claim(f"data-{at}"))
    for host in ("n1", "n2"):
        rig.api.put("persistentvolumes", volume(f"local-{host}", host))
    gang(rig, 2)

    def volume_controller(write: Write) -> None:
        if "/persistentvolumes/" in write.path:
            reference = write.document["spec"]["claimRef"]
            bind(rig, reference["name"], write.path.rpartition("/")[2])

    rig.api.on_write = volume_controller
    async with rig.running():
        await rig.until(lambda: sorted(rig.bound_of("g").values()) == ["n1", "n2"])
    owners = {
        each["spec"]["claimRef"]["name"]: each["metadata"]["name"]
        for each in rig.api.all("persistentvolumes")
    }
    assert {f"data-{name[-1]}": f"local-{on}" for name, on in rig.bound_of("g").items()} == owners


async def test_a_node_attaches_no_more_volumes_than_its_driver_can(rig: Rig) -> None:
    rig.api.put("nodes", node("n0", 8))
    limit = {"drivers": [{"name": "ebs", "nodeID": "x", "allocatable": {"count": 1}}]}
    rig.api.put("csinodes", {"metadata": {"name": "n0"}, "spec": limit})
    for at in range(2):
        rig.api.put("persistentvolumeclaims", claim(f"data-{at}", volume=f"v{at}"))
        csi = {"driver": "ebs", "volumeHandle": f"h{at}"}
        rig.api.put("persistentvolumes", volume(f"v{at}", "n0", nodeAffinity=None, csi=csi))
        rig.api.put("pods", pod(f"p-{at}", gpus=1, volumes=using(f"data-{at}")))
    async with rig.running():
        await rig.until(lambda: len(rig.api.placed()) == 1)
        await rig.until(lambda: "attachable-volumes-csi-ebs" in says(rig, "p-1"))
        assert GPU not in says(rig, "p-1")
