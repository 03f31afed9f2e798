"""Crashes, changes of leader, gangs left half-bound: made whole, or let go whole."""

from __future__ import annotations

import asyncio
import json

import pytest

from posse.engine.policy import Policy
from tests.unit.scheduler.double import Write
from tests.unit.scheduler.rig import GPU, Rig, crash, group, node, pod

pytestmark = pytest.mark.looptime

MEMBERS = 4


@pytest.fixture
async def rig() -> Rig:
    return Rig()


async def crash_after(rig: Rig, binds: int, **options: object) -> None:
    """Runs a scheduler that dies, and whose requests die with it, right after so many binds.

    After none: with its first bind on the way.
    """
    done = asyncio.Event()
    dead = False

    def die() -> None:
        nonlocal dead
        dead = True
        done.set()

    def watch(write: Write) -> None:
        if write.path.endswith("/binding") and len(rig.api.binds) + 1 == binds:
            die()

    def fault(method: str, path: str) -> str | None:
        if not binds and path.endswith("/binding"):
            die()
        return "drop" if dead else None

    rig.api.on_write = watch
    rig.api.fault = fault
    task = rig.start(**options)
    await asyncio.wait_for(done.wait(), 60)
    await crash(task)
    rig.api.on_write = lambda write: None
    rig.api.fault = lambda method, path: None


@pytest.mark.parametrize("binds", range(MEMBERS + 1))
async def test_a_gang_cut_short_after_any_bind_is_made_whole(rig: Rig, binds: int) -> None:
    rig.nodes(MEMBERS)
    rig.gang("train", MEMBERS)
    await crash_after(rig, binds)
    assert len(rig.bound_of("train")) == binds
    assert rig.phase("train") != "Running"
    async with rig.running():
        await rig.until(lambda: len(rig.bound_of("train")) == MEMBERS)
        await rig.until(lambda: rig.phase("train") == "Running")
    rig.check()


@pytest.mark.parametrize("binds", range(1, MEMBERS))
async def test_its_seats_come_before_gangs_that_wait_in_front(rig: Rig, binds: int) -> None:
    rig.nodes(MEMBERS)
    rig.gang("train", MEMBERS)
    await crash_after(rig, binds)
    rig.api.put("podgroups", group("thief", 1))
    rig.api.put("pods", pod("thief-0", "thief", priority=1000, preemptionPolicy="Never"))
    async with rig.running():
        await rig.until(lambda: rig.phase("train") == "Running")
        await rig.settle()
        assert rig.bound_of("thief") == {}
    rig.check()


@pytest.mark.parametrize("binds", range(1, MEMBERS))
async def test_a_gang_that_cannot_be_completed_is_let_go_whole(rig: Rig, binds: int) -> None:
    rig.nodes(MEMBERS)
    rig.gang("train", MEMBERS)
    await crash_after(rig, binds)
    free = [f"n{i}" for i in range(MEMBERS) if f"n{i}" not in rig.api.placed().values()]
    rig.api.delete("nodes", free[0])
    async with rig.running():
        await rig.until(lambda: not rig.bound_of("train"), within=120)
        await rig.settle()
    marks = [
        write
        for write in rig.api.sent("PATCH", "/pods/.*/status$")
        if write.document["status"]["conditions"][0]["type"] == "DisruptionTarget"
    ]
    assert len(marks) == len(rig.api.sent("POST", "eviction$")) == binds
    assert "GangReleased" in [reason for reason, _ in rig.events("train")]


async def test_pods_that_nobody_recreates_are_not_let_go(rig: Rig) -> None:
    rig.nodes(2)
    rig.gang("train", 2, owned=False)
    await crash_after(rig, 1)
    free = next(name for name in ("n0", "n1") if name not in rig.api.placed().values())
    rig.api.delete("nodes", free)
    async with rig.running():
        await rig.settle(120)
        assert len(rig.bound_of("train")) == 1
        rig.api.put("nodes", node("n9"))
        await rig.until(lambda: len(rig.bound_of("train")) == 2)


