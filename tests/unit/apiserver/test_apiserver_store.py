"""The store shows nothing that could still be lost, and everything in one order."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from posse.local.apiserver.journal import JournalError, MemoryJournal, Record
from posse.local.apiserver.store import Event, Expired, Store


class SlowJournal:
    """Keeps every write waiting until the test lets it through or fails it."""

    def __init__(self) -> None:
        self.revision = 0
        self.waiting: list[asyncio.Future[None]] = []

    def load(self) -> list[Record]:
        return []

    def append(self, record: Record) -> asyncio.Future[None]:
        durable = asyncio.get_running_loop().create_future()
        self.waiting.append(durable)
        return durable

    async def commit(self, count: int = 1) -> None:
        for _ in range(count):
            self.waiting.pop(0).set_result(None)
        await asyncio.sleep(0)

    async def fail(self) -> None:
        self.fail_now()
        await asyncio.sleep(0)

    def fail_now(self) -> None:
        for durable in self.waiting:
            durable.set_exception(JournalError("disk full"))
        self.waiting.clear()

    def close(self) -> None:
        return None


def obj(name: str, **data: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "ns", "uid": f"uid-{name}"}, "data": data}


def names(store: Store, at: int | None = None) -> list[str]:
    return [stored.key[1] for stored in store.objects("things", "ns", at)]


async def test_a_write_is_shown_only_when_it_is_durable() -> None:
    journal = SlowJournal()
    store = Store(journal)
    store.put("things", obj("a"))
    assert names(store) == []
    assert store.revision == 0
    await journal.commit()
    assert names(store) == ["a"]
    assert store.revision == 1


async def test_the_next_write_sees_those_on_their_way() -> None:
    store = Store(SlowJournal())
    store.put("things", obj("a", x=1))
    latest = store.latest("things", ("ns", "a"))
    assert latest is not None
    assert latest.obj["data"] == {"x": 1}


async def test_subscribers_hear_of_durable_writes_in_order() -> None:
    journal = SlowJournal()
    store = Store(journal)
    heard: list[int] = []
    store.subscribe("things", lambda event: heard.append(event.revision))
    for name in ("a", "b", "c"):
        store.put("things", obj(name))
    await journal.commit(2)
    assert heard == [1, 2]
    await journal.commit()
    assert heard == [1, 2, 3]


async def test_a_failed_journal_takes_back_all_that_was_on_its_way() -> None:
    journal = SlowJournal()
    store = Store(journal)
    store.put("things", obj("kept"))
    await journal.commit()
    store.put("things", obj("kept", x=2))
    store.put("things", obj("new"))
    store.remove("things", ("ns", "kept"))
    await journal.fail()
    assert names(store) == ["kept"]
    assert store.latest("things", ("ns", "new")) is None
    kept = store.latest("things", ("ns", "kept"))
    assert kept is not None
    assert kept.obj["data"] == {}


async def test_no_write_rests_on_one_that_has_failed_a_moment_ago() -> None:
    """The failure is known before the callbacks have run: the store must look for itself."""
    journal = SlowJournal()
    store = Store(journal)
    store.put("things", obj("a"))
    journal.fail_now()
    assert store.latest("things", ("ns", "a")) is None


async def test_a_revision_is_never_given_twice() -> None:
    journal = SlowJournal()
    store = Store(journal)
    store.put("things", obj("a"))
    await journal.fail()
    assert store.put("things", obj("a")).stored.revision == 2


async def test_a_subscriber_that_writes_does_not_overtake_the_others() -> None:
    store = Store(MemoryJournal())
    heard: list[str] = []

    def answer(event: Event) -> None:
        if event.stored.key[1] == "a":
            store.put("things", obj("b"))

    store.subscribe("things", answer)
    store.subscribe("things", lambda event: heard.append(event.stored.key[1]))
    store.put("things", obj("a"))
    assert heard == ["a", "b"]


async def test_a_subscriber_that_fails_keeps_nothing_from_the_others() -> None:
    store = Store(MemoryJournal())
    heard: list[int] = []

    def fail(event: Event) -> None:
        raise ZeroDivisionError

    store.subscribe("things", fail)
    store.subscribe("things", lambda event: heard.append(event.revision))
    store.put("things", obj("a"))
    store.put("things", obj("b"))
    assert heard == [1, 2]


async def test_an_earlier_state_can_be_listed() -> None:
    store = Store(MemoryJournal())
    store.put("things", obj("a", x=1))
    store.put("things", obj("b"))
    before = store.revision
    store.put("things", obj("a", x=2))
    store.remove("things", ("ns", "b"))
    store.put("things", obj("c"))
    assert names(store) == ["a", "c"]
    assert names(store, before) == ["a", "b"]
    assert store.objects("things", "ns", before)[0].obj["data"] == {"x": 1}


async def test_a_state_before_the_history_has_expired() -> None:
    store = Store(MemoryJournal(), history_events=2)
    for name in ("a", "b", "c", "d"):
        store.put("things", obj(name))
    assert [event.revision for event in store.since("things", 2)] == [3, 4]
    with pytest.raises(Expired, match="too old resource version: 1"):
        store.since("things", 1)


async def test_the_history_is_bounded_in_bytes_too() -> None:
    store = Store(MemoryJournal(), history_bytes=1000)
    for _ in range(10):
        store.put("things", obj("a", x="x" * 300))
    with pytest.raises(Expired):
        store.since("things", 5)
    assert [event.revision for event in store.since("things", 9)] == [10]


async def test_after_a_restart_the_state_is_the_same_and_the_history_begins() -> None:
    first = MemoryJournal()
    store = Store(first)
    store.put("things", obj("a"))
    store.put("things", obj("b"))
    store.remove("things", ("ns", "a"))
    again = Store(MemoryJournal(first.records))
    assert names(again) == ["b"]
    assert again.revision == 3
    assert again.since("things", 3) == []
    with pytest.raises(Expired):
        again.since("things", 2)


async def test_a_resource_that_never_changed_has_no_history_to_lose() -> None:
    store = Store(MemoryJournal())
    store.put("things", obj("a"))
    store.put("things", obj("b"))
    assert store.since("others", 1) == []


async def test_the_last_state_of_a_removed_object_has_the_revision_of_its_removal() -> None:
    store = Store(MemoryJournal())
    events: list[Event] = []
    store.subscribe("things", events.append)
    store.put("things", obj("a"))
    store.remove("things", ("ns", "a"))
    assert events[-1].deleted
    assert events[-1].stored.obj["metadata"]["resourceVersion"] == "2"
