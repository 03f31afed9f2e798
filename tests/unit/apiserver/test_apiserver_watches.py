"""WATCH: no change lost, doubled or out of order, and an end to every watch."""

from __future__ import annotations

import asyncio

import pytest

from posse.local.apiserver import watching
from posse.local.apiserver.journal import MemoryJournal
from tests.unit.apiserver.asking import CONFIG_MAPS, PODS, Server, binding, config_map, pod

pytestmark = pytest.mark.looptime

TABLE = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}


async def test_changes_after_a_revision_come_in_order(server: Server) -> None:
    since = server.store.revision
    await server.post(CONFIG_MAPS, config_map("a"))
    async with server.watch(CONFIG_MAPS, resourceVersion=since) as events:
        await server.post(CONFIG_MAPS, config_map("b"))
        await server.patch(f"{CONFIG_MAPS}/a", {"data": {"x": "1"}})
        await server.delete(f"{CONFIG_MAPS}/b")
        assert await events.told(4) == [
            ("ADDED", "a"),
            ("ADDED", "b"),
            ("MODIFIED", "a"),
            ("DELETED", "b"),
        ]


async def test_a_change_is_told_once_however_it_meets_the_watch(server: Server) -> None:
    """Writers race with watches that begin at the revision of their list."""
    names = [f"c{n:02}" for n in range(30)]

    async def write() -> None:
        for name in names:
            await server.post(CONFIG_MAPS, config_map(name))

    async def follow() -> list[str]:
        listed = await server.get(CONFIG_MAPS)
        async with server.watch(CONFIG_MAPS, resourceVersion=listed.version) as events:
            rest = await events.told(len(names) - len(listed.names))
        return listed.names + [name for _, name in rest]

    async def later(turns: int) -> list[str]:
        for _ in range(turns):
            await asyncio.sleep(0)
        return await follow()

    writing = asyncio.create_task(write())
    for seen in await asyncio.gather(*(later(turns) for turns in range(0, 200, 7))):
        assert seen == names
    await writing


async def test_revisions_only_grow(server: Server) -> None:
    async with server.watch(CONFIG_MAPS, resourceVersion=server.store.revision) as events:
        for n in range(5):
            await server.post(CONFIG_MAPS, config_map(f"c{n}"))
            await server.delete(f"{CONFIG_MAPS}/c{n}")
        revisions = [
            int((await events.event())["object"]["metadata"]["resourceVersion"]) for _ in range(10)
        ]
    assert revisions == sorted(set(revisions))


@pytest.mark.parametrize("revision", ["", "0"])
async def test_without_a_revision_the_present_state_comes_first(
    server: Server, revision: str
) -> None:
    await server.post(CONFIG_MAPS, config_map("a"))
    async with server.watch(CONFIG_MAPS, resourceVersion=revision) as events:
        await server.post(CONFIG_MAPS, config_map("b"))
        assert await events.told(2) == [("ADDED", "a"), ("ADDED", "b")]


async def test_entering_and_leaving_a_selection(server: Server) -> None:
    await server.post(CONFIG_MAPS, config_map("a", {"in": "no"}))
    query = {"resourceVersion": server.store.revision, "labelSelector": "in=yes"}
    async with server.watch(CONFIG_MAPS, **query) as events:
        for value in ("yes", "yes", "no"):
            change = {"metadata": {"labels": {"in": value}}, "data": {"n": value}}
            await server.patch(f"{CONFIG_MAPS}/a", change)
        await server.patch(f"{CONFIG_MAPS}/a", {"data": {"x": "1"}})
        entered, left = await events.event(), await events.event()
        assert (entered["type"], left["type"]) == ("ADDED", "DELETED")
        assert left["object"]["metadata"]["labels"] == {"in": "yes"}
        assert int(left["object"]["metadata"]["resourceVersion"]) == server.store.revision - 1
        assert await events.silent()


async def test_a_selection_by_node(server: Server) -> None:
    await server.post(PODS, pod())
    query = {"resourceVersion": server.store.revision, "fieldSelector": "spec.nodeName=n"}
    async with server.watch(PODS, **query) as events:
        await server.post(f"{PODS}/p/binding", binding("p", "n"))
        assert await events.told(1) == [("ADDED", "p")]


async def test_another_namespace_is_not_told_of(server: Server) -> None:
    async with server.watch(CONFIG_MAPS, resourceVersion=server.store.revision) as events:
        await server.post("/api/v1/namespaces/kube-system/configmaps", config_map("there"))
        await server.post(CONFIG_MAPS, config_map("here"))
        assert await events.told(1) == [("ADDED", "here")]


async def test_a_forgotten_revision_is_an_error_event() -> None:
    server = Server(history_events=2)
    for n in range(5):
        await server.post(CONFIG_MAPS, config_map(f"c{n}"))
    async with server.watch(CONFIG_MAPS, resourceVersion=1) as events:
        (error,) = await events.rest()
    assert error["type"] == "ERROR"
    assert (error["object"]["code"], error["object"]["reason"]) == (410, "Expired")
    assert error["object"]["message"].startswith("too old resource version: 1")