async def test_an_eviction_that_a_budget_refuses_ends_in_a_deletion(rig: Rig) -> None:
    rig.nodes(2)
    rig.gang("train", 2)
    await crash_after(rig, 1)
    free = next(name for name in ("n0", "n1") if name not in rig.api.placed().values())
    rig.api.delete("nodes", free)
    rig.api.fault = lambda method, path: 429 if path.endswith("eviction") else None
    async with rig.running():
        await rig.until(lambda: not rig.bound_of("train"), within=120)
    assert len(rig.api.sent("DELETE", "/pods/")) == 1


async def test_a_later_run_cut_short_does_not_look_like_one_that_lost_members(rig: Rig) -> None:
    rig.nodes(2)
    rig.gang("train", 2)
    async with rig.running():
        await rig.until(lambda: rig.phase("train") == "Running")
    for index in range(2):
        rig.api.delete("pods", f"train-{index}")
        rig.api.put("pods", pod(f"train-{index}", "train"))
    rig.api.binds.clear()
    await crash_after(rig, 1)
    assert len(rig.bound_of("train")) == 1
    assert rig.phase("train") == "Inqueue"


async def test_the_next_leader_waits_the_lease_out_and_finishes_the_work(rig: Rig) -> None:
    rig.nodes(MEMBERS)
    rig.gang("train", MEMBERS)
    await crash_after(rig, 2, identity="first")
    died = rig.world.monotonic()
    async with rig.running(identity="second"):
        await rig.until(lambda: len(rig.bound_of("train")) == MEMBERS)
    assert min(w.at for w in rig.api.sent("POST", "binding$")[2:]) >= died + 10
    rig.check()


async def test_a_stable_identity_takes_over_at_once(rig: Rig) -> None:
    rig.nodes(MEMBERS)
    rig.gang("train", MEMBERS)
    await crash_after(rig, 2)
    async with rig.running():
        await rig.until(lambda: len(rig.bound_of("train")) == MEMBERS, within=1)


async def test_a_leader_that_is_told_to_stop_hands_on(rig: Rig) -> None:
    task = rig.start(identity="first")
    await rig.settle()
    await crash(task)
    rig.nodes(1)
    rig.api.put("pods", pod("a"))
    async with rig.running(identity="second"):
        await rig.until(lambda: rig.api.placed(), within=2)


async def test_a_leader_in_doubt_sends_nothing(rig: Rig) -> None:
    rig.nodes(2)
    async with rig.running():
        await rig.settle(1)
        renewed = max(w.at for w in rig.api.writes if "leases" in w.path)
        rig.api.fault = lambda method, path: (
            "drop" if "leases" in path else 500 if path.endswith("binding") else None
        )
        rig.gang("train", 2)
        await rig.settle(60)
        late = [
            (at, method, path)
            for at, method, path in rig.api.attempts
            if method != "GET" and "leases" not in path and at > renewed + 13.1
        ]
        assert any(path.endswith("binding") for _, _, path in rig.api.attempts)
        assert late == []
        rig.api.fault = lambda method, path: None
        await rig.until(lambda: len(rig.bound_of("train")) == 2)
    rig.check()


async def test_a_lease_taken_by_another_ends_the_term_in_the_middle_of_a_gang(rig: Rig) -> None:
    rig.nodes(2)
    taken = 0.0

    def steal(write: Write) -> None:
        nonlocal taken
        if write.path.endswith("binding") and not taken:
            taken = rig.world.monotonic()
            lease = rig.api.get("leases", "posse-scheduler", "kube-system")
            rig.api.change(
                "leases",
                "posse-scheduler",
                "kube-system",
                spec=lease["spec"] | {"holderIdentity": "other", "renewTime": "later"},
            )

    rig.api.on_write = steal
    rig.api.fault = lambda method, path: 500 if taken and path.endswith("binding") else None
    async with rig.running():
        rig.gang("train", 2)
        await rig.settle(9)
        assert taken
        since = [
            path
            for at, method, path in rig.api.attempts
            if at > taken + 4 and method != "GET" and "leases" not in path
        ]
        assert since == []


