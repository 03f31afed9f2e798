"""Queues from objects to writes: how they are read, what they let in, and what they tell."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from posse.engine.facts import QueueFacts
from posse.engine.policy import Policy
from posse.objects.groups import Queue
from posse.objects.keys import NAMESPACES, QUEUE_NAME
from posse.scheduler.reading.queues import is_open, read_queue
from posse.scheduler.tallying import queue_status
from tests.unit.scheduler.rig import GPU, Object, Rig, group, pod

pytestmark = pytest.mark.looptime

NOTHING = dict.fromkeys(("pending", "inqueue", "running", "unknown", "completed"), 0)


@pytest.fixture
async def rig() -> Rig:
    return Rig()


def document(
    name: str = "q", *, allowed: str | None = None, state: str = "", **spec: Any
) -> Object:
    meta: Object = {"name": name}
    if allowed is not None:
        meta["annotations"] = {NAMESPACES: allowed}
    return {"metadata": meta, "spec": spec, "status": {"state": state} if state else {}}


def queue(**like: Any) -> Queue:
    return msgspec.convert(document(**like), Queue)


def gang(rig: Rig, name: str, members: int, queue: str, gpus: int = 2) -> None:
    rig.api.put("podgroups", group(name, members, queue=queue))
    for index in range(members):
        rig.api.put("pods", pod(f"{name}-{index}", name, gpus))


def reason(rig: Rig, name: str) -> str:
    return str(rig.api.condition("podgroups", name, "Unschedulable")["reason"])


def sentence(rig: Rig, name: str) -> str:
    return str(rig.api.condition("podgroups", name, "Unschedulable")["message"])


# -- reading -----------------------------------------------------------------------------------

LABELS = {"a": {"team": "x"}, "b": {"team": "y"}, "c": {}}


@pytest.mark.parametrize(
    ("like", "facts"),
    [
        ({}, {}),
        ({"weight": 3, "parent": "p", "priority": 7}, {"weight": 3, "parent": "p", "priority": 7}),
        ({"reclaimable": False}, {"reclaimable": False}),
        (
            {"capability": {GPU: 8, "cpu": "1500m", "memory": "1Gi"}},
            {"capability": (("cpu", 1500), ("memory", 1 << 30), (GPU, 8))},
        ),
        # A zero is a limit; nothing guaranteed is nothing to keep.
        ({"capability": {GPU: 0}}, {"capability": ((GPU, 0),)}),
        ({"guarantee": {"resource": {GPU: 0}}}, {"guarantee": ()}),
        (
            {"guarantee": {"resource": {GPU: 2}}, "deserved": {GPU: "4"}},
            {"guarantee": ((GPU, 2),), "deserved": ((GPU, 4),)},
        ),
        ({"capability": None, "deserved": None, "guarantee": None}, {}),
        ({"state": "Open"}, {}),
        ({"state": "Closing"}, {"open": False}),
        ({"state": "Closed"}, {"open": False}),
        ({"allowed": "b, a"}, {"namespaces": ("a", "b")}),
        ({"allowed": "not-there-yet"}, {"namespaces": ("not-there-yet",)}),
        ({"allowed": ""}, {"namespaces": ()}),
        ({"allowed": "team=x"}, {"namespaces": ("a",)}),
        ({"allowed": "team!=x"}, {"namespaces": ("b", "c")}),
        ({"allowed": "!team"}, {"namespaces": ("c",)}),
        ({"allowed": "team in (x,y)"}, {"namespaces": ("a", "b")}),
        ({"allowed": "team notin (x)"}, {"namespaces": ("b", "c")}),
    ],
)
def test_what_a_queue_says(like: Object, facts: Object) -> None:
    assert read_queue(queue(**like), LABELS) == (QueueFacts("q", **facts), "")


@pytest.mark.parametrize(("strategy", "fifo"), [("", False), ("traverse", False), ("fifo", True)])
def test_whether_a_queue_keeps_its_order(strategy: str, fifo: bool) -> None:
    facts, said = read_queue(queue(dequeueStrategy=strategy), LABELS)
    assert (facts.fifo, said) == (fifo, "")


@pytest.mark.parametrize(
    ("like", "why"),
    [
        ({"capability": {"cpu": "much"}}, "spec.capability[cpu]: 'much' "),
        ({"deserved": {GPU: "-1"}}, f"spec.deserved[{GPU}]: '-1' is negative"),
        ({"guarantee": {"resource": {"memory": "1Q"}}}, "spec.guarantee.resource[memory]: '1Q' "),
        ({"weight": 0}, "spec.weight: 0 is less than 1"),
        ({"dequeueStrategy": "lifo"}, "spec.dequeueStrategy: 'lifo' is neither fifo nor traverse"),
        ({"allowed": "team=("}, f"metadata.annotations[{NAMESPACES}]: "),
        (
            {"allowed": "Team A"},
            f"metadata.annotations[{NAMESPACES}]: 'Team A' is neither the name of a namespace",
        ),
    ],
)
def test_a_queue_that_cannot_be_read_takes_nothing_new(like: Object, why: str) -> None:
    facts, said = read_queue(queue(**like), LABELS)
    assert said.startswith(why)
    assert facts.problem == f"cannot be understood ({said})"


def test_more_than_any_cluster_has_is_no_overflow() -> None:
    facts, _ = read_queue(queue(capability={"memory": "900E"}), {})
    assert facts.capability == (("memory", 1 << 50),)


def test_default_is_open_without_an_object_and_no_other_queue_is() -> None:
    assert is_open("default", {})
    assert not is_open("q", {})


# -- what is let in ----------------------------------------------------------------------------


async def test_a_gang_beyond_its_queue_waits_and_says_which_quota(rig: Rig) -> None:
    rig.nodes(4)
    rig.api.put("queues", document("vision", capability={GPU: 4}))
    gang(rig, "a", 2, "vision")
    async with rig.running():
        await rig.until(lambda: len(rig.bound_of("a")) == 2)
        gang(rig, "b", 2, "vision")
        await rig.settle()
        assert rig.bound_of("b") == {}
        assert reason(rig, "b") == "QueueQuotaExceeded"
        assert sentence(rig, "b").startswith(
            "needs 4 GPUs, but queue vision may use 4 (capability) and 4 are in use;"
            " it can start when 4 more are free in the queue"
        )
        for name in ("a-0", "a-1"):
            rig.api.delete("pods", name)
        rig.api.delete("podgroups", "a")
        await rig.until(lambda: len(rig.bound_of("b")) == 2)
    rig.check()


async def test_after_a_restart_usage_is_counted_before_anybody_is_let_in(rig: Rig) -> None:
    rig.nodes(4)
    rig.api.put("queues", document("q", capability={GPU: 4}))
    gang(rig, "a", 2, "q")
    async with rig.running():
        await rig.until(lambda: len(rig.bound_of("a")) == 2)
    gang(rig, "b", 1, "q")
    rig.api.delete("podgroups", "a")
    rig.api.put(
        "podgroups", group("a", 2, queue="q", annotations={"posse.dev/expects": "nonsense"})
    )
    async with rig.running():
        await rig.settle()
        assert rig.bound_of("b") == {}
        assert reason(rig, "b") == "QueueQuotaExceeded"


async def test_a_pod_without_a_group_is_in_the_queue_that_it_names(rig: Rig) -> None:
    rig.nodes(2)
    rig.api.put("queues", document("q", capability={GPU: 2}))
    for name in ("one", "two"):
        rig.api.put("pods", pod(name, annotations={QUEUE_NAME: "q"}))
    async with rig.running():
        await rig.settle()
        (first,) = rig.api.placed()
        (other,) = {"one", "two"} - {first}
        told = rig.api.condition("pods", other, "PodScheduled")
        assert told["reason"] == "QueueQuotaExceeded"
        rig.api.delete("pods", first)
        await rig.until(lambda: list(rig.api.placed()) == [other])


async def test_a_queue_may_be_for_labelled_namespaces(rig: Rig) -> None:
    rig.nodes(1)
    rig.api.put("namespaces", {"metadata": {"name": "ns"}})
    rig.api.put("queues", document("q", allowed="team in (vision, nlp)"))
    gang(rig, "a", 1, "q")
    async with rig.running():
        await rig.settle()
        assert reason(rig, "a") == "QueueForbidden"
        assert "queue q is not for namespace ns" in sentence(rig, "a")
        rig.api.put("namespaces", {"metadata": {"name": "ns", "labels": {"team": "nlp"}}})
        await rig.until(lambda: len(rig.bound_of("a")) == 1)


async def test_a_queue_for_nobody_knows_whom_is_shut_and_says_so_once(rig: Rig) -> None:
    rig.nodes(1)
    rig.api.put("queues", document("q", allowed="team=("))
    gang(rig, "a", 1, "q")
    async with rig.running():
        await rig.settle(10.0)
        assert rig.api.placed() == {}
        assert reason(rig, "a") == "QueueMalformed"
        ((said, message),) = rig.events("q")
        assert said == "Quarantined"
        assert NAMESPACES in message
        rig.api.put("queues", document("q", allowed="ns"))
        await rig.until(lambda: len(rig.bound_of("a")) == 1)


@pytest.mark.parametrize("name", ["q", "default"])
async def test_a_queue_that_cannot_be_decoded_is_not_one_without_limits(
    rig: Rig, name: str
) -> None:
    rig.nodes(1)
    rig.api.put("queues", document(name, capability="much"))
    gang(rig, "a", 1, name)
    async with rig.running():
        await rig.settle()
        assert rig.api.placed() == {}
        assert reason(rig, "a") == "QueueMalformed"
        rig.api.put("queues", document(name, capability={GPU: 2}))
        await rig.until(lambda: len(rig.bound_of("a")) == 1)
        rig.api.put("queues", document(name, capability="much"))
        gang(rig, "b", 1, name, gpus=0)
        await rig.settle()
        assert rig.bound_of("b") == {}
        rig.api.delete("queues", name)
        rig.nodes(2)
        await rig.settle()
        assert len(rig.bound_of("b")) == (1 if name == "default" else 0)


@pytest.mark.parametrize(
    ("queues", "said"),
    [
        ([document("q", parent="p")], ("Quarantined", "is part of queue p, which does not exist")),
        ([document("q", parent="q")], ("Quarantined", "is its own ancestor (q, q)")),
        (
            [document("p", parent="q"), document("q", parent="p")],
            ("Quarantined", "is its own ancestor (q, p, q)"),
        ),
        (
            [document("p", capability={GPU: 1}), document("q", parent="p", capability={GPU: 2})],
            ("Doubtful", f"its capability of {GPU} is more than that of queue p"),
        ),
        (
            [document("q", capability={GPU: 1}, guarantee={"resource": {GPU: 2}})],
            ("Doubtful", f"its guarantee of {GPU} is more than its capability; the smaller one"),
        ),
        (
            [
                document("q", capability={GPU: 1}),
                document("part", parent="q", guarantee={"resource": {GPU: 2}}),
            ],
            ("Doubtful", f"its queues are guaranteed more {GPU} than it may use"),
        ),
    ],
    ids=[
        "no such parent",
        "its own parent",
        "its parent's parent",
        "more than its parent",
        "guarantee over capability",
        "guarantee of a part over capability",
    ],
)
async def test_a_queue_that_has_no_place_in_the_tree_says_so_and_stops_nobody_else(
    rig: Rig, queues: list[Object], said: tuple[str, str]
) -> None:
    rig.nodes(2)
    for each in queues:
        rig.api.put("queues", each)
    gang(rig, "a", 1, "default")
    async with rig.running():
        await rig.until(lambda: len(rig.bound_of("a")) == 1)
        await rig.settle(10.0)
        ((why, message),) = rig.events("q")
        assert why == said[0]
        assert said[1] in message


# -- what is told ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "counts", "allocated", "patch"),
    [
        ({}, {}, {}, {"state": "Open"}),
        ({"state": "Open"}, {}, {}, {}),
        ({"state": "Open", "running": 1}, {"running": 1}, {}, {}),
        ({"state": "Open", "running": 1}, {"inqueue": 2}, {}, {"running": 0, "inqueue": 2}),
        ({"state": "Open"}, {}, {"cpu": 1500, GPU: 8}, {"allocated": {"cpu": "1500m", GPU: "8"}}),
        ({"state": "Open", "allocated": {GPU: "8"}}, {}, {GPU: 8}, {}),
        ({"state": "Open", "allocated": {GPU: "8"}}, {}, {}, {"allocated": {GPU: None}}),
        ({"state": "Closing"}, {"running": 1}, {}, {"running": 1}),
        ({"state": "Closing", "completed": 2}, {"completed": 2}, {}, {}),
        ({"state": "Closing"}, {}, {}, {"state": "Closed"}),
        ({"state": "Closed"}, {}, {}, {}),
    ],
)
def test_what_changes_in_the_status(
    status: Object, counts: dict[str, int], allocated: dict[str, int], patch: Object
) -> None:
    found = msgspec.convert({"metadata": {"name": "q"}, "status": status}, Queue)
    assert queue_status(found, NOTHING | counts, allocated) == patch


def status(rig: Rig, name: str) -> Object:
    found: Object = rig.api.get("queues", name).get("status", {})
    return found


async def test_a_queue_tells_what_is_in_it(rig: Rig) -> None:
    rig.nodes(2)
    rig.api.put("queues", document("q"))
    gang(rig, "a", 2, "q")
    gang(rig, "b", 2, "q")
    rig.api.put("pods", pod("lone", annotations={QUEUE_NAME: "q"}))
    async with rig.running():
        await rig.settle(10.0)
        assert status(rig, "q") == {
            "state": "Open",
            "running": 1,
            "inqueue": 2,
            "allocated": {"cpu": "2", GPU: "4", "pods": "2"},
        }
        for name in ("a-0", "a-1", "b-0", "b-1", "lone"):
            rig.api.delete("pods", name)
        for name in ("a", "b"):
            rig.api.delete("podgroups", name)
        await rig.until(lambda: status(rig, "q").get("running") == 0)
        assert status(rig, "q")["inqueue"] == 0
        assert status(rig, "q")["allocated"] == {}


async def test_the_status_is_written_once_for_a_burst_and_not_again(rig: Rig) -> None:
    rig.nodes(4)
    rig.api.put("queues", document("q"))
    for at in range(4):
        gang(rig, f"g{at}", 1, "q")
    async with rig.running():
        await rig.settle(30.0)
        written = [w for w in rig.api.writes if w.path.endswith("/queues/q/status")]
        told = [list(w.document["status"]) for w in written]
        assert told == [["state"], ["running", "allocated"]]
        assert status(rig, "q")["running"] == 4


async def test_where_nothing_can_be_applied_the_state_is_merged(rig: Rig) -> None:
    rig.api.put("queues", document("q"))
    refused: list[str] = []

    def fault(method: str, path: str) -> int | None:
        if method == "PATCH" and path.endswith("/queues/q/status") and not refused:
            refused.append(path)
            return 415
        return None

    rig.api.fault = fault
    async with rig.running():
        await rig.until(lambda: status(rig, "q").get("state") == "Open")
    assert refused


async def test_a_closing_queue_is_closed_when_its_last_group_has_left(rig: Rig) -> None:
    rig.nodes(2)
    rig.api.put("queues", document("q"))
    gang(rig, "a", 1, "q")
    async with rig.running():
        await rig.until(lambda: len(rig.bound_of("a")) == 1)
        rig.api.put("queues", document("q", state="Closing"))
        gang(rig, "b", 1, "q")
        await rig.settle(10.0)
        assert rig.bound_of("b") == {}
        assert status(rig, "q")["state"] == "Closing"
        for name in ("a", "b"):
            rig.api.delete("pods", f"{name}-0")
            rig.api.delete("podgroups", name)
        await rig.until(lambda: status(rig, "q")["state"] == "Closed")


async def test_a_queue_that_is_opened_in_the_same_moment_stays_open(rig: Rig) -> None:
    rig.api.put("queues", document("q", state="Closing"))

    def fault(method: str, path: str) -> None:
        patches = method == "PATCH" and path.endswith("/queues/q/status")
        if patches and status(rig, "q")["state"] == "Closing":
            rig.api.put("queues", document("q", state="Open"))

    rig.api.fault = fault
    async with rig.running():
        await rig.settle(20.0)
    assert status(rig, "q")["state"] == "Open"


async def test_a_status_that_cannot_be_written_is_written_later(rig: Rig) -> None:
    rig.nodes(1)
    rig.api.put("queues", document("q"))
    gang(rig, "a", 1, "q")
    broken = True
    rig.api.fault = lambda method, path: 503 if broken and "/queues/" in path else None
    async with rig.running():
        await rig.until(lambda: len(rig.bound_of("a")) == 1)
        await rig.settle(10.0)
        assert status(rig, "q") == {}
        broken = False
        await rig.until(lambda: status(rig, "q").get("running") == 1, within=120.0)


async def test_a_frozen_scheduler_writes_no_status(rig: Rig) -> None:
    rig.api.put("queues", document("q"))
    async with rig.running(policy=Policy(frozen=True)):
        await rig.settle(10.0)
    assert status(rig, "q") == {}