async def test_a_revision_before_the_restart_is_an_error_event(server: Server) -> None:
    since = server.store.revision
    await server.post(CONFIG_MAPS, config_map())
    assert isinstance(server.journal, MemoryJournal)
    again = Server(MemoryJournal(server.journal.records))
    async with again.watch(CONFIG_MAPS, resourceVersion=since) as events:
        assert (await events.rest())[0]["object"]["code"] == 410
    async with again.watch(CONFIG_MAPS, resourceVersion=again.store.revision) as events:
        await again.post(CONFIG_MAPS, config_map("new"))
        assert await events.told(1) == [("ADDED", "new")]


async def test_a_revision_to_come_is_an_error_event_after_a_while(server: Server) -> None:
    async with server.watch(CONFIG_MAPS, resourceVersion=10_000) as events:
        (error,) = await events.rest()
    assert (error["type"], error["object"]["code"]) == ("ERROR", 504)
    assert error["object"]["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


async def test_a_watch_ends_after_its_time_with_a_bookmark(server: Server) -> None:
    begun = asyncio.get_running_loop().time()
    query = {"timeoutSeconds": 30, "allowWatchBookmarks": "true"}
    async with server.watch(CONFIG_MAPS, resourceVersion=server.store.revision, **query) as events:
        await server.post(PODS, pod())
        (bookmark,) = await events.rest()
    assert asyncio.get_running_loop().time() - begun == pytest.approx(30, abs=0.1)
    assert bookmark["type"] == "BOOKMARK"
    assert bookmark["object"]["kind"] == "ConfigMap"
    assert bookmark["object"]["metadata"]["resourceVersion"] == str(server.store.revision)


async def test_bookmarks_come_every_minute_and_only_where_asked_for(server: Server) -> None:
    since = server.store.revision
    for asked, count in (("true", 5), ("false", 0)):
        query = {"timeoutSeconds": 299, "allowWatchBookmarks": asked}
        async with server.watch(CONFIG_MAPS, resourceVersion=since, **query) as events:
            assert len(await events.rest()) == count


async def test_a_watch_without_a_time_ends_some_day(server: Server) -> None:
    async with server.watch(CONFIG_MAPS, resourceVersion=server.store.revision) as events:
        assert await events.rest() == []
    assert 1800 <= asyncio.get_running_loop().time() < 2100


async def test_initial_events_end_with_a_marked_bookmark(server: Server) -> None:
    await server.post(CONFIG_MAPS, config_map("a"))
    query = {
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
        "allowWatchBookmarks": "true",
    }
    async with server.watch(CONFIG_MAPS, **query) as events:
        assert await events.told(1) == [("ADDED", "a")]
        mark = await events.event()
        assert mark["type"] == "BOOKMARK"
        assert mark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
        assert mark["object"]["metadata"]["resourceVersion"] == str(server.store.revision)
        await server.post(CONFIG_MAPS, config_map("b"))
        assert await events.told(1) == [("ADDED", "b")]


async def test_initial_events_may_be_declined(server: Server) -> None:
    await server.post(CONFIG_MAPS, config_map("a"))
    query = {"sendInitialEvents": "false", "resourceVersionMatch": "NotOlderThan"}
    async with server.watch(CONFIG_MAPS, **query) as events:
        await server.post(CONFIG_MAPS, config_map("b"))
        assert await events.told(1) == [("ADDED", "b")]


async def test_a_slow_watcher_is_cut_off(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "_BEHIND", 5)
    async with server.watch(CONFIG_MAPS, resourceVersion=server.store.revision) as events:
        for n in range(100):
            await server.post(CONFIG_MAPS, config_map(f"c{n:03}"))
        seen = []
        with pytest.raises(Exception, match=r"."):
            while True:
                seen += await events.told(1)
    assert len(seen) < 100
    assert seen == [("ADDED", f"c{n:03}") for n in range(len(seen))]


async def test_a_watcher_who_leaves_is_forgotten(server: Server) -> None:
    async with server.watch(CONFIG_MAPS, resourceVersion=server.store.revision):
        await asyncio.sleep(1)
        assert len(server.store._collection("configmaps").subscribers) == 1
    await asyncio.sleep(1)
    assert server.store._collection("configmaps").subscribers == []


async def test_a_watch_of_tables_names_its_columns_once(server: Server) -> None:
    await server.post(PODS, pod("a"))
    async with server.watch(PODS, headers=TABLE) as events:
        await server.post(PODS, pod("b"))
        first, second = await events.event(), await events.event()
    assert first["object"]["columnDefinitions"][0]["name"] == "Name"
    assert second["object"]["columnDefinitions"] is None
    assert second["object"]["rows"][0]["cells"][0] == "b"


async def test_watchers_share_the_bytes_of_a_frame(server: Server) -> None:
    """What the store hands to a thousand watchers is one object, not a thousand."""
    made: list[bytes] = []

    class Spy(watching.Watcher):
        def push(self, event: object) -> None:
            frame = self._frames.wanted(event)  # type: ignore[arg-type]
            assert frame is not None
            made.append(frame)

    original = watching.Watcher
    watching.Watcher = Spy  # type: ignore[misc]
    try:
        since = server.store.revision
        async with (
            server.watch(CONFIG_MAPS, resourceVersion=since),
            server.watch("/api/v1/configmaps", resourceVersion=since),
        ):
            await asyncio.sleep(1)
            await server.post(CONFIG_MAPS, config_map())
    finally:
        watching.Watcher = original  # type: ignore[misc]
    assert len(made) == 2
    assert made[0] is made[1]
