"""The work queue, on virtual time."""

from __future__ import annotations

import asyncio

import pytest

from posse.controllers.runtime import WorkQueue
from tests.unit.controllers.builders import world

pytestmark = pytest.mark.looptime


def now() -> float:
    return asyncio.get_running_loop().time()


async def test_a_key_waits_once_however_often_it_is_added() -> None:
    queue: WorkQueue[str] = WorkQueue(world())
    for key in ("a", "b", "a", "a"):
        queue.add(key)
    assert [await queue.take(), await queue.take()] == ["a", "b"]
    assert len(queue) == 0


async def test_a_key_in_work_is_given_to_nobody_else() -> None:
    queue: WorkQueue[str] = WorkQueue(world())
    queue.add("a")
    await queue.take()
    queue.add("a")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(queue.take(), 100)


async def test_a_key_added_while_in_work_is_worked_on_again() -> None:
    queue: WorkQueue[str] = WorkQueue(world())
    queue.add("a")
    key = await queue.take()
    queue.add("a")
    queue.add("a")
    queue.done(key)
    assert await queue.take() == "a"
    queue.done("a")
    assert len(queue) == 0


async def test_a_waiting_taker_is_woken() -> None:
    queue: WorkQueue[str] = WorkQueue(world())
    taker = asyncio.create_task(queue.take())
    await asyncio.sleep(5)
    queue.add("a")
    assert await taker == "a"
    assert now() == 5


async def test_every_waiting_taker_gets_a_key() -> None:
    queue: WorkQueue[str] = WorkQueue(world())
    takers = [asyncio.create_task(queue.take()) for _ in range(3)]
    await asyncio.sleep(1)
    for key in ("a", "b", "c"):
        queue.add(key)
    assert sorted(await asyncio.gather(*takers)) == ["a", "b", "c"]


async def test_a_delayed_key_comes_when_it_is_due() -> None:
    queue: WorkQueue[str] = WorkQueue(world())
    queue.add_after("a", 30)
    assert await queue.take() == "a"
    assert now() == 30


async def test_of_several_delays_the_shortest_counts() -> None:
    queue: WorkQueue[str] = WorkQueue(world())
    for seconds in (30, 10, 20):
        queue.add_after("a", seconds)
    await queue.take()
    assert now() == 10
    queue.done("a")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(queue.take(), 100)


async def test_each_failure_doubles_the_delay_up_to_a_limit() -> None:
    queue: WorkQueue[str] = WorkQueue(world(), first_delay=1.0, longest_delay=8.0)
    delays = []
    for _ in range(6):
        delays.append(queue.retry("a"))
        await queue.take()
        queue.done("a")
    for delay, nominal in zip(delays, (1, 2, 4, 8, 8, 8), strict=True):
        assert nominal <= delay <= nominal * 1.1


async def test_keys_fail_each_for_themselves() -> None:
    queue: WorkQueue[str] = WorkQueue(world(), first_delay=1.0)
    for _ in range(5):
        queue.retry("a")
    assert queue.retry("b") < 2


async def test_success_makes_the_next_delay_short_again() -> None:
    queue: WorkQueue[str] = WorkQueue(world(), first_delay=1.0)
    for _ in range(5):
        queue.retry("a")
    queue.forget("a")
    assert queue.retry("a") < 2


async def test_a_server_may_ask_for_more_patience() -> None:
    queue: WorkQueue[str] = WorkQueue(world())
    assert queue.retry("a", at_least=17.0) == 17.0
    await queue.take()
    assert now() == 17


async def test_ten_thousand_failures_are_no_longer_a_wait_than_the_limit() -> None:
    queue: WorkQueue[str] = WorkQueue(world(), longest_delay=60.0)
    assert max(queue.retry("a") for _ in range(10_000)) <= 66


async def test_nothing_comes_after_closing() -> None:
    queue: WorkQueue[str] = WorkQueue(world())
    queue.add_after("a", 1)
    queue.close()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(queue.take(), 100)
