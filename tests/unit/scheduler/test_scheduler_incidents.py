"""What broke other schedulers between the API server and themselves.

Each test begins with the issues that it retells, and then with the fault that they share.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Coroutine
from itertools import pairwise
from typing import Any

import pytest

from posse.engine.policy import Policy
from posse.kube.transport import Response
from posse.world import World
from tests.unit.scheduler.double import Api, Fault, Write
from tests.unit.scheduler.rig import GPU, Rig, crash, group, node, pod

pytestmark = pytest.mark.looptime

BINDING = "/binding$"


@pytest.fixture
async def rig() -> Rig:
    return Rig()


def nothing(method: str, path: str) -> None:
    return None


def on(pattern: str, fault: str | int | Response, *methods: str) -> Fault:
    def decide(method: str, path: str) -> str | int | Response | None:
        return fault if method in (methods or ("POST",)) and re.search(pattern, path) else None

    return decide


def binds_tried(rig: Rig) -> list[str]:
    return [re.findall(r"pods/([^/]+)/", p)[0] for _, _, p in rig.api.attempts if "/binding" in p]


# -- no partial gang ---------------------------------------------------------------------------


STEPS: dict[str, Fault] = {
    "its group cannot be read": on("podgroups/train$", 500, "GET"),
    "its held seats cannot be written": on("podgroups/train$", 500, "PATCH"),
    "they are written, and nobody is told": on("podgroups/train$", "lose", "PATCH"),
}


@pytest.mark.parametrize("step", STEPS)
async def test_a_step_before_the_binds_fails(rig: Rig, step: str) -> None:
    """volcano#4383: the group does not say that it runs, and nobody is bound."""
    rig.nodes(3)
    announced = [{"role": "launcher", "count": 1, "requests": {GPU: "2"}}]
    annotations = {"posse.dev/expects": json.dumps(announced)}
    rig.api.put("podgroups", group("train", 2, annotations=annotations))
    for index in range(2):
        rig.api.put("pods", pod(f"train-{index}", "train"))
    rig.api.fault = STEPS[step]
    async with rig.running():
        await rig.settle(60)
        if "told" not in step:
            assert rig.api.placed() == {}
            assert rig.phase("train") != "Running"
        rig.api.fault = nothing
        await rig.until(lambda: len(rig.bound_of("train")) == 2, within=120)
    rig.check()


async def test_a_node_turns_a_pod_away(rig: Rig) -> None:
    """kube-batch#938: what was bound and never ran is completed elsewhere, or let go whole."""
    rig.nodes(2)
    async with rig.running():
        rig.gang("train", 2)
        await rig.until(lambda: len(rig.bound_of("train")) == 2)
        lost = next(name for name, at in rig.bound_of("train").items() if at == "n0")
        stranger = pod("stranger", nodeName="n0", scheduler="other")
        rig.api.put("pods", stranger)
        rig.api.change("pods", lost, status={"phase": "Failed", "reason": "OutOfnvidia.com/gpu"})
        rig.api.delete("pods", lost)
        rig.api.put("pods", pod(lost, "train"))
        await rig.until(lambda: not rig.bound_of("train"), within=120)
        await rig.settle()
        assert rig.phase("train") != "Running"
        assert "GangReleased" in [reason for reason, _ in rig.events("train")]


# -- no overcommit -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["pods", "nodes", "podgroups", "queues", "priorityclasses"])
async def test_a_restart_while_one_list_is_slow(rig: Rig, kind: str) -> None:
    """volcano#5174, volcano#2821, kubernetes#45220, kueue#1450: nothing is decided before all of
    it is known, and then no more than there is room and quota for."""
    rig.nodes(3)
    rig.api.put("queues", {"metadata": {"name": "default"}, "spec": {"capability": {GPU: "4"}}})
    rig.api.put("priorityclasses", {"metadata": {"name": "high"}, "value": 100})
    rig.api.put("podgroups", group("old", 1) | {"status": {"phase": "Running"}})
    rig.api.put("pods", pod("old-0", "old", nodeName="n0") | {"status": {"phase": "Running"}})
    classes: dict[str, dict[str, Any]] = {"low": {}, "high": {"priorityClassName": "high"}}
    for name, like in classes.items():
        rig.api.put("podgroups", group(name, 1, **like))
        rig.api.put("pods", pod(f"{name}-0", name, scheduler="posse"))
    rig.api.fault = on(f"/{kind}$", "drop", "GET")
    async with rig.running():
        await rig.settle(40)
        assert binds_tried(rig) == []
        rig.api.fault = nothing
        await rig.until(lambda: rig.bound_of("high"), within=60)
        await rig.settle(10)
        assert sorted(rig.api.placed()) == ["high-0", "old-0"]
    rig.check()


