"""Pods without a gang that nodes turn away: each comes anew, under another name."""

from __future__ import annotations

import asyncio
import re
from itertools import count
from typing import Any

import pytest

from tests.unit.scheduler.double import Write
from tests.unit.scheduler.rig import Rig, node, pod

pytestmark = pytest.mark.looptime

REJECTED = {"phase": "Failed", "reason": "NodeShutdown"}
SOON = 0.05


@pytest.fixture
async def rig() -> Rig:
    return Rig()


def owned_by(kind: str, made: dict[str, Any]) -> dict[str, Any]:
    made["metadata"]["ownerReferences"][0]["kind"] = kind
    return made


def turns_away(rig: Rig, *nodes: str, kind: str = "ReplicaSet") -> list[str]:
    """These nodes will have nobody, and the controller makes another pod each time; whom they
    turned away. `kind` is the controller's."""
    turned: list[str] = []
    names = map("again-{}".format, count())

    def reject(name: str) -> None:
        turned.append(name)
        rig.api.change("pods", name, status=REJECTED)
        asyncio.get_running_loop().call_later(SOON, make_another)

    def make_another() -> None:
        rig.api.put("pods", owned_by(kind, pod(next(names))))

    def hear(write: Write) -> None:
        bound = re.search(r"pods/([^/]+)/binding", write.path)
        if bound and write.document["target"]["name"] in nodes:
            asyncio.get_running_loop().call_later(SOON, reject, bound[1])

    rig.api.on_write = hear
    return turned


def live(rig: Rig) -> dict[str, str]:
    placed = rig.api.placed()
    return {
        name: on
        for name, on in placed.items()
        if rig.api.get("pods", name)["status"]["phase"] != "Failed"
    }


async def test_the_next_pod_of_a_controller_tries_another_node(rig: Rig) -> None:
    """kubernetes#106419: a node turns away whatever is sent to it, and is sent more."""
    rig.nodes(2)
    turned = turns_away(rig, "n0")
    async with rig.running():
        rig.api.put("pods", pod("web-0"))
        await rig.settle(60)
        assert turned == ["web-0"]
        assert live(rig) == {"again-0": "n1"}


async def test_who_waits_hears_of_it_too(rig: Rig) -> None:
    rig.nodes(1)
    turned = turns_away(rig, "n0")
    async with rig.running():
        for number in range(2):
            rig.api.put("pods", pod(f"web-{number}"))
        await rig.until(lambda: rig.api.placed())
        rig.nodes(3)
        await rig.settle(60)
        assert len(turned) == 1
        assert sorted(live(rig).values()) == ["n1", "n2"]


async def test_where_all_nodes_turn_pods_away_the_controllers_pods_stand_back(rig: Rig) -> None:
    rig.nodes(2)
    turned = turns_away(rig, "n0", "n1")
    async with rig.running():
        rig.api.put("pods", pod("web-0"))
        await rig.settle(300)
        # A few a second until it is noticed, then after 1, 2, 4, ... seconds.
        assert 5 < len(turned) < 60
        (waiting,) = (each for each in rig.api.all("pods") if each["status"]["phase"] == "Pending")
        told = waiting["status"]["conditions"][0]["message"]
        assert "pods of its controller away, and are tried again" in told
        before = len(turned)
        await rig.settle(120)
        assert before < len(turned) < before + 4


async def test_the_pods_of_others_do_not_stand_back(rig: Rig) -> None:
    rig.nodes(1)
    turns_away(rig, "n0")
    async with rig.running():
        rig.api.put("pods", pod("web-0"))
        await rig.settle(100)
        turns_away(rig)
        stranger = pod("stranger-0")
        stranger["metadata"]["ownerReferences"][0]["uid"] = "another"
        rig.api.put("pods", stranger)
        await rig.until(lambda: "stranger-0" in live(rig), within=1)


async def test_many_sent_to_one_node_together_need_not_stand_back(rig: Rig) -> None:
    rig.nodes(1, gpus=32)
    turned = turns_away(rig, "n0")
    async with rig.running():
        for number in range(16):
            rig.api.put("pods", pod(f"web-{number}"))
            await rig.settle(0.02)
        rig.api.put("nodes", node("n1", gpus=32))
        await rig.until(lambda: len(turned) >= 16 and len(live(rig)) == 16, within=1)
        assert set(live(rig).values()) == {"n1"}


@pytest.mark.parametrize(("later", "on"), [(60, "n1"), (900, "n0")])
async def test_a_node_is_forgiven_after_a_while(rig: Rig, later: float, on: str) -> None:
    rig.nodes(2)
    turns_away(rig, "n0")
    async with rig.running():
        rig.api.put("pods", pod("web-0"))
        await rig.until(lambda: live(rig) == {"again-0": "n1"})
        turns_away(rig)
        await rig.settle(later)
        rig.api.delete("pods", "again-0")
        rig.api.put("pods", pod("web-1"))
        await rig.until(lambda: live(rig) == {"web-1": on})


def only_on(on: str) -> dict[str, Any]:
    there = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [on]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [there]}}
    return {"nodeAffinity": required}


async def test_what_one_node_does_to_a_daemon_says_nothing_of_the_next(rig: Rig) -> None:
    rig.nodes(1)
    turned = turns_away(rig, "n0", kind="DaemonSet")
    async with rig.running():
        rig.api.put("pods", owned_by("DaemonSet", pod("agent-0")))
        await rig.until(lambda: len(turned) > 40)
        rig.nodes(2)
        rig.api.put("pods", owned_by("DaemonSet", pod("agent-1", affinity=only_on("n1"))))
        await rig.until(lambda: live(rig).get("agent-1") == "n1", within=0.5)
