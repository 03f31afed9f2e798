"""While binds go on without a pause: who waits hears why, and who has started can wait."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from posse.kube.lulls import SETTLES
from tests.unit.scheduler.rig import Rig, group, pod

pytestmark = pytest.mark.looptime


@asynccontextmanager
async def busy(rig: Rig) -> AsyncIterator[None]:
    """Gangs keep coming, and each is bound, sooner than there could be a lull."""

    async def arrive() -> None:
        number = 0
        while True:
            rig.gang(f"next{number}", 1, gpus=0)
            number += 1
            await asyncio.sleep(SETTLES / 2)

    coming = asyncio.create_task(arrive())
    await rig.until(lambda: rig.bound_of("next0"))
    try:
        yield
    finally:
        coming.cancel()
        await asyncio.wait({coming})


@pytest.fixture
async def rig() -> Rig:
    rig = Rig()
    rig.nodes(40)
    return rig


async def test_a_gang_that_has_its_nodes_says_so_within_seconds(rig: Rig) -> None:
    async with rig.running(), busy(rig):
        rig.gang("train", 2)
        await rig.until(lambda: len(rig.bound_of("train")) == 2, 1.0)
        await rig.settle(4.0)
        assert rig.phase("train") != "Running"
        await rig.until(lambda: rig.phase("train") == "Running", 3.0)


async def test_a_gang_that_waits_hears_why_before_that(rig: Rig) -> None:
    async with rig.running(), busy(rig):
        rig.gang("train", 2)
        rig.gang("large", 41)
        await rig.until(lambda: rig.api.condition("podgroups", "large", "Unschedulable"), 2.0)
        assert rig.phase("train") != "Running"


async def test_a_started_gang_that_becomes_urgent_is_told_of_at_once(rig: Rig) -> None:
    async with rig.running(), busy(rig):
        rig.gang("train", 2)
        await rig.until(lambda: len(rig.bound_of("train")) == 2, 1.0)
        await rig.settle(1.0)
        assert rig.phase("train") != "Running"
        for member in ("train-0", "train-1"):
            rig.api.change("pods", member, status={"phase": "Succeeded"})
        await rig.until(lambda: rig.phase("train") == "Completed", 2.0)


async def test_when_it_is_quiet_nobody_waits(rig: Rig) -> None:
    async with rig.running():
        rig.gang("train", 2)
        await rig.until(lambda: rig.phase("train") == "Running", 1.0)


async def test_a_gang_for_which_others_end_is_told_of_its_wait_only_if_that_lasts() -> None:
    rig = Rig()
    rig.nodes(2)
    for at in range(2):
        made = pod(f"old-{at}", "old", nodeName=f"n{at}", priority=0)
        rig.api.put("pods", made | {"status": {"phase": "Running"}})
    rig.api.put("podgroups", group("old", 2))
    rig.api.put("podgroups", group("new", 2))
    async with rig.running():
        await rig.until(lambda: rig.phase("old") == "Running")
        # Each request takes so long that those for the victims are under way for seconds.
        rig.api.latency = 0.3
        for at in range(2):
            rig.api.put("pods", pod(f"new-{at}", "new", priority=5))
        await rig.until(lambda: len(rig.bound_of("new")) == 2)
    evictions = rig.api.sent("POST", r"/pods/old-./eviction")
    assert len(evictions) >= 2
    assert rig.api.sent("PATCH", r"/pods/new-./status") == []