async def test_a_restart_while_events_are_slow(rig: Rig) -> None:
    """volcano#2821: what was listed counts, whatever the watches have not told yet."""
    rig.nodes(2)
    rig.gang("a", 1)
    async with rig.running():
        await rig.until(lambda: rig.bound_of("a"))
    rig.api.hold_back("pods", "nodes", "podgroups")
    rig.gang("b", 1)
    async with rig.running():
        await rig.until(lambda: rig.bound_of("b"))
        rig.gang("c", 1)
        await rig.settle()
        rig.api.catch_up()
        await rig.settle()
        assert rig.bound_of("c") == {}
    rig.check()


async def test_a_leader_dies_with_binds_in_flight(rig: Rig) -> None:
    """kubernetes#136782: who leads next lists first, and finds what arrived without its sender."""
    rig.nodes(2)
    rig.gang("train", 2)
    rig.api.latency = 1.0
    task = rig.start(identity="first")
    await rig.until(lambda: any(w.path.endswith("/status") for w in rig.api.writes), within=60)
    await rig.until(lambda: len(rig.api.sent("POST", BINDING)) > 0, within=60)
    await crash(task)
    rig.api.latency = 0.001
    rig.api.put("podgroups", group("thief", 1))
    rig.api.put("pods", pod("thief-0", "thief", priority=1000))
    async with rig.running(identity="second", policy=Policy(preemption=False)):
        await rig.until(lambda: rig.phase("train") == "Running")
        await rig.settle()
    assert rig.bound_of("thief") == {}
    rig.check()


async def test_two_leaders_of_two_leases_and_one_slot(rig: Rig) -> None:
    """kubernetes#60469: each pod is bound once, and the one without a seat waits for it."""
    rig.nodes(1)
    async with rig.running(), rig.running(identity="two", namespace="elsewhere"):
        await rig.settle()
        for name in ("a", "b"):
            rig.gang(name, 1)
        await rig.settle(20)
        assert len(rig.api.placed()) == 1
        winner = next(iter(rig.api.placed()))
        rig.api.delete("pods", winner)
        await rig.until(lambda: rig.api.placed())
        assert winner not in rig.api.placed()
    rig.check()


@pytest.mark.parametrize("gang", [1, 3])
async def test_two_leaders_bind_the_same_gang(rig: Rig, gang: int) -> None:
    """kubernetes#60469: whoever comes second takes what the first did as it is."""
    rig.nodes(4)
    async with rig.running(), rig.running(identity="two", namespace="elsewhere", debounce=0.0035):
        await rig.settle()
        rig.gang("train", gang)
        await rig.until(lambda: rig.phase("train") == "Running")
        await rig.settle()
        assert len(rig.bound_of("train")) == gang
        assert rig.api.sent("POST", "eviction$") == []
    rig.check()


def apart(name: str) -> dict[str, Any]:
    """A pod that shares its node with no other of its kind."""
    term = {
        "labelSelector": {"matchLabels": {"app": "db"}},
        "topologyKey": "kubernetes.io/hostname",
    }
    rule = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    made = pod(name, gpus=1, affinity=rule)
    made["metadata"]["labels"] = {"app": "db"}
    return made


