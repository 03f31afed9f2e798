from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from posse.kube.cache import Cache, Change
from posse.kube.connection import Connection
from posse.kube.inprocess import AsgiTransport
from posse.objects.kinds import CONFIG_MAP
from posse.virtual.world import virtual_world
from tests.unit.kube.faults import times
from tests.unit.kube.following import Following
from tests.unit.kube.modelserver import GONE, TOO_LARGE, Answer, ModelServer, Request, status

pytestmark = pytest.mark.looptime


def sizes(following: Following) -> dict[str, int]:
    return {name: thing.size for (_, name), thing in following.cache.objects.items()}


async def test_synced_waits_for_the_first_whole_list() -> None:
    following = Following()
    for index in range(3):
        following.server.put("configmaps", f"c{index}")
    following.transport.before = times(9)
    async with following:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(following.cache.synced(), 0.5)
        await following.cache.synced()
        assert sizes(following) == {"c0": 0, "c1": 0, "c2": 0}


async def test_events_become_changes_in_order() -> None:
    async with Following() as following:
        await following.cache.synced()
        following.server.put("configmaps", "a", size=1)
        following.server.put("configmaps", "b", size=1)
        following.server.put("configmaps", "a", size=2)
        following.server.delete("configmaps", "b")
        await following.settle()
        assert following.reader.told() == [
            ("made", "a"), ("made", "b"), ("changed", "a"), ("gone", "b"),
        ]  # fmt: skip
        assert following.cache.get("ns", "a") is following.reader.state["ns", "a"]
        assert following.cache.get("ns", "b") is None


async def test_events_of_one_chunk_are_one_batch() -> None:
    """No other task sees the cache between two events that arrived together."""
    seen: list[int] = []

    async def look() -> None:
        while True:
            seen.append(len(following.cache.objects))
            await asyncio.sleep(0.0001)

    following = Following()
    async with following:
        await following.cache.synced()
        await following.settle(1)
        watching = asyncio.create_task(look())
        await asyncio.sleep(0)
        lines = b"".join(
            b'{"type":"ADDED","object":{"metadata":{"name":"c%d","resourceVersion":"%d"}}}\n'
            % (index, index)
            for index in range(1, 6)
        )
        for watcher in following.server.watchers:
            watcher.put(lines)
        await following.settle(0.01)
        watching.cancel()
    assert set(seen) == {0, 5}


async def test_a_closed_watch_is_taken_up_where_it_ended() -> None:
    async with Following() as following:
        await following.cache.synced()
        following.server.put("configmaps", "a")
        await following.settle(2)
        following.server.close_watches()
        following.server.put("configmaps", "b")
        await following.settle()
        assert following.watches() == ["0", "1"]
        assert following.lists() == 1
        assert following.reader.told() == [("made", "a"), ("made", "b")]


async def test_a_bookmark_moves_the_place_to_go_on_from() -> None:
    async with Following() as following:
        await following.cache.synced()
        following.server.revision = 40  # other kinds moved on
        await following.settle(2)
        following.server.bookmark()
        await following.settle(2)
        following.server.close_watches()
        await following.settle(2)
        assert following.watches() == ["0", "40"]
        assert following.reader.told() == []


@pytest.mark.parametrize("over_http", [True, False])
async def test_gone_lists_again_and_tells_the_difference(over_http: bool) -> None:
    async with Following() as following:
        server = following.server
        await following.cache.synced()
        for name in ("stays", "changes", "goes", "replaced"):
            server.put("configmaps", name, size=1)
        await following.settle(2)
        following.reader.forget()

        following.transport.before = lambda method, path: True
        server.close_watches()
        await following.settle(1)
        server.put("configmaps", "changes", size=2)
        server.delete("configmaps", "goes")
        server.delete("configmaps", "replaced")
        server.put("configmaps", "replaced", size=1)
        server.put("configmaps", "comes", size=1)
        server.compact()
        if over_http:
            server.answers = lambda r: (
                Answer(410, GONE) if r.watching and r.query["resourceVersion"] == "4" else None
            )
        following.transport.before = lambda method, path: False
        await following.settle()

        assert following.lists() == 2
        assert sorted(following.reader.told()) == [
            ("changed", "changes"),
            ("gone", "goes"),
            ("gone", "replaced"),
            ("made", "comes"),
            ("made", "replaced"),
        ]
        assert not following.reader.faults
        assert sizes(following) == {"stays": 1, "changes": 2, "replaced": 1, "comes": 1}


