"""Certificates that replicas keep together, trusted before they are shown."""

from __future__ import annotations

import asyncio
import base64
import logging
import random

import pytest

from posse.admission.certificates import Holding, held, renewed
from posse.admission.keeping import EVERY, SPREADS_WITHIN, Keeper, Keeping
from posse.kube.errors import Unreachable
from posse.world import World
from tests.unit.admission.store import CONFIGURATION, HOOKS, KEPT_IN, SYSTEM, Store, secret_path

KEEPING = Keeping(
    namespace=SYSTEM,
    secret=KEPT_IN,
    configuration=CONFIGURATION,
    names=("posse-admission.posse-system.svc",),
)
DAY = 86_400.0


class LoopClock:
    """The loop's time, as wall clock too; days can be skipped."""

    def __init__(self) -> None:
        self.skipped = 0.0

    def now(self) -> float:
        return 1_700_000_000.0 + self.monotonic()

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time() + self.skipped * DAY


class Replica:
    def __init__(self, store: Store, clock: LoopClock, seed: int = 1) -> None:
        self.world = World(clock, random.Random(seed))
        self.shown: list[Holding] = []
        self.keeper = Keeper(KEEPING, store.connection(self.world), self.world, self.shown.append)


@pytest.fixture
def store() -> Store:
    made = Store()
    made.configure("jobs.posse.dev", "pods.posse.dev")
    made.put(
        secret_path(), {"metadata": {"name": KEPT_IN, "namespace": SYSTEM, "labels": {"a": "b"}}}
    )
    return made


@pytest.fixture
def clock() -> LoopClock:
    return LoopClock()


def trust(holding: Holding) -> str:
    return base64.b64encode(holding.bundle).decode()


pytestmark = pytest.mark.looptime


async def test_an_empty_secret_is_filled_and_trusted_everywhere(
    store: Store, clock: LoopClock
) -> None:
    replica = Replica(store, clock)
    await replica.keeper.look()
    (shown,) = replica.shown
    secret = store.secret()
    assert secret is not None
    assert held(secret) == shown
    assert secret["metadata"]["labels"] == {"a": "b"}, "what others wrote on it stays"
    for kind in HOOKS:
        assert store.bundles(kind) == {
            "jobs.posse.dev": trust(shown),
            "pods.posse.dev": trust(shown),
        }


async def test_looking_again_writes_nothing(store: Store, clock: LoopClock) -> None:
    replica = Replica(store, clock)
    await replica.keeper.look()
    store.written.clear()
    await replica.keeper.look()
    assert store.written == []
    assert len(replica.shown) == 1


async def test_a_second_replica_shows_the_same(store: Store, clock: LoopClock) -> None:
    first, second = Replica(store, clock, 1), Replica(store, clock, 2)
    await first.keeper.look()
    await second.keeper.look()
    assert first.shown == second.shown


async def test_of_two_that_renew_at_once_one_gives_way(store: Store, clock: LoopClock) -> None:
    first, second = Replica(store, clock, 1), Replica(store, clock, 2)
    raced: list[bool] = []

    def overtake(method: str, path: str) -> None:
        if method == "PUT" and not raced:
            raced.append(True)
            other = renewed(None, KEEPING.names, (), second.world)
            store.put(path, (store.secret() or {}) | {"data": other.data()})

    store.before = overtake
    await first.keeper.look()
    await second.keeper.look()
    assert raced
    assert first.shown == second.shown
    assert set(store.bundles().values()) == {trust(first.shown[0])}


async def test_an_older_trust_is_never_put_back(store: Store, clock: LoopClock) -> None:
    """One that was slow between reading and writing finds the configuration moved."""
    slow, quick = Replica(store, clock, 1), Replica(store, clock, 2)
    await slow.keeper.look()
    newer: list[Holding] = []

    def meanwhile(method: str, path: str) -> None:
        if method == "PATCH" and not newer:
            newer.append(renewed(None, KEEPING.names, (), quick.world))
            store.put(secret_path(), (store.secret() or {}) | {"data": newer[0].data()})
            for kind in HOOKS:
                found = store.objects[kind.path(None, CONFIGURATION)]
                for webhook in found["webhooks"]:
                    webhook["clientConfig"]["caBundle"] = trust(newer[0])
                store.put(kind.path(None, CONFIGURATION), found)

    store.configure("jobs.posse.dev")
    store.before = meanwhile
    await slow.keeper.look()
    assert newer
    assert set(store.bundles().values()) == {trust(newer[0])}
    assert slow.shown[-1] == newer[0]