async def test_pods_that_avoid_each_other_and_one_node(rig: Rig) -> None:
    """volcano#3138: never two, also while the first one's bind is not confirmed."""
    one = node("n0", 4)
    one["metadata"]["labels"] = {"kubernetes.io/hostname": "n0"}
    rig.api.put("nodes", one)
    async with rig.running():
        await rig.settle()
        rig.api.put("pods", apart("a"))
        rig.api.hold_back("pods")
        await rig.until(lambda: rig.api.placed())
        rig.api.catch_up()
        rig.api.put("pods", apart("b"))
        await rig.settle(10)
        assert rig.api.placed() == {"a": "n0"}
        rig.api.delete("pods", "a")
        await rig.until(lambda: rig.api.placed() == {"b": "n0"})


class Late(Api):
    """Says nothing to binds of one pod, and does what they ask long after."""

    def __init__(self, world: World, name: str, delay: float) -> None:
        super().__init__(world)
        self._late = f"/{name}/binding"
        self._delay = delay
        self.arriving: list[asyncio.Task[Response]] = []

    async def _answer(self, method: str, path: str, body: bytes | None) -> Response:
        if not path.endswith(self._late):
            return await super()._answer(method, path, body)
        later = super()._answer(method, path, body)
        self.arriving.append(asyncio.create_task(self._arrive(later)))
        return Response(0, {}, b"")

    async def _arrive(self, later: Coroutine[Any, Any, Response]) -> Response:
        await asyncio.sleep(self._delay)
        return await later


async def test_a_bind_that_arrives_after_it_was_given_up(rig: Rig) -> None:
    """kubernetes#136782: by then its seat is another's, and it must not succeed any more."""
    rig.api = late = Late(rig.world, "lost-0", 60.0)
    rig.nodes(1)
    async with rig.running():
        rig.gang("lost", 1)
        await rig.until(lambda: late.arriving)
        rig.gang("next", 1)
        await rig.until(lambda: rig.bound_of("next"), within=50)
        await asyncio.gather(*late.arriving)
        await rig.settle()
        assert rig.api.placed() == {"next-0": "n0"}
    rig.check()


async def test_a_bind_that_cannot_be_called_off_may_still_arrive(rig: Rig) -> None:
    """kubernetes#136782: while it may, its seat is nobody else's."""
    rig.api = Late(rig.world, "lost-0", 60.0)
    rig.nodes(1)
    rig.api.fault = on("pods/lost-0/status$", 500, "PATCH")
    async with rig.running():
        rig.gang("lost", 1)
        await rig.settle(1)
        rig.gang("next", 1)
        await rig.settle(120)
        assert rig.api.placed() == {"lost-0": "n0"}
    rig.check()


# -- no starvation -----------------------------------------------------------------------------


async def test_a_bind_that_is_always_denied(rig: Rig) -> None:
    """kai#2075: it is tried less and less often, and others go on at once."""
    rig.nodes(2)
    rig.api.fault = on("bad-0/binding$", 403)
    async with rig.running():
        rig.gang("bad", 1)
        await rig.settle(120)
        tried = binds_tried(rig).count("bad-0")
        assert tried <= 10
        for index in range(4):
            rig.gang(f"good{index}", 1)
            await rig.until(lambda index=index: rig.bound_of(f"good{index}"), within=1)  # type: ignore[misc]
            rig.api.delete("pods", f"good{index}-0")
        await rig.settle(120)
        assert 1 <= binds_tried(rig).count("bad-0") - tried <= 4
        rig.api.fault = nothing
        await rig.settle(80)
        assert rig.bound_of("bad")


async def test_a_webhook_that_denies_half_of_a_gang(rig: Rig) -> None:
    """kai#2075, scheduler-plugins#713: in the end it holds nothing, and whoever fits goes on."""
    rig.nodes(2)
    rig.api.fault = on("bad-1/binding$", 403)
    async with rig.running():
        rig.gang("bad", 2)
        await rig.until(lambda: len(rig.bound_of("bad")) == 1)
        rig.gang("good", 2)
        await rig.until(lambda: rig.phase("good") == "Running", within=180)
        assert rig.bound_of("bad") == {}
    rig.check()


# -- others end only to place somebody ---------------------------------------------------------


def runs(rig: Rig, name: str, *nodes: str) -> None:
    """A gang that runs, one pod on each node."""
    rig.api.put("podgroups", group(name, len(nodes)) | {"status": {"phase": "Running"}})
    for index, at in enumerate(nodes):
        made = pod(f"{name}-{index}", name, nodeName=at, priority=0)
        rig.api.put("pods", made | {"status": {"phase": "Running"}})