LAUNCHER = [{"role": "launcher", "count": 1, "requests": {"cpu": "1", GPU: "1"}}]


def mpi(rig: Rig, workers: int) -> None:
    annotations = {"posse.dev/expects": json.dumps(LAUNCHER)}
    rig.api.put("podgroups", group("mpi", workers, annotations=annotations))
    for index in range(workers):
        role = {"volcano.sh/task-spec": "worker"}
        rig.api.put("pods", pod(f"mpi-worker-{index}", "mpi", 2, annotations=role))


def launcher() -> dict[str, object]:
    return pod("mpi-launcher", "mpi", 1, annotations={"volcano.sh/task-spec": "launcher"})


def held(rig: Rig) -> object:
    text = rig.api.get("podgroups", "mpi")["metadata"]["annotations"].get("posse.dev/held")
    return None if text is None else json.loads(text)


async def test_workers_wait_for_their_launchers_seat(rig: Rig) -> None:
    rig.nodes(2)
    mpi(rig, 2)
    async with rig.running():
        await rig.settle()
        assert rig.api.placed() == {}
        rig.api.put("nodes", node("n2", 1))
        await rig.until(lambda: len(rig.api.placed()) == 2)
        assert held(rig) == {"launcher": ["n2"]}
        written = rig.api.sent("PATCH", "podgroups/mpi$")[0]
        assert written.at <= min(w.at for w in rig.api.sent("POST", "binding$"))
        rig.api.put("pods", pod("thief", gpus=1))
        await rig.settle()
        assert "thief" not in rig.api.placed()
        rig.api.put("pods", launcher())
        await rig.until(lambda: rig.api.placed().get("mpi-launcher") == "n2")
        await rig.settle()
        assert held(rig) is None
    rig.check()


async def test_a_held_seat_outlives_the_scheduler(rig: Rig) -> None:
    rig.nodes(2)
    rig.api.put("nodes", node("n2", 1))
    mpi(rig, 2)
    async with rig.running():
        await rig.until(lambda: len(rig.api.placed()) == 2)
    rig.api.put("pods", pod("thief", gpus=1))
    async with rig.running():
        await rig.settle()
        assert "thief" not in rig.api.placed()
        rig.api.put("pods", launcher())
        await rig.until(lambda: rig.api.placed().get("mpi-launcher") == "n2")


async def test_seats_that_cannot_be_written_down_bind_nobody(rig: Rig) -> None:
    rig.nodes(2)
    rig.api.put("nodes", node("n2", 1))
    mpi(rig, 2)
    rig.api.fault = lambda method, path: (
        500 if method == "PATCH" and path.endswith("podgroups/mpi") else None
    )
    async with rig.running():
        await rig.settle(10)
        assert rig.api.placed() == {}
        rig.api.fault = lambda method, path: None
        await rig.until(lambda: len(rig.api.placed()) == 2, within=120)


async def test_the_replacement_of_a_dead_member_comes_before_everyone(rig: Rig) -> None:
    rig.nodes(MEMBERS)
    rig.gang("train", MEMBERS)
    async with rig.running(policy=Policy(preemption=False)):
        await rig.until(lambda: rig.phase("train") == "Running")
        rig.api.put("podgroups", group("thief", 1))
        rig.api.put("pods", pod("thief-0", "thief", priority=1000))
        await rig.settle()
        rig.api.delete("pods", "train-3")
        rig.api.put("pods", pod("train-3", "train"))
        await rig.until(lambda: len(rig.bound_of("train")) == MEMBERS)
        await rig.settle()
        assert rig.bound_of("thief") == {}