async def test_a_new_authority_is_trusted_before_it_is_shown(
    store: Store, clock: LoopClock
) -> None:
    replica = Replica(store, clock)
    await replica.keeper.look()
    clock.skipped = 3650 - 365 + 1
    looking = asyncio.create_task(replica.keeper.look())
    await asyncio.sleep(SPREADS_WITHIN - 1)
    assert len(replica.shown) == 1
    fresh = held(store.secret())
    assert fresh is not None
    assert set(store.bundles().values()) == {trust(fresh)}
    await looking
    assert replica.shown[1] == fresh
    assert replica.shown[0].authority in fresh.bundle


async def test_what_is_trusted_no_more_is_not_shown_a_moment_longer(
    store: Store, clock: LoopClock
) -> None:
    replica = Replica(store, clock)
    await replica.keeper.look()
    store.put(secret_path(), (store.secret() or {}) | {"data": {}})
    began = clock.monotonic()
    await replica.keeper.look()
    assert len(replica.shown) == 2
    assert clock.monotonic() - began < 1


async def test_a_certificate_of_the_same_authority_is_shown_at_once(
    store: Store, clock: LoopClock
) -> None:
    replica = Replica(store, clock)
    await replica.keeper.look()
    clock.skipped = 61
    began = asyncio.get_running_loop().time()
    await replica.keeper.look()
    assert len(replica.shown) == 2
    assert asyncio.get_running_loop().time() == began


async def test_a_replica_takes_up_what_another_renewed(store: Store, clock: LoopClock) -> None:
    first, second = Replica(store, clock, 1), Replica(store, clock, 2)
    running = [asyncio.create_task(one.keeper.run()) for one in (first, second)]
    await asyncio.sleep(1)
    clock.skipped = 61
    await asyncio.sleep(2.2 * EVERY)
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    assert len(first.shown) == 2
    assert first.shown == second.shown


async def test_a_server_that_is_away_is_waited_for(store: Store, clock: LoopClock) -> None:
    replica = Replica(store, clock)
    store.down = True
    running = asyncio.create_task(replica.keeper.run())
    await asyncio.sleep(300)
    assert replica.shown == []
    store.down = False
    await asyncio.sleep(40)
    assert len(replica.shown) == 1
    store.down = True
    await asyncio.sleep(300)
    assert not running.done()
    assert len(replica.shown) == 1, "what is shown stays"
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_write_whose_answer_was_lost_counts(store: Store, clock: LoopClock) -> None:
    replica = Replica(store, clock)
    lost: list[Holding | None] = []

    def cut(method: str, path: str) -> None:
        if method == "PUT" and not lost:
            lost.append(held(store.secret()))
            raise Unreachable("reset")

    store.after = cut
    running = asyncio.create_task(replica.keeper.run())
    await asyncio.sleep(30)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert lost == replica.shown


async def test_a_secret_that_is_gone_is_made_where_that_is_allowed(
    store: Store, clock: LoopClock
) -> None:
    del store.objects[secret_path()]
    replica = Replica(store, clock)
    await replica.keeper.look()
    assert held(store.secret()) == replica.shown[0]


async def test_configurations_that_are_not_there_are_not_missed(
    store: Store, clock: LoopClock
) -> None:
    for kind in HOOKS:
        del store.objects[kind.path(None, CONFIGURATION)]
    replica = Replica(store, clock)
    await replica.keeper.look()
    assert len(replica.shown) == 1


@pytest.mark.parametrize("webhooks", [None, "x", [None, 3, {}]])
async def test_an_odd_configuration_does_not_stop_anything(
    webhooks: object, store: Store, clock: LoopClock
) -> None:
    for kind in HOOKS:
        path = kind.path(None, CONFIGURATION)
        store.put(path, store.objects[path] | {"webhooks": webhooks})
    replica = Replica(store, clock)
    running = asyncio.create_task(replica.keeper.run())
    await asyncio.sleep(1)
    assert len(replica.shown) == 1
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_no_key_is_logged(
    store: Store, clock: LoopClock, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        replica = Replica(store, clock)
        await replica.keeper.look()
    key = base64.b64encode(replica.shown[0].key).decode()
    assert "PRIVATE KEY" not in caplog.text
    assert key not in caplog.text