def urgent(rig: Rig, name: str, members: int, *, gpus: int = 2) -> None:
    rig.api.put("podgroups", group(name, members))
    for index in range(members):
        rig.api.put("pods", pod(f"{name}-{index}", name, gpus, priority=10))


def evicted(rig: Rig) -> list[str]:
    return sorted(
        re.findall(r"pods/([^/]+)/", w.path)[0] for w in rig.api.sent("POST", "eviction$")
    )


async def test_a_gang_that_was_ended_does_not_say_that_it_runs(rig: Rig) -> None:
    """volcano#2685: not while its pods go, nor while those that took their place wait."""
    rig.nodes(2)
    rig.api.lingering = True
    runs(rig, "old", "n0", "n1")
    urgent(rig, "new", 2)
    async with rig.running():
        await rig.until(lambda: len(evicted(rig)) == 2)
        await rig.settle(5)
        assert rig.phase("old") != "Running"
        for index in range(2):
            rig.api.delete("pods", f"old-{index}")
            rig.api.put("pods", pod(f"old-{index}", "old", priority=0))
        await rig.until(lambda: rig.phase("new") == "Running")
        await rig.settle(5)
        assert rig.phase("old") in ("Pending", "Inqueue")
    rig.check()


async def test_what_a_follower_never_saw_ends_nobody(rig: Rig) -> None:
    """kueue#10495: it lists when it leads, and what it thought before is nothing."""
    rig.nodes(2)
    runs(rig, "old", "n0", "n1")
    async with rig.running(identity="first"):
        await rig.settle()
        waiting = rig.start(identity="second")
        await rig.settle()
        urgent(rig, "new", 2)
        await rig.until(lambda: rig.phase("new") == "Running")
        for index in range(2):
            rig.api.put("pods", pod(f"old-{index}", "old", priority=0))
        await rig.settle()
    try:
        await rig.settle(60)
        assert rig.api.get("leases", "posse-scheduler", "kube-system")["spec"][
            "holderIdentity"
        ] == ("second")
        assert evicted(rig) == ["old-0", "old-1"]
        assert rig.bound_of("old") == {}
        assert len(rig.bound_of("new")) == 2
    finally:
        await crash(waiting)


async def test_a_preemptor_that_changed_unseen_ends_nobody(rig: Rig) -> None:
    """volcano#4926: what it asks is read once more before anybody is ended for it."""
    rig.nodes(2)
    runs(rig, "old", "n0", "n1")
    rig.api.put("podgroups", group("new", 2))
    rig.api.put("pods", pod("new-0", "new", priority=10))
    async with rig.running():
        await rig.settle()
        rig.api.hold_back("podgroups")
        rig.api.change("podgroups", "new", spec={"minMember": 3})
        rig.api.put("pods", pod("new-1", "new", priority=10))
        await rig.settle(60)
        assert evicted(rig) == []
        rig.api.catch_up()
        await rig.settle(10)
        assert evicted(rig) == []


# -- once, and by one --------------------------------------------------------------------------


async def test_a_job_applied_again_while_its_pods_go(rig: Rig) -> None:
    """training-operator#1306, volcano#2284: those that go are no members, and take their room."""
    rig.nodes(2)
    async with rig.running():
        rig.gang("train", 2)
        await rig.until(lambda: rig.phase("train") == "Running")
        going = {"deletionTimestamp": "2020-09-13T12:26:40Z"}
        for index in range(2):
            rig.api.change("pods", f"train-{index}", metadata=going)
        rig.api.delete("podgroups", "train")
        rig.api.put("podgroups", group("train", 2))
        for index in range(2, 4):
            rig.api.put("pods", pod(f"train-{index}", "train"))
        await rig.settle(10)
        assert sorted(rig.bound_of("train")) == ["train-0", "train-1"]
        assert rig.phase("train") == "Inqueue"
        rig.api.delete("pods", "train-0")
        await rig.settle(10)
        assert sorted(rig.bound_of("train")) == ["train-1"]
        assert rig.phase("train") == "Inqueue"
        rig.api.delete("pods", "train-1")
        await rig.until(lambda: sorted(rig.bound_of("train")) == ["train-2", "train-3"])
        await rig.until(lambda: rig.phase("train") == "Running")
    rig.check()