async def test_the_same_name_with_another_uid_is_an_end_and_a_beginning() -> None:
    async with Following() as following:
        await following.cache.synced()
        following.server.put("configmaps", "a")
        await following.settle(1)
        made = following.server.objects["configmaps", "ns", "a"]
        other = made | {"metadata": made["metadata"] | {"uid": "other", "resourceVersion": "9"}}
        following.server.tell("MODIFIED", other)
        await following.settle(1)
        assert following.reader.told() == [("made", "a"), ("gone", "a"), ("made", "a")]
        assert following.reader.state["ns", "a"].metadata.uid == "other"


async def test_the_end_of_an_earlier_bearer_of_the_name_is_not_this_ones() -> None:
    async with Following() as following:
        await following.cache.synced()
        made = following.server.put("configmaps", "a")
        await following.settle(1)
        gone = made | {"metadata": made["metadata"] | {"uid": "earlier", "resourceVersion": "9"}}
        following.server.tell("DELETED", gone)
        await following.settle(1)
        assert following.reader.told() == [("made", "a")]


async def test_an_event_told_twice_is_one_change() -> None:
    async with Following() as following:
        await following.cache.synced()
        made = following.server.put("configmaps", "a")
        await following.settle(1)
        following.server.tell("MODIFIED", made)
        following.server.tell("ADDED", made)
        await following.settle(1)
        assert following.reader.told() == [("made", "a")]


async def test_a_late_repetition_does_not_raise_the_dead() -> None:
    async with Following() as following:
        await following.cache.synced()
        made = following.server.put("configmaps", "a")
        following.server.delete("configmaps", "a")
        await following.settle(1)
        following.server.tell("ADDED", made)
        await following.settle()
        assert following.cache.objects == {}
        assert following.reader.told() == [("made", "a"), ("gone", "a")]


async def test_a_lagging_server_is_given_time_before_a_new_list() -> None:
    async with Following() as following:
        await following.cache.synced()
        following.server.put("configmaps", "a")
        await following.settle(2)
        refusals = iter([Answer(504, TOO_LARGE)] * 2)
        following.server.answers = lambda r: next(refusals, None) if r.watching else None
        following.server.close_watches()
        await following.settle(5)
        following.server.put("configmaps", "b")
        await following.settle(5)
        assert following.watches() == ["0", "1", "1", "1"]
        assert following.lists() == 1
        assert sizes(following) == {"a": 0, "b": 0}


async def test_who_was_not_recognised_for_a_while_goes_on_from_where_he_was() -> None:
    async with Following() as following:
        await following.cache.synced()
        following.server.put("configmaps", "a")
        await following.settle(2)
        refusals = iter([Answer(401, status(401, "Unauthorized"))] * 2)
        following.server.answers = lambda r: next(refusals, None) if r.watching else None
        following.server.close_watches()
        following.server.put("configmaps", "b")
        await following.settle(10)
        assert following.watches() == ["0", "1", "1", "1"]
        assert following.lists() == 1
        assert sizes(following) == {"a": 0, "b": 0}


async def test_a_server_restored_to_an_earlier_state_is_listed_again() -> None:
    async with Following() as following:
        server = following.server
        await following.cache.synced()
        server.put("configmaps", "a", size=1)
        backup = server.snapshot()
        server.put("configmaps", "a", size=2)
        server.put("configmaps", "b")
        await following.settle(2)
        server.restore(backup)
        await following.settle()
        assert sizes(following) == {"a": 1}
        assert not following.reader.faults


async def test_a_server_that_tells_an_earlier_version_is_listed_again() -> None:
    """Restored behind an open watch: only the versions of its events give it away."""
    async with Following() as following:
        server = following.server
        await following.cache.synced()
        for size in range(5):
            server.put("configmaps", "a", size=size)
        await following.settle(2)
        server.objects.clear()
        server.history.clear()
        server.revision = 1
        server.put("configmaps", "b")
        await following.settle()
        assert sizes(following) == {"b": 0}


@pytest.mark.parametrize(
    "answer",
    [
        Answer(500, status(500, "InternalError")),
        Answer(403, status(403, "Forbidden")),
        Answer(404, status(404, "NotFound")),
        Answer(429, status(429, "TooManyRequests"), {"retry-after": "1"}),
        Answer(200, raw=b"<html>not today</html>"),
        Answer(200, {"metadata": {"resourceVersion": "1"}, "items": 5}),
        Answer(302, raw=b""),
    ],
)
async def test_whatever_the_server_answers_the_cache_goes_on(answer: Answer) -> None:
    following = Following()
    following.server.put("configmaps", "a")
    following.server.answers = lambda request: answer
    async with following:
        await following.settle(60)
        following.server.answers = lambda request: None
        await asyncio.wait_for(following.cache.synced(), 20)
        assert sizes(following) == {"a": 0}


async def test_a_server_that_is_down_is_asked_ever_more_rarely() -> None:
    following = Following()
    following.transport.before = lambda method, path: True
    async with following:
        await following.settle(600)
        # At most one list of four attempts every five seconds and a bit.
        assert 300 < len(following.transport.attempts) < 600


