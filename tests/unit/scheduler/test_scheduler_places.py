"""A place in line stands on the PodGroup alone, for the first few, and is nobody's event."""

from __future__ import annotations

import pytest

from tests.unit.scheduler.rig import Rig, crash

pytestmark = pytest.mark.looptime

WAITERS = 14


@pytest.fixture
async def rig() -> Rig:
    rig = Rig()
    rig.nodes(1, gpus=2)
    rig.gang("has", 1)
    return rig


async def line_up(rig: Rig) -> None:
    await rig.until(lambda: rig.bound_of("has"))
    for at in range(WAITERS):
        rig.gang(f"w{at:02}", 1)
        await rig.settle(1.1)  # creation times are whole seconds
    await rig.settle(6)


def message(rig: Rig, gang: str) -> str:
    return str(rig.api.condition("podgroups", gang, "Unschedulable").get("message", ""))


def places(rig: Rig) -> list[int]:
    """What each group says, 0 for nothing."""
    told = []
    for at in range(WAITERS):
        _, _, place = message(rig, f"w{at:02}").partition("; number ")
        told.append(int(place.removesuffix(" in queue default") or 0))
    return told


def counted(rig: Rig) -> dict[str, list[int]]:
    """How often something was said of each of those that go on waiting behind the first."""
    said: dict[str, list[int]] = {f"w{at:02}": [] for at in range(2, WAITERS)}
    for event in rig.api.all("events"):
        said.setdefault(event["involvedObject"]["name"], []).append(event.get("count", 1))
    return {name: counts for name, counts in said.items() if name >= "w02"}


async def test_the_first_ten_of_a_queue_say_their_place(rig: Rig) -> None:
    async with rig.running():
        await line_up(rig)
        assert places(rig) == [*range(1, 11), 0, 0, 0, 0]


async def test_pods_and_events_do_not_tell_it(rig: Rig) -> None:
    async with rig.running():
        await line_up(rig)
        sentence, _, _ = message(rig, "w03").rpartition("; number ")
        assert rig.api.condition("pods", "w03-0", "PodScheduled")["message"] == sentence
        assert rig.events("w03") == [("Unschedulable", sentence)]


async def test_one_start_rewrites_ten_groups_no_pod_and_is_no_event(rig: Rig) -> None:
    async with rig.running():
        await line_up(rig)
        pods = len(rig.api.sent("PATCH", "/pods/w05-0/status"))
        events = counted(rig)
        groups = len(rig.api.sent("PATCH", "/podgroups/"))
        rig.api.delete("pods", "has-0")
        rig.api.delete("podgroups", "has")
        await rig.until(lambda: rig.bound_of("w00"))
        await rig.settle(6)
        assert places(rig)[1:] == [*range(1, 11), 0, 0, 0]
        assert counted(rig) == events
        assert len(rig.api.sent("PATCH", "/pods/w05-0/status")) == pods
        # Ten whose place is another one, and the one that runs; its number of running may follow.
        assert len(rig.api.sent("PATCH", "/podgroups/")) - groups <= 12


async def test_many_starts_in_a_row_are_told_now_and_then(rig: Rig) -> None:
    async with rig.running():
        await line_up(rig)
        before = len(rig.api.sent("PATCH", "/podgroups/w09"))
        held = "has"
        for at in range(8):
            rig.api.delete("pods", f"{held}-0")
            rig.api.delete("podgroups", held)
            held = f"w{at:02}"
            await rig.until(lambda name=held: rig.bound_of(name))  # type: ignore[misc]
            await rig.settle(0.3)
        assert len(rig.api.sent("PATCH", "/podgroups/w09")) - before <= 2
        await rig.settle(6)
        assert message(rig, "w09").endswith("; number 2 in queue default")


async def test_a_new_leader_says_nothing_again(rig: Rig) -> None:
    first = rig.start()
    await line_up(rig)
    await crash(first)
    rig.api.delete("pods", "w00-0")
    rig.api.delete("podgroups", "w00")
    events = rig.events("w05")
    async with rig.running(identity="one"):
        await rig.until(lambda: message(rig, "w05").endswith("; number 5 in queue default"))
        await rig.settle(6)
        assert rig.events("w05") == events
