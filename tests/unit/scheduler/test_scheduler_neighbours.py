"""Nodes that are shared with another scheduler: the room it makes for its own pods is theirs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.scheduler.rig import Object, Rig, node, pod

A100 = {"key": "gpu", "operator": "In", "values": ["a100"]}
REQUIRED = {
    "requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [A100]}]
    }
}
TAINT = {"key": "dedicated", "effect": "NoSchedule"}


@pytest.fixture
async def rig() -> Rig:
    rig = Rig()
    rig.nodes(1)
    return rig


def theirs(name: str, on: str, **fields: Any) -> Object:
    made = pod(name, scheduler="default-scheduler")
    made["status"]["nominatedNodeName"] = on
    return made | fields


@pytest.mark.looptime
async def test_room_that_is_made_for_another_schedulers_pod_is_not_taken(rig: Rig) -> None:
    rig.api.put("pods", theirs("urgent", "n0"))
    rig.api.put("pods", pod("ours"))
    async with rig.running():
        await rig.settle(10)
        assert rig.api.placed() == {}
        rig.api.put("nodes", rig.api.get("nodes", "n0") | {"metadata": {"name": "n1"}})
        await rig.until(lambda: rig.api.placed() == {"ours": "n1"})


@pytest.mark.looptime
@pytest.mark.parametrize("how", ["cleared", "elsewhere", "deleted", "deleting", "ended"])
async def test_it_is_free_again_when_nobody_waits_for_it(rig: Rig, how: str) -> None:
    rig.api.put("pods", theirs("urgent", "n0"))
    rig.api.put("pods", pod("ours"))
    async with rig.running():
        await rig.settle(10)
        assert rig.api.placed() == {}
        if how == "cleared":
            rig.api.change("pods", "urgent", status={"nominatedNodeName": None})
        elif how == "elsewhere":
            rig.api.change("pods", "urgent", spec={"nodeName": "n9"})
        elif how == "deleted":
            rig.api.delete("pods", "urgent")
        elif how == "deleting":
            gone = {"deletionTimestamp": "2020-09-13T12:26:40Z"}
            rig.api.change("pods", "urgent", metadata=gone)
        else:
            rig.api.change("pods", "urgent", status={"phase": "Failed"})
        await rig.until(lambda: rig.api.placed().get("ours") == "n0")


@pytest.mark.looptime
async def test_who_waits_for_it_is_named_and_not_taken_for_a_job_that_runs(rig: Rig) -> None:
    rig.api.put("pods", theirs("urgent", "n0"))
    async with rig.running():
        rig.gang("g", 1)
        await rig.until(lambda: rig.api.condition("podgroups", "g", "Unschedulable"))
        told = rig.api.condition("podgroups", "g", "Unschedulable")["message"]
        assert "0 of 2 are free, 2 held for ns/urgent" in told
        assert "max runtime" not in told
        rig.api.change("pods", "urgent", spec={"nodeName": "n0"})
        await rig.until(
            lambda: "held" not in rig.api.condition("podgroups", "g", "Unschedulable")["message"]
        )


@pytest.mark.looptime
@pytest.mark.parametrize(
    "asks",
    [
        {"nodeSelector": {"gpu": "a100"}},
        {"affinity": {"nodeAffinity": REQUIRED}},
        {"tolerations": []},
    ],
    ids=lambda asks: next(iter(asks)),
)
async def test_a_promise_that_cannot_come_true_keeps_nobody_off_until_it_can(
    rig: Rig, asks: Object
) -> None:
    barred = rig.api.get("nodes", "n0")
    barred["spec"]["taints"] = [] if "tolerations" not in asks else [TAINT]
    rig.api.put("nodes", barred)
    rig.api.put("pods", theirs("stale", "n0"))
    rig.api.change("pods", "stale", spec=asks)
    rig.api.put("pods", pod("ours", gpus=1, tolerations=[{"operator": "Exists"}]))
    async with rig.running():
        await rig.until(lambda: rig.api.placed() == {"ours": "n0"})
        rig.api.delete("pods", "ours")
        rig.api.put("nodes", node("n0", metadata={"name": "n0", "labels": {"gpu": "a100"}}))
        await rig.settle()
        rig.api.put("pods", pod("later"))
        await rig.settle(10)
        assert rig.api.placed() == {}


@pytest.mark.looptime
async def test_a_promise_that_nobody_can_read_is_none_and_is_nobodys_fault(rig: Rig) -> None:
    odd = theirs("odd", "n0")
    odd["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "many"
    rig.api.put("pods", odd)
    rig.api.put("pods", theirs("claims", "n0"))
    rig.api.change(
        "pods", "claims", spec={"volumes": [{"persistentVolumeClaim": {"claimName": "no"}}]}
    )
    rig.api.put("pods", pod("ours"))
    async with rig.running():
        await rig.until(lambda: rig.api.placed() == {"ours": "n0"})
        assert rig.events("odd") == rig.events("claims") == []


@pytest.mark.looptime
async def test_what_is_said_of_our_own_pods_binds_nobody(rig: Rig) -> None:
    """Only what the engine keeps does: a nomination may be older than its scheduler."""
    stale = pod("stale", gpus=4)
    stale["status"]["nominatedNodeName"] = "n0"
    rig.api.put("pods", stale)
    rig.api.put("pods", pod("ours"))
    async with rig.running():
        await rig.until(lambda: rig.api.placed() == {"ours": "n0"})


@pytest.mark.looptime
async def test_a_member_that_another_scheduler_ended_does_not_return_to_the_room_made_by_that(
    rig: Rig,
) -> None:
    """Its seat would be kept for its successor, which would then be ended again."""
    rig.nodes(3)
    rig.gang("train", 2)
    async with rig.running():
        await rig.until(lambda: len(rig.bound_of("train")) == 2)
        for name in rig.bound_of("train"):
            rig.api.change("pods", name, status={"phase": "Running"})
        await rig.settle()
        node = rig.bound_of("train")["train-0"]
        rig.api.put("pods", theirs("urgent", node))
        rig.api.delete("pods", "train-0")
        rig.api.put("pods", pod("train-2", "train"))
        await rig.until(lambda: len(rig.bound_of("train")) == 2)
        assert node not in rig.bound_of("train").values()
