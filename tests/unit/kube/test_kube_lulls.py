"""What can wait lets what is urgent go first, for as long as it can bear."""

from __future__ import annotations

import asyncio

import pytest

from posse.kube.lulls import SETTLES, Lull

pytestmark = pytest.mark.looptime


async def waited(lull: Lull, patience: float) -> float:
    clock = asyncio.get_running_loop().time
    began = clock()
    await lull.wait(began + patience)
    return clock() - began


async def test_while_it_is_quiet_nobody_waits() -> None:
    assert await waited(Lull(), 5.0) == 0.0


async def test_who_waits_goes_when_it_is_quiet() -> None:
    lull = Lull()
    lull.end("binds")
    asyncio.get_running_loop().call_later(2.0, lull.begin, "binds")
    assert await waited(lull, 5.0) == pytest.approx(2.0 + SETTLES)


async def test_a_breath_within_a_burst_is_no_lull() -> None:
    lull = Lull()
    loop = asyncio.get_running_loop()
    lull.end("binds")
    loop.call_later(1.0, lull.begin, "binds")
    loop.call_later(1.0 + SETTLES / 2, lull.end, "binds")
    loop.call_later(2.0, lull.begin, "binds")
    assert await waited(lull, 5.0) == pytest.approx(2.0 + SETTLES)


async def test_it_is_quiet_when_all_are() -> None:
    lull = Lull()
    loop = asyncio.get_running_loop()
    for who, until in (("binds", 1.0), ("evictions", 3.0)):
        lull.end(who)
        loop.call_later(until, lull.begin, who)
    assert await waited(lull, 5.0) == pytest.approx(3.0 + SETTLES)


async def test_nobody_waits_longer_than_it_can_bear() -> None:
    lull = Lull()
    lull.end("binds")
    assert await waited(lull, 5.0) == pytest.approx(5.0)


async def test_a_deadline_that_has_passed_is_no_wait() -> None:
    lull = Lull()
    lull.end("binds")
    assert await waited(lull, -1.0) == pytest.approx(0.0)
