"""Lost answers, refusals, stale caches: a bind happens once or not at all, and is always known."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.unit.scheduler.double import Fault, Write
from tests.unit.scheduler.rig import Rig, group, pod

pytestmark = pytest.mark.looptime

BINDING = "/binding$"


@pytest.fixture
async def rig() -> Rig:
    return Rig()


def on(pattern: str, fault: str | int, times: int = 1_000_000, method: str = "POST") -> Fault:
    """The fault for so many requests of this method whose path matches."""
    left = times

    def decide(asked: str, path: str) -> str | int | None:
        nonlocal left
        if asked != method or not re.search(pattern, path) or not left:
            return None
        left -= 1
        return fault

    return decide


FAULTS: list[tuple[str, Callable[[], Fault]]] = [
    ("every first answer is lost", lambda: on(BINDING, "lose", 4)),
    ("one answer is lost", lambda: on("train-2/binding$", "lose", 1)),
    ("requests are lost", lambda: on(BINDING, "drop", 6)),
    ("the server fails", lambda: on(BINDING, 500, 5)),
    ("the server is busy", lambda: on(BINDING, 429, 5)),
    ("conflicts that are none", lambda: on(BINDING, 409, 4)),
    ("an answer is lost and reading back fails", lambda: _lost_and_unreadable()),
]


def _lost_and_unreadable() -> Fault:
    lost, unreadable = on(BINDING, "lose", 4), on("/pods/train-", "drop", 20, "GET")
    return lambda method, path: lost(method, path) or unreadable(method, path)


@pytest.mark.parametrize(("name", "fault"), FAULTS, ids=[name for name, _ in FAULTS])
async def test_whatever_happens_to_binds_each_pod_is_bound_once(
    rig: Rig, name: str, fault: Callable[[], Fault]
) -> None:
    rig.nodes(4)
    rig.api.fault = fault()
    async with rig.running():
        rig.gang("train", 4)
        await rig.until(lambda: len(rig.bound_of("train")) == 4)
        await rig.until(lambda: rig.phase("train") == "Running")
    rig.check()
    assert sorted(name for name, _ in rig.api.binds) == [f"train-{i}" for i in range(4)]


async def test_a_pod_that_cannot_be_bound_does_not_stop_others(rig: Rig) -> None:
    rig.nodes(3)
    rig.api.fault = on("bad-0/binding$", 500)
    async with rig.running():
        rig.api.put("pods", pod("bad-0"))
        await rig.settle(1)
        for index in range(2):
            rig.api.put("pods", pod(f"good-{index}"))
        await rig.until(lambda: len(rig.api.placed()) == 2, within=10)
        await rig.settle(30)
        tries = [at for at, _, path in rig.api.attempts if path.endswith("bad-0/binding")]
        await rig.settle(30)
        more = [at for at, _, path in rig.api.attempts if path.endswith("bad-0/binding")]
        assert len(more) - len(tries) <= 2 * 6, "it is tried less and less often"
        assert rig.api.condition("pods", "bad-0", "PodScheduled")["reason"] == "BindFailed"
        rig.api.fault = lambda method, path: None
        await rig.until(lambda: "bad-0" in rig.api.placed(), within=120)


async def test_a_bind_that_is_refused_for_good_keeps_the_gang_from_running(rig: Rig) -> None:
    rig.nodes(4)
    rig.api.fault = on("train-3/binding$", 403)
    async with rig.running():
        rig.gang("train", 4)
        await rig.settle(20)
        assert len(rig.bound_of("train")) == 3
        assert rig.phase("train") == "Inqueue"
        assert rig.api.condition("podgroups", "train", "Scheduled") == {}
        rig.api.fault = lambda method, path: None
        await rig.until(lambda: rig.phase("train") == "Running", within=120)
    rig.check()


async def test_a_stale_version_is_read_back_and_tried_with_the_fresh_one(rig: Rig) -> None:
    rig.nodes(1)
    async with rig.running():
        await rig.settle()
        rig.api.put("pods", pod("a"))
        rig.api.hold_back("pods")
        rig.api.change("pods", "a", status={"message": "unseen"})
        await rig.until(lambda: rig.api.placed() == {"a": "n0"})
    tries = [path for _, _, path in rig.api.attempts if path.endswith("a/binding")]
    assert len(tries) == 2


async def test_a_pod_that_changed_unseen_is_decided_on_again(rig: Rig) -> None:
    rig.nodes(2)
    async with rig.running():
        await rig.settle()
        rig.api.put("pods", pod("a", gpus=1))
        rig.api.hold_back("pods")
        rig.api.change("pods", "a", spec={"nodeSelector": {"disk": "fast"}})
        await rig.settle()
        assert rig.api.placed() == {}
        rig.api.catch_up()
        rig.api.change("nodes", "n1", metadata={"labels": {"disk": "fast"}})
        await rig.until(lambda: rig.api.placed() == {"a": "n1"})


async def test_a_pod_that_another_scheduler_bound_is_where_that_one_put_it(rig: Rig) -> None:
    rig.nodes(2)
    async with rig.running():
        await rig.settle()
        rig.api.put("pods", pod("a"))
        rig.api.hold_back("pods")
        rig.api.change("pods", "a", spec={"nodeName": "n1"})
        await rig.settle()
        rig.api.put("pods", pod("b"))
        rig.api.put("pods", pod("c"))
        rig.api.catch_up()
        await rig.settle()
    rig.check()
    placed = rig.api.placed()
    assert placed.pop("a") == "n1"
    assert list(placed.values()) == ["n0"]


async def test_a_raised_minimum_that_the_cache_has_not_seen_binds_nobody(rig: Rig) -> None:
    rig.nodes(4)
    rig.api.put("podgroups", group("g", 2))
    rig.api.put("pods", pod("g-0", "g"))
    async with rig.running():
        await rig.settle()
        rig.api.hold_back("podgroups")
        rig.api.change("podgroups", "g", spec={"minMember": 3})
        rig.api.put("pods", pod("g-1", "g"))
        await rig.settle(20)
        assert rig.api.placed() == {}
        rig.api.catch_up()
        await rig.settle()
        assert rig.api.placed() == {}
        rig.api.put("pods", pod("g-2", "g"))
        await rig.until(lambda: len(rig.api.placed()) == 3)


async def test_a_group_that_was_deleted_unseen_binds_nobody(rig: Rig) -> None:
    rig.nodes(4)
    rig.api.put("podgroups", group("g", 2))
    rig.api.put("pods", pod("g-0", "g"))
    async with rig.running():
        await rig.settle()
        rig.api.hold_back("podgroups")
        rig.api.delete("podgroups", "g")
        rig.api.put("pods", pod("g-1", "g"))
        await rig.settle(20)
        assert rig.api.placed() == {}
        rig.api.put("podgroups", group("g", 2))
        rig.api.catch_up()
        await rig.until(lambda: len(rig.api.placed()) == 2)


async def test_a_group_deleted_between_two_binds_leaves_no_bind_unknown(rig: Rig) -> None:
    rig.nodes(4)

    def delete_group(write: Write) -> None:
        if write.path.endswith("binding") and ("podgroups", "ns", "g") in rig.api.objects:
            rig.api.delete("podgroups", "g")

    rig.api.on_write = delete_group
    async with rig.running():
        rig.gang("g", 4)
        await rig.settle()
        rig.gang("next", 1)
        await rig.settle()
    rig.check()


async def test_a_pod_deleted_unseen_is_replaced_by_its_successor(rig: Rig) -> None:
    rig.nodes(2)
    async with rig.running():
        await rig.settle()
        rig.gang("g", 2)
        rig.api.hold_back("pods")
        rig.api.delete("pods", "g-1")
        await rig.settle()
        rig.api.put("pods", pod("g-1", "g"))
        rig.api.catch_up()
        await rig.until(lambda: len(rig.bound_of("g")) == 2)
        await rig.until(lambda: rig.phase("g") == "Running")
    rig.check()


async def test_confirmations_that_come_late_count_all_the_while(rig: Rig) -> None:
    rig.nodes(2)
    async with rig.running():
        await rig.settle()
        rig.gang("first", 2)
        rig.api.hold_back("pods")
        await rig.until(lambda: len(rig.bound_of("first")) == 2)
        rig.api.put("podgroups", group("second", 1))
        rig.api.catch_up()
        rig.api.put("pods", pod("second-0", "second"))
        await rig.settle()
        assert rig.bound_of("second") == {}
    rig.check()


@pytest.mark.parametrize("order", [("pods", "nodes"), ("nodes", "pods")])
async def test_usage_counts_whichever_is_heard_of_first(rig: Rig, order: tuple[str, str]) -> None:
    async with rig.running():
        await rig.settle()
        rig.api.hold_back("pods", "nodes")
        rig.nodes(1)
        rig.api.put("pods", pod("there", nodeName="n0"))
        rig.api.put("pods", pod("new"))
        held = rig.api._held_back
        rig.api._held_back = {plural: held[plural] for plural in order}
        rig.api.catch_up()
        await rig.settle()
        assert rig.api.placed() == {"there": "n0"}


async def test_nothing_is_decided_before_every_list_is_there(rig: Rig) -> None:
    rig.nodes(1)
    rig.api.put("pods", pod("there", nodeName="n0"))
    rig.api.put("pods", pod("new"))
    rig.api.fault = on("^/api/v1/pods$", 500, 30, "GET")
    async with rig.running():
        await rig.settle(2)
        assert rig.api.binds == []
        rig.api.fault = lambda method, path: None
        await rig.settle(10)
        assert rig.api.binds == []
        rig.api.delete("pods", "there")
        await rig.until(lambda: rig.api.binds == [("new", "n0")])


async def test_watches_that_close_lose_nothing(rig: Rig) -> None:
    rig.nodes(4)
    async with rig.running():
        for name in ("a", "b"):
            rig.gang(name, 2)
            rig.api.close_watches()
            await rig.settle(10)
        assert len(rig.api.placed()) == 4
    rig.check()


async def test_a_node_cordoned_before_the_binds_go_out_gets_none(rig: Rig) -> None:
    rig.nodes(2)
    rig.api.latency = 0.05
    async with rig.running(gangs_in_flight=1):
        await rig.settle()
        rig.gang("a", 1, gpus=1)
        rig.gang("b", 1, gpus=1)
        await rig.until(lambda: any(w.path.endswith("binding") for w in rig.api.writes), 5)
        on_node = rig.api.binds[0][1]
        rig.api.change("nodes", on_node, spec={"unschedulable": True})
        await rig.settle()
        assert len(rig.api.placed()) == 2
        assert rig.api.binds[1][1] != on_node


async def test_two_runs_write_the_same(rig: Rig) -> None:
    async def log() -> list[tuple[float, str, str, object]]:
        rig = Rig()
        start = rig.world.monotonic()
        rig.nodes(3)
        rig.api.fault = on(BINDING, "lose", 2)
        async with rig.running():
            rig.gang("a", 2)
            rig.gang("b", 2)
            await rig.settle(5)
        return [(round(w.at - start, 6), w.method, w.path, w.document) for w in rig.api.writes]

    first, second = await log(), await log()
    strip = [(at, method, path) for at, method, path, _ in first]
    assert strip == [(at, method, path) for at, method, path, _ in second]


async def test_a_gang_that_has_begun_keeps_its_seat_while_a_bind_is_denied(rig: Rig) -> None:
    rig.nodes(4)
    rig.api.fault = on("train-3/binding$", 403)
    async with rig.running():
        rig.gang("train", 4)
        await rig.until(lambda: len(rig.bound_of("train")) == 3)
        await rig.settle(2)
        rig.api.put("podgroups", group("thief", 1))
        rig.api.put("pods", pod("thief-0", "thief", priority=1000))
        await rig.settle(3)
        assert rig.bound_of("thief") == {}
        said = rig.api.condition("pods", "train-3", "PodScheduled")
        assert (said["reason"], said["status"]) == ("BindFailed", "False")
        rig.api.delete("pods", "thief-0")  # it would preempt a gang that has started
        rig.api.fault = lambda method, path: None
        await rig.until(lambda: rig.phase("train") == "Running", within=30)
    rig.check()


async def test_a_gang_one_of_whose_pods_is_always_denied_is_let_go_whole(rig: Rig) -> None:
    rig.nodes(4)
    rig.api.fault = on("train-3/binding$", 403)
    async with rig.running():
        rig.gang("train", 4)
        await rig.until(lambda: len(rig.bound_of("train")) == 3)
        rig.gang("next", 4)
        await rig.until(lambda: rig.phase("next") == "Running", within=120)
    assert rig.bound_of("train") == {}
    assert len(rig.api.sent("POST", "eviction$")) == 3
    rig.check()


async def test_a_gang_wholly_denied_lets_others_by(rig: Rig) -> None:
    rig.nodes(2)
    rig.api.fault = on("train-[01]/binding$", 403)
    async with rig.running():
        rig.gang("train", 2)
        await rig.settle(2)
        rig.gang("next", 2)
        await rig.until(lambda: rig.phase("next") == "Running", within=10)
    assert rig.bound_of("train") == {}


async def test_a_bind_whose_answer_was_lost_is_not_sent_again(rig: Rig) -> None:
    rig.nodes(1)
    rig.api.fault = on(BINDING, "lose", 1)
    async with rig.running():
        await rig.settle()
        rig.api.put("pods", pod("a"))
        rig.api.hold_back("pods")
        await rig.settle()
    tries = [path for _, _, path in rig.api.attempts if path.endswith("a/binding")]
    assert len(tries) == 1
    assert rig.api.placed() == {"a": "n0"}


async def test_a_group_replaced_unseen_by_one_of_its_name_binds_nobody(rig: Rig) -> None:
    rig.nodes(4)
    rig.api.put("podgroups", group("g", 2))
    rig.api.put("pods", pod("g-0", "g"))
    async with rig.running():
        await rig.settle()
        rig.api.hold_back("podgroups")
        rig.api.delete("podgroups", "g")
        rig.api.put("podgroups", group("g", 2))
        rig.api.put("pods", pod("g-1", "g"))
        await rig.settle(20)
        assert rig.api.placed() == {}
        rig.api.catch_up()
        await rig.until(lambda: len(rig.api.placed()) == 2)


async def test_no_new_run_begins_under_the_phase_of_the_old_one(rig: Rig) -> None:
    rig.nodes(2)
    rig.gang("train", 2)
    async with rig.running():
        await rig.until(lambda: rig.phase("train") == "Running")
        rig.api.fault = on("podgroups/train/status$", 500, method="PATCH")
        binds = len(rig.api.binds)
        for index in range(2):
            rig.api.delete("pods", f"train-{index}")
            rig.api.put("pods", pod(f"train-{index}", "train"))
        await rig.settle(10)
        assert len(rig.api.binds) == binds
        rig.api.fault = lambda method, path: None
        await rig.until(lambda: len(rig.bound_of("train")) == 2)


async def test_priorities_are_known_before_anything_is_decided(rig: Rig) -> None:
    rig.nodes(1)
    rig.api.put("priorityclasses", {"metadata": {"name": "high"}, "value": 100})
    rig.api.put("podgroups", group("a", 1))
    rig.api.put("pods", pod("a-0", "a"))
    rig.api.put("podgroups", group("b", 1, priorityClassName="high"))
    rig.api.put("pods", pod("b-0", "b"))
    rig.api.fault = on("priorityclasses$", 500, 8, "GET")
    async with rig.running():
        await rig.until(lambda: rig.api.placed())
    assert rig.api.placed() == {"b-0": "n0"}


async def test_a_pod_that_another_scheduler_bound_unseen_is_not_called_unschedulable(
    rig: Rig,
) -> None:
    async with rig.running():
        await rig.settle()
        rig.api.put("pods", pod("a"))
        rig.api.hold_back("pods")
        rig.api.change("pods", "a", spec={"nodeName": "elsewhere"})
        await rig.settle()
        assert rig.api.condition("pods", "a", "PodScheduled") == {}


async def test_numbers_that_keep_changing_are_restated_now_and_then(rig: Rig) -> None:
    rig.nodes(1)
    rig.api.put("pods", pod("a", gpus=100))
    async with rig.running():
        await rig.settle()
        before = len(rig.api.sent("PATCH", "/pods/a/status"))
        for gpus in range(3, 43):
            rig.api.change("nodes", "n0", status={"allocatable": {"nvidia.com/gpu": str(gpus)}})
            await rig.settle(0.25)
        assert 1 <= len(rig.api.sent("PATCH", "/pods/a/status")) - before <= 3
        await rig.settle(10)
        assert "has 42" in rig.api.condition("pods", "a", "PodScheduled")["message"]