async def test_a_server_that_ends_watches_at_once_is_not_pressed() -> None:
    following = Following()
    following.server.answers = lambda r: Answer(200, raw=b"") if r.watching else None
    async with following:
        await following.settle(100)
        assert len(following.watches()) < 40


async def test_after_a_long_quiet_watch_the_first_retry_is_quick() -> None:
    following = Following()
    following.transport.before = times(40)
    async with following:
        await following.cache.synced()
        await following.settle(100)
        following.server.close_watches()
        following.server.put("configmaps", "a")
        await asyncio.sleep(0.1)
        assert sizes(following) == {"a": 0}


async def test_a_malformed_object_is_told_once_and_left_out() -> None:
    following = Following()
    server = following.server
    server.put("configmaps", "good")
    server.put("configmaps", "bad", size="big")
    async with following:
        await following.cache.synced()
        server.compact()
        server.revision += 1
        server.compact()
        server.close_watches()
        await following.settle()
        assert following.lists() == 2
        assert [bad.identity.name for bad in following.reader.malformed] == ["bad"]
        server.put("configmaps", "bad", size="bigger")
        await following.settle()
        assert len(following.reader.malformed) == 2
        assert sizes(following) == {"good": 0}
        server.put("configmaps", "bad", size=3)
        await following.settle()
        assert sizes(following) == {"good": 0, "bad": 3}
        assert following.cache.malformed == {}


async def test_an_object_that_turns_malformed_is_taken_out_and_its_end_forgotten() -> None:
    async with Following() as following:
        await following.cache.synced()
        following.server.put("configmaps", "a")
        following.server.put("configmaps", "a", size=None)
        await following.settle(2)
        assert following.reader.told() == [("made", "a"), ("gone", "a")]
        assert list(following.cache.malformed) == [("ns", "a")]
        following.server.delete("configmaps", "a")
        await following.settle(2)
        assert following.cache.malformed == {}
        assert following.lists() == 1


@pytest.mark.parametrize("obj", [{}, {"metadata": 5}, {"metadata": {"resourceVersion": "1"}}])
@pytest.mark.parametrize("event", ["MODIFIED", "DELETED"])
async def test_an_event_of_nobody_can_tell_whom_is_cleared_up_by_a_list(
    event: str, obj: dict[str, Any]
) -> None:
    async with Following() as following:
        await following.cache.synced()
        following.server.put("configmaps", "a")
        await following.settle(2)
        following.server.tell(event, obj)
        following.server.put("configmaps", "b")
        await following.settle()
        assert len(following.reader.malformed) == 1
        assert following.lists() == 2
        assert sizes(following) == {"a": 0, "b": 0}
        assert following.cache.malformed == {}


async def test_a_handler_that_raises_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def fail(_: Any) -> None:
        raise KeyError("a handler's own mistake")

    async with Following(on_change=fail, on_malformed=fail) as following:
        await following.cache.synced()
        following.server.put("configmaps", "a")
        following.server.put("configmaps", "b", size="big")
        following.server.put("configmaps", "c")
        await following.settle(2)
        assert sizes(following) == {"a": 0, "c": 0}
    failures = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert len(failures) == 3
    assert all(record.exc_info for record in failures)


async def test_selectors_and_namespace_go_with_every_request() -> None:
    following = Following(namespace="ns", labels="app=a", fields="metadata.name=x")
    async with following:
        await following.settle(2)
    asked = following.server.requests
    assert [request.path for request in asked] == ["/api/v1/namespaces/ns/configmaps"] * 2
    for request in asked:
        assert request.query["labelSelector"] == "app=a"
        assert request.query["fieldSelector"] == "metadata.name=x"


async def test_a_cache_of_dicts() -> None:
    server = ModelServer()
    server.put("configmaps", "a", size=1)
    changes: list[Change[dict[str, Any]]] = []
    connection = Connection(AsgiTransport(server), virtual_world())
    cache = Cache(connection, CONFIG_MAP, dict[str, Any], on_change=changes.append)
    running = asyncio.create_task(cache.run())
    await cache.synced()
    server.put("configmaps", "a", size=2)
    await asyncio.sleep(1)
    running.cancel()
    await connection.close()
    assert [change.new and change.new["size"] for change in changes] == [1, 2]


async def test_the_first_list_is_consistent_and_asks_for_pages() -> None:
    async with Following() as following:
        await following.cache.synced()
        first: Request = following.server.requests[0]
        assert "resourceVersion" not in first.query
        assert int(first.query["limit"]) > 0


async def test_ending_the_cache_leaves_no_watch_open() -> None:
    async with Following() as following:
        await following.settle(2)
        assert len(following.server.watchers) == 1
    assert not following.server.watchers
