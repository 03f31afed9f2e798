"""What was written and not yet seen."""

from __future__ import annotations

import asyncio

import pytest

from posse.controllers.runtime import Expectations
from tests.unit.controllers.builders import world

pytestmark = pytest.mark.looptime

KEY = ("ns", "a")


async def test_a_creation_is_expected_until_it_is_seen() -> None:
    expectations = Expectations(world())
    expectations.created(KEY, "u1")
    assert not expectations.settled(KEY)
    expectations.appeared("u1")
    assert expectations.settled(KEY)


async def test_an_event_may_overtake_the_answer_to_its_write() -> None:
    expectations = Expectations(world())
    expectations.appeared("u1")
    expectations.created(KEY, "u1")
    assert expectations.settled(KEY)


async def test_an_object_may_come_and_go_before_the_answer() -> None:
    expectations = Expectations(world())
    expectations.appeared("u1")
    expectations.gone("u1")
    expectations.created(KEY, "u1")
    assert expectations.settled(KEY)


@pytest.mark.parametrize("how", ["ending", "gone"])
async def test_a_deletion_is_expected_until_it_is_seen(how: str) -> None:
    expectations = Expectations(world())
    expectations.appeared("u1")
    expectations.deleted(KEY, "u1")
    assert not expectations.settled(KEY)
    getattr(expectations, how)("u1")
    assert expectations.settled(KEY)


@pytest.mark.parametrize("how", ["ending", "gone"])
async def test_a_deletion_seen_before_its_answer(how: str) -> None:
    expectations = Expectations(world())
    expectations.appeared("u1")
    getattr(expectations, how)("u1")
    expectations.deleted(KEY, "u1")
    assert expectations.settled(KEY)


async def test_keys_expect_each_for_themselves() -> None:
    expectations = Expectations(world())
    expectations.created(KEY, "u1")
    assert expectations.settled(("ns", "b"))


async def test_what_never_comes_lapses() -> None:
    expectations = Expectations(world(), lapse_after=60)
    expectations.created(KEY, "u1")
    await asyncio.sleep(20)
    assert expectations.lapses_in(KEY) == 40
    await asyncio.sleep(40)
    assert expectations.settled(KEY)