async def test_finished_work_at_a_restart(rig: Rig) -> None:
    """kueue#8186: it is not begun again, and nothing is written about it."""
    rig.nodes(2)
    async with rig.running():
        rig.gang("train", 2)
        await rig.until(lambda: rig.phase("train") == "Running")
        for index in range(2):
            rig.api.change("pods", f"train-{index}", status={"phase": "Succeeded"})
        await rig.settle(10)
    binds, phase = len(rig.api.binds), rig.phase("train")
    writes = len(rig.api.sent("PATCH", "/(pods|podgroups)/"))
    async with rig.running():
        await rig.settle(60)
    assert len(rig.api.binds) == binds
    assert rig.phase("train") == phase
    assert len(rig.api.sent("PATCH", "/(pods|podgroups)/")) == writes


# -- nodes and inputs --------------------------------------------------------------------------


def ready(status: str) -> dict[str, Any]:
    return {"conditions": [{"type": "Ready", "status": status}]}


@pytest.mark.parametrize("status", ["False", "Unknown"])
async def test_a_node_that_was_away(rig: Rig, status: str) -> None:
    """volcano#1492: not ready it is not used, ready again it is."""
    rig.nodes(2)
    rig.api.change("nodes", "n1", status=ready(status))
    async with rig.running():
        rig.gang("train", 2)
        await rig.settle(30)
        assert rig.api.placed() == {}
        rig.api.change("nodes", "n1", status=ready("True"))
        await rig.until(lambda: len(rig.bound_of("train")) == 2, within=5)


async def test_a_node_whose_end_was_missed(rig: Rig) -> None:
    """kubernetes#94437: the list that follows a lost watch ends it, with what sat there."""
    rig.nodes(2)
    async with rig.running():
        await rig.settle()
        rig.api.hold_back("nodes", "pods")
        rig.api.delete("nodes", "n1")
        rig.api.forget()
        rig.gang("train", 2)
        await rig.settle(30)
        assert rig.api.placed() == {}
        rig.api.put("nodes", node("n1"))
        await rig.until(lambda: len(rig.bound_of("train")) == 2, within=30)
    rig.check()


async def test_everything_that_a_lost_watch_kept_back(rig: Rig) -> None:
    """watch closed, 410 Gone: pods that ended, came or were bound elsewhere are known after it."""
    rig.nodes(3)
    rig.gang("a", 1)
    rig.gang("b", 1)
    async with rig.running():
        await rig.until(lambda: len(rig.api.placed()) == 2)
        rig.api.hold_back("pods", "podgroups", "nodes")
        rig.api.delete("pods", "a-0")
        rig.api.put("pods", pod("stranger", nodeName="n2", scheduler="other"))
        rig.gang("c", 1)
        rig.gang("d", 1)
        rig.api.forget()
        await rig.until(lambda: rig.bound_of("c"), within=60)
        await rig.settle(10)
        assert rig.bound_of("d") == {}
    rig.check()


WAYS_TO_GO: dict[str, Callable[[Rig, str], object]] = {
    "cordoned": lambda rig, name: rig.api.change("nodes", name, spec={"unschedulable": True}),
    "deleted": lambda rig, name: rig.api.delete("nodes", name),
    "not ready": lambda rig, name: rig.api.change("nodes", name, status=ready("Unknown")),
}


