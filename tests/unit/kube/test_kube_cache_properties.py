"""Whatever happens to server and network, the cache ends as the server is, and nobody is misled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import count

import looptime
import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.kube.faults import times
from tests.unit.kube.following import Following, Thing
from tests.unit.kube.modelserver import TOO_LARGE, Answer, status

NAMES = ("a", "b", "c")
versions = count()


def put(following: Following, name: str) -> None:
    following.server.put("configmaps", name, size=next(versions))


def break_object(following: Following, name: str) -> None:
    following.server.put("configmaps", name, size=f"malformed {next(versions)}")


def delete(following: Following, name: str) -> None:
    if ("configmaps", "ns", name) in following.server.objects:
        following.server.delete("configmaps", name)


def recreate(following: Following, name: str) -> None:
    delete(following, name)
    put(following, name)


def close_watches(following: Following, name: str) -> None:
    following.server.close_watches()


def forget_history(following: Following, name: str) -> None:
    following.server.compact()
    following.server.close_watches()


def bookmark_twice(following: Following, name: str) -> None:
    following.server.bookmark()
    following.server.bookmark()


def repeat_last(following: Following, name: str) -> None:
    for _, event, _, obj in following.server.history[-1:]:
        following.server.tell(event, obj)


def repeat_old(following: Following, name: str) -> None:
    for _, event, _, obj in following.server.history[: len(name)]:
        following.server.tell(event, obj)


def error_event(following: Following, name: str) -> None:
    following.server.tell("ERROR", status(410, "Expired"))


def broken_event(following: Following, name: str) -> None:
    for watcher in following.server.watchers:
        watcher.put(b'{"type": "ADDED", "obj\n')


def lag(following: Following, name: str) -> None:
    refusals = iter([Answer(504, TOO_LARGE)] * len(name))
    following.server.answers = lambda r: next(refusals, None) if r.watching else None
    following.server.close_watches()


def fail(following: Following, name: str) -> None:
    refusals = iter([Answer(500, status(500, "InternalError"))] * 3)
    following.server.answers = lambda r: next(refusals, None)
    following.server.close_watches()


def go_away(following: Following, name: str) -> None:
    following.transport.before = times(9)
    following.server.close_watches()


ACTIONS: tuple[Callable[[Following, str], None], ...] = (
    put, put, delete, recreate, break_object, close_watches, forget_history, bookmark_twice,
    repeat_last, repeat_old, error_event, broken_event, lag, fail, go_away,
)  # fmt: skip

steps = st.lists(
    st.tuples(
        st.sampled_from(ACTIONS),
        st.sampled_from(NAMES),
        st.sampled_from([0.0, 0.01, 0.01, 0.3, 4.0]),
    ),
    max_size=40,
)


def stop_faults(following: Following) -> None:
    following.transport.before = times(0)
    following.server.answers = lambda request: None


async def follow(actions: list[tuple[Callable[[Following, str], None], str, float]]) -> Following:
    async with Following() as following:
        for act, name, pause in actions:
            act(following, name)
            if pause:
                await following.settle(pause)
        stop_faults(following)
        await following.settle(30)
    return following


def run(actions: list[tuple[Callable[[Following, str], None], str, float]]) -> Following:
    loop = looptime.new_event_loop(start=0)
    try:
        return loop.run_until_complete(follow(actions))
    finally:
        asyncio.set_event_loop(None)
        loop.close()


@settings(max_examples=250, deadline=None)
@given(actions=steps)
def test_the_cache_ends_as_the_server_is(
    actions: list[tuple[Callable[[Following, str], None], str, float]],
) -> None:
    following = run(actions)
    there = following.server.names("configmaps")
    good = {key: obj for key, obj in there.items() if isinstance(obj["size"], int)}
    expected = {key: msgspec.convert(obj, Thing) for key, obj in good.items()}
    assert following.cache.objects == expected
    assert sorted(following.cache.malformed) == sorted(key for key in there if key not in good)
    assert following.reader.state == expected
    assert following.reader.faults == []


@settings(max_examples=250, deadline=None)
@given(actions=steps)
def test_nothing_is_told_that_the_server_never_held(
    actions: list[tuple[Callable[[Following, str], None], str, float]],
) -> None:
    ever: dict[tuple[str, str], int] = {}

    def remember(act: Callable[[Following, str], None]) -> Callable[[Following, str], None]:
        def acting(following: Following, name: str) -> None:
            act(following, name)
            for _, _, _, obj in following.server.history:
                meta = obj["metadata"]
                ever[meta["uid"], meta["resourceVersion"]] = obj["size"]

        return acting

    following = run([(remember(act), name, pause) for act, name, pause in actions])
    for change in following.reader.changes:
        if change.new is not None:
            meta = change.new.metadata
            assert ever[meta.uid, meta.resource_version] == change.new.size


@settings(max_examples=60, deadline=None)
@given(before=steps, after=steps)
def test_a_server_put_back_to_an_earlier_state_is_followed_there(
    before: list[tuple[Callable[[Following, str], None], str, float]],
    after: list[tuple[Callable[[Following, str], None], str, float]],
) -> None:
    kept = []

    def back_up(following: Following, name: str) -> None:
        kept.append(following.server.snapshot())

    def restore(following: Following, name: str) -> None:
        following.server.restore(kept[0])

    following = run([*before, (back_up, "", 0.0), *after, (restore, "", 0.0)])
    there = following.server.names("configmaps")
    good = {key: obj for key, obj in there.items() if isinstance(obj["size"], int)}
    assert following.cache.objects == {k: msgspec.convert(o, Thing) for k, o in good.items()}
    assert following.reader.faults == []
