"""The engine fails on one gang: the others go on, and that one is told."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from posse.engine.gangs import Gang
from posse.engine.reservation.reserving import place_in_turn
from posse.engine.view import View
from posse.scheduler.suspecting import Stumble, Suspects
from posse.virtual.world import virtual_world
from tests.unit.scheduler.rig import Rig, pod

pytestmark = pytest.mark.looptime


@pytest.fixture
async def rig() -> Rig:
    rig = Rig()
    rig.nodes(4)
    return rig


@pytest.fixture
def cursed(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Gangs on which a mistake in the engine shows."""
    names: set[str] = set()

    def place_but(view: View, gang: Gang, *more: Any) -> object:
        if gang.key.partition("/")[2] in names:
            raise KeyError("no such seat")
        return place_in_turn(view, gang, *more)

    monkeypatch.setattr("posse.engine.cycle.place_in_turn", place_but)
    return names


async def test_the_others_go_on_and_the_one_is_told(rig: Rig, cursed: set[str]) -> None:
    cursed.add("cursed")
    async with rig.running():
        rig.gang("cursed", 1)
        rig.gang("good", 2)
        await rig.until(lambda: len(rig.bound_of("good")) == 2)
        await rig.until(lambda: rig.api.condition("podgroups", "cursed", "Unschedulable"))
        told = rig.api.condition("podgroups", "cursed", "Unschedulable")
        assert told is not None
        assert told["reason"] == "SchedulerError"
        assert "(KeyError: 'no such seat')" in told["message"]
        assert not rig.bound_of("cursed")
        rig.gang("later", 1)
        await rig.until(lambda: rig.bound_of("later"))


async def test_what_it_has_stays_its_own(rig: Rig, cursed: set[str]) -> None:
    async with rig.running():
        rig.gang("cursed", 3)
        await rig.until(lambda: len(rig.bound_of("cursed")) == 3)
        cursed.add("cursed")
        rig.api.put("pods", pod("cursed-3", "cursed"))
        rig.gang("two", 2)
        await rig.until(lambda: rig.api.condition("podgroups", "two", "Unschedulable"))
        await rig.settle()
        assert not rig.bound_of("two")
        assert len(rig.bound_of("cursed")) == 3


async def test_it_is_tried_again_after_a_while(rig: Rig, cursed: set[str]) -> None:
    cursed.add("cursed")
    async with rig.running():
        rig.gang("cursed", 2)
        await rig.until(lambda: rig.api.condition("podgroups", "cursed", "Unschedulable"))
        cursed.clear()
        await rig.settle(500)
        assert not rig.bound_of("cursed")
        await rig.until(lambda: len(rig.bound_of("cursed")) == 2, 150)


async def test_a_failure_that_is_no_gangs_ends_the_program(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*anything: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("posse.engine.cycle.give_up_overdue", fail)
    task = rig.start()
    rig.gang("good", 2)
    await rig.until(task.done)
    with pytest.raises(ExceptionGroup) as failure:
        task.result()
    assert failure.group_contains(Stumble)


async def test_it_is_set_aside_for_longer_each_time_and_not_twice_at_once() -> None:
    world = virtual_world()
    suspects = Suspects(world)
    stumble = Stumble("team/g", "KeyError")
    for minutes in (10, 20, 40):
        assert suspects.suspect(stumble)
        (said, seconds) = suspects.aside()["team/g"]
        assert f"every {minutes} minutes" in said
        assert seconds == pytest.approx(60 * minutes)
        assert not suspects.suspect(stumble), "it was set aside, and that did not help"
        await asyncio.sleep(seconds + 1)
    assert suspects.aside() == {}


async def test_where_it_fails_on_many_it_is_not_for_them() -> None:
    suspects = Suspects(virtual_world())
    told = [suspects.suspect(Stumble(f"team/{number}", "KeyError")) for number in range(17)]
    assert told == [True] * 16 + [False]