@pytest.mark.parametrize("way", WAYS_TO_GO)
async def test_a_node_goes_in_mid_gang(rig: Rig, way: str) -> None:
    """node NotReady/deleted/cordoned mid-gang: nobody is sent there, and the gang is whole."""
    rig.nodes(6)
    gone: list[str] = []

    def go(write: Write) -> None:
        if write.path.endswith("/binding") and not gone:
            gone.append("n3")
            WAYS_TO_GO[way](rig, "n3")

    rig.api.on_write = go
    async with rig.running(binds_in_flight=1):
        rig.gang("train", 4)
        await rig.until(lambda: gone, within=10)
        if way == "deleted":
            # What was bound there goes with it, and is made again.
            await rig.settle(5)
            for name, at in list(rig.bound_of("train").items()):
                if at == "n3":
                    rig.api.delete("pods", name)
                    rig.api.put("pods", pod(name, "train"))
        await rig.until(lambda: len(rig.bound_of("train")) == 4, within=120)
        await rig.until(lambda: rig.phase("train") == "Running", within=120)
    if way == "deleted":
        assert "n3" not in rig.bound_of("train").values()
    else:
        rig.check()


def claiming(name: str, claim: str, **like: Any) -> dict[str, Any]:
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": claim}}
    return pod(name, gpus=1, volumes=[volume], **like)


async def test_a_claim_that_does_not_exist(rig: Rig) -> None:
    """volcano#1073: its pod waits and says for what; others go on."""
    rig.api.served |= {"persistentvolumeclaims", "persistentvolumes", "storageclasses"}
    rig.nodes(1)
    async with rig.running():
        rig.api.put("pods", claiming("a", "data"))
        rig.api.put("pods", pod("b", gpus=1))
        await rig.until(lambda: rig.api.placed() == {"b": "n0"})
        await rig.settle(10)
        assert rig.api.placed() == {"b": "n0"}
        assert "data" in rig.api.condition("pods", "a", "PodScheduled")["message"]


