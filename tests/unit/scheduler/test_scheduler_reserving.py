"""From what pods say about their runtime to reservations, and what is written of them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from posse.engine.policy import Policy
from posse.objects.pods import Pod
from posse.scheduler.reading.estimates import Estimates, estimate_of
from tests.unit.scheduler.rig import Object, Rig, group, pod

MAX_RUNTIME = "posse.dev/max-runtime"


def a_pod(**like: Any) -> Pod:
    return msgspec.convert(pod("p", **like), Pod)


@pytest.mark.parametrize(
    ("like", "estimate"),
    [
        ({}, None),
        ({"annotations": {MAX_RUNTIME: "90m"}}, 5400.0),
        ({"activeDeadlineSeconds": 60}, 60.0),
        ({"annotations": {MAX_RUNTIME: "2h"}, "activeDeadlineSeconds": 60}, 7200.0),
        ({"annotations": {MAX_RUNTIME: "soon"}, "activeDeadlineSeconds": 60}, 60.0),
        ({"annotations": {MAX_RUNTIME: "-1h"}}, None),
    ],
)
def test_what_a_pod_says(like: Object, estimate: float | None) -> None:
    assert estimate_of(a_pod(**like)) == estimate


def test_a_gang_ends_with_its_last_member_if_all_say_when() -> None:
    estimates = Estimates()
    assert estimates.longest is None
    short, long = a_pod(activeDeadlineSeconds=60), a_pod(activeDeadlineSeconds=90)
    for each in (short, short, long):
        estimates.count(each, 1)
    assert estimates.longest == 90.0
    estimates.count(a_pod(), 1)
    assert estimates.longest is None
    estimates.count(a_pod(), -1)
    estimates.count(long, -1)
    assert estimates.longest == 60.0


def put(rig: Rig, name: str, members: int, **annotations: str) -> None:
    said = {f"posse.dev/{key.replace('_', '-')}": text for key, text in annotations.items()}
    rig.api.put("podgroups", group(name, members, annotations=said))
    for index in range(members):
        rig.api.put("pods", pod(f"{name}-{index}", name, 2))


def end(rig: Rig, name: str, members: int = 1) -> None:
    for index in range(members):
        rig.api.change("pods", f"{name}-{index}", status={"phase": "Succeeded"})


def message(rig: Rig, name: str) -> str:
    conditions = rig.api.get("podgroups", name).get("status", {}).get("conditions", [])
    return "".join(str(each.get("message", "")) for each in conditions)


@pytest.mark.looptime
async def test_others_start_around_the_first_in_line_if_they_are_gone_in_time() -> None:
    rig = Rig()
    rig.nodes(2)
    put(rig, "now", 1, max_runtime="10m")
    async with rig.running():
        await rig.until(lambda: rig.bound_of("now"))
        put(rig, "big", 2)
        await rig.until(lambda: "expected to start at about" in message(rig, "big"))
        put(rig, "vague", 1)
        await rig.until(lambda: "waits behind ns/big" in message(rig, "vague"))
        await rig.until(lambda: reason(rig, "vague-0") == "Reserved")
        put(rig, "brief", 1, max_runtime="2m")
        await rig.until(lambda: rig.bound_of("brief"))
        assert not rig.bound_of("vague")
        end(rig, "brief")
        await rig.settle()
        assert not rig.bound_of("vague")
        end(rig, "now")
        await rig.until(lambda: len(rig.bound_of("big")) == 2)
    rig.check()


def reason(rig: Rig, name: str) -> str:
    conditions = rig.api.get("pods", name)["status"].get("conditions", [])
    return "".join(str(each.get("reason", "")) for each in conditions)


@pytest.mark.looptime
async def test_what_is_gathered_is_written_and_outlives_the_scheduler() -> None:
    rig = Rig()
    rig.nodes(2)
    policy = Policy(reserve_after=1e9, most_overtakes=2)
    put(rig, "one", 1)
    put(rig, "two", 1)
    async with rig.running(policy=policy):
        await rig.until(lambda: rig.bound_of("one") and rig.bound_of("two"))
        put(rig, "big", 2)
        await rig.until(lambda: "no max runtime" in message(rig, "big"))
        for number, ended in (("three", "one"), ("four", "two")):
            end(rig, ended)
            put(rig, number, 1)
            await rig.until(lambda number=number: rig.bound_of(number))  # type: ignore[misc]
        await rig.until(lambda: "reservation" in kept(rig, "big"))
        assert (
            rig.api.get("podgroups", "big")["metadata"]["annotations"]["posse.dev/overtaken"] == "2"
        )
    put(rig, "five", 1)
    async with rig.running(policy=policy, identity="two"):
        end(rig, "three")
        await rig.settle(60)
        assert not rig.bound_of("five")
        end(rig, "four")
        await rig.until(lambda: len(rig.bound_of("big")) == 2)
        await rig.until(lambda: not kept(rig, "big"))
    rig.check()


def kept(rig: Rig, name: str) -> str:
    annotations = rig.api.get("podgroups", name)["metadata"].get("annotations") or {}
    return str(annotations.get("posse.dev/keeps") or "")


@pytest.mark.looptime
async def test_a_stream_of_small_jobs_does_not_keep_a_large_one_waiting_for_ever() -> None:
    """volcano#3095, #2235, #748."""
    rig = Rig()
    rig.nodes(3)
    for number in range(3):
        put(rig, f"s{number}", 1)
    async with rig.running(policy=Policy(reserve_after=120.0)):
        await rig.until(lambda: all(rig.bound_of(f"s{number}") for number in range(3)))
        put(rig, "big", 3)
        began = rig.world.monotonic()
        number = 3
        while not rig.bound_of("big"):
            running = [f"s{at}" for at in range(number) if rig.bound_of(f"s{at}")]
            put(rig, f"s{number}", 1)
            number += 1
            alive = [
                name
                for name in running
                if rig.api.get("pods", f"{name}-0")["status"]["phase"] != "Succeeded"
            ]
            if alive:
                end(rig, alive[0])
            await rig.settle(20)
            assert rig.world.monotonic() - began < 600, "it starves"
        assert len(rig.bound_of("big")) == 3
    rig.check()