async def test_a_claim_for_one_pod_alone_in_use(rig: Rig) -> None:
    """volcano#5767: the second pod waits, and goes when the first one has."""
    rig.api.served |= {"persistentvolumeclaims", "persistentvolumes", "storageclasses"}
    rig.nodes(2)
    claim = {
        "metadata": {"name": "data", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {"accessModes": ["ReadWriteOncePod"], "volumeName": "v", "resources": {}},
        "status": {"phase": "Bound"},
    }
    volume = {
        "metadata": {"name": "v", "namespace": ""},
        "spec": {"claimRef": {"namespace": "ns", "name": "data"}},
        "status": {"phase": "Bound"},
    }
    rig.api.put("persistentvolumes", volume)
    rig.api.put("persistentvolumeclaims", claim)
    async with rig.running():
        rig.api.put("pods", claiming("a", "data"))
        await rig.until(lambda: "a" in rig.api.placed())
        rig.api.put("pods", claiming("b", "data"))
        await rig.settle(10)
        assert sorted(rig.api.placed()) == ["a"]
        rig.api.delete("pods", "a")
        await rig.until(lambda: sorted(rig.api.placed()) == ["b"])


async def test_the_seat_of_a_pod_that_is_gone_unseen(rig: Rig) -> None:
    """kubernetes#94437: that nobody is there to be bound is learnt from the bind itself."""
    rig.gang("a", 1)
    rig.gang("b", 1)
    async with rig.running():
        await rig.settle()
        rig.api.hold_back("pods")
        rig.api.delete("pods", "a-0")
        rig.nodes(1)
        await rig.until(lambda: rig.bound_of("b"), within=10)
        assert binds_tried(rig) == ["a-0", "b-0"]


# -- faults ------------------------------------------------------------------------------------


async def test_a_server_that_says_when_to_come_back(rig: Rig) -> None:
    """429 with Retry-After: nobody asks again before that."""
    rig.nodes(1)
    busy = Response(429, {"retry-after": "7"}, b'{"kind":"Status","code":429}')
    rig.api.fault = on(BINDING, busy)
    async with rig.running():
        await rig.settle()
        rig.api.put("pods", pod("a"))
        await rig.settle(20)
        times = [at for at, _, path in rig.api.attempts if path.endswith("/binding")]
        assert len(times) >= 2
        assert all(later - earlier >= 6.9 for earlier, later in pairwise(times))
        rig.api.fault = nothing
        await rig.until(lambda: rig.api.placed(), within=60)


async def test_a_slow_store(rig: Rig) -> None:
    """slow store: every answer takes seconds, and all that was decided is done once."""
    rig.nodes(4)
    rig.api.latency = 1.0
    async with rig.running():
        rig.gang("a", 2)
        rig.gang("b", 3)
        rig.gang("c", 2)
        await rig.until(lambda: len(rig.api.placed()) == 4, within=300)
        await rig.settle(60)
        assert sorted(len(rig.bound_of(name)) for name in "abc") in ([0, 2, 2],)
    rig.check()


@pytest.mark.parametrize("ahead", [-7200.0, 7200.0])
async def test_the_servers_clock_is_hours_off(rig: Rig, ahead: float) -> None:
    """clock skew: a gang that has just got its nodes has not had them for hours."""
    rig.nodes(2)
    rig.api.skew = ahead
    async with rig.running():
        rig.gang("train", 2)
        await rig.until(lambda: len(rig.bound_of("train")) == 2)
        await rig.settle(600)
        assert rig.api.sent("POST", "eviction$") == []
        assert len(rig.bound_of("train")) == 2
        # That its pods never come to run is noticed in due time all the same.
        await rig.settle(1260)
        assert rig.bound_of("train") == {}


async def test_a_scheduler_that_dies_does_not_make_a_late_gang_early(rig: Rig) -> None:
    """What was waited for before a restart counts after it."""
    rig.nodes(2)
    async with rig.running():
        rig.gang("train", 2)
        await rig.settle(1200)
        assert len(rig.bound_of("train")) == 2
    async with rig.running():
        await rig.settle(500)
        assert len(rig.bound_of("train")) == 2
        await rig.settle(200)
        assert rig.bound_of("train") == {}


@pytest.mark.parametrize("created", ["2035-01-01T00:00:00Z", "1990-01-01T00:00:00Z"])
async def test_objects_from_another_time(rig: Rig, created: str) -> None:
    """clock skew: what was made in the future, or long ago, is served like all others."""
    rig.nodes(2)
    made = group("train", 2)
    made["metadata"]["creationTimestamp"] = created
    rig.api.put("podgroups", made)
    for index in range(2):
        member = pod(f"train-{index}", "train")
        member["metadata"]["creationTimestamp"] = created
        rig.api.put("pods", member)
    async with rig.running():
        await rig.until(lambda: rig.phase("train") == "Running", within=10)


async def test_a_member_killed_for_its_memory_in_a_full_cluster(rig: Rig) -> None:
    """OOM in a full cluster: its seat is its successor's, whoever waits in front."""
    rig.nodes(3)
    async with rig.running(policy=Policy(preemption=False)):
        rig.gang("train", 3)
        await rig.until(lambda: len(rig.bound_of("train")) == 3)
        for index in range(3):
            rig.api.change("pods", f"train-{index}", status={"phase": "Running"})
        rig.api.put("podgroups", group("thief", 1))
        rig.api.put("pods", pod("thief-0", "thief", priority=1000))
        await rig.settle()
        rig.api.change("pods", "train-1", status={"phase": "Failed", "reason": "OOMKilled"})
        await rig.settle(5)
        rig.api.delete("pods", "train-1")
        await rig.settle(5)
        assert rig.bound_of("thief") == {}
        rig.api.put("pods", pod("train-1", "train"))
        await rig.until(lambda: len(rig.bound_of("train")) == 3)
        assert rig.bound_of("thief") == {}
    rig.check()


async def test_thousands_of_annotations_and_one_huge_pod(rig: Rig) -> None:
    """bad and huge manifests: a quarter of a megabyte of labels is somebody's pod like another."""
    rig.nodes(1)
    huge = pod("huge", gpus=1)
    huge["metadata"]["annotations"] = {f"key-{at}": "x" * 200 for at in range(1000)}
    huge["metadata"]["labels"] = {f"label-{at}": "x" * 60 for at in range(500)}
    huge["spec"]["nodeSelector"] = {}
    huge["spec"]["tolerations"] = [{"key": f"k{at}", "operator": "Exists"} for at in range(2000)]
    many = pod("greedy", gpus=10**15)
    async with rig.running():
        rig.api.put("pods", many)
        rig.api.put("pods", huge)
        await rig.until(lambda: rig.api.placed() == {"huge": "n0"})
        await asyncio.sleep(10)
        assert rig.api.placed() == {"huge": "n0"}
