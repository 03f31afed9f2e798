from __future__ import annotations

import asyncio
from typing import Any

import pytest

from posse.kube.connection import Connection
from posse.kube.inprocess import AsgiTransport
from posse.kube.leases import Leadership
from posse.objects.times import parse_time, rfc3339_micro
from posse.virtual.world import EPOCH, virtual_world
from tests.unit.kube.faults import FaultyTransport, times
from tests.unit.kube.modelserver import Answer, ModelServer, status

pytestmark = pytest.mark.looptime

KEY = ("leases", "system", "posse")


@pytest.fixture
def server() -> ModelServer:
    return ModelServer()


class Candidate:
    def __init__(self, server: ModelServer, identity: str, **options: Any) -> None:
        self.transport = FaultyTransport(AsgiTransport(server))
        world = virtual_world()
        self.leadership = Leadership(
            Connection(self.transport, world),
            world,
            name="posse",
            namespace="system",
            identity=identity,
            **options,
        )


def spec(server: ModelServer) -> dict[str, Any]:
    found: dict[str, Any] = server.objects[KEY]["spec"]
    return found


def held(server: ModelServer, holder: str | None, **fields: Any) -> None:
    written = {"leaseDurationSeconds": 15, "leaseTransitions": 4, "acquireTime": "then"} | fields
    server.put("leases", "posse", "system", spec={"holderIdentity": holder, **written})


def now() -> float:
    return asyncio.get_running_loop().time()


async def test_a_lease_that_nobody_made_is_taken_at_once(server: ModelServer) -> None:
    one = Candidate(server, "one").leadership
    assert not one.surely_held()
    await one.acquire()
    assert one.surely_held()
    assert now() == 0
    assert spec(server) == {
        "holderIdentity": "one",
        "leaseDurationSeconds": 15,
        "leaseTransitions": 0,
        "acquireTime": rfc3339_micro(EPOCH),
        "renewTime": rfc3339_micro(EPOCH),
    }


@pytest.mark.parametrize("holder", ["", None])
async def test_a_lease_that_was_released_is_taken_at_once(
    server: ModelServer, holder: str | None
) -> None:
    held(server, holder)
    await Candidate(server, "one").leadership.acquire()
    assert now() == 0
    assert spec(server)["leaseTransitions"] == 5
    assert spec(server)["acquireTime"] == rfc3339_micro(EPOCH)


async def test_our_own_lease_is_ours_at_once_and_keeps_its_history(server: ModelServer) -> None:
    held(server, "one", renewTime="long ago")
    await Candidate(server, "one").leadership.acquire()
    assert now() == 0
    assert spec(server)["leaseTransitions"] == 4
    assert spec(server)["acquireTime"] == "then"
    assert spec(server)["renewTime"] == rfc3339_micro(EPOCH)


async def test_anothers_lease_is_waited_out_on_our_clock(server: ModelServer) -> None:
    """Its renewTime says it ended long ago; by whose clock, nobody knows."""
    held(server, "other", renewTime="1999-01-01T00:00:00.000000Z")
    await Candidate(server, "one").leadership.acquire()
    assert 15 <= now() < 19
    assert spec(server)["holderIdentity"] == "one"
    assert spec(server)["leaseTransitions"] == 5


async def test_the_wait_starts_over_with_every_renewal_seen(server: ModelServer) -> None:
    held(server, "other", renewTime="1")
    acquiring = asyncio.create_task(Candidate(server, "one").leadership.acquire())
    await asyncio.sleep(10)
    held(server, "other", renewTime="2")
    await acquiring
    assert now() >= 25


async def test_a_change_that_is_no_renewal_does_not_prolong_the_wait(server: ModelServer) -> None:
    held(server, "other", renewTime="1")
    acquiring = asyncio.create_task(Candidate(server, "one").leadership.acquire())
    await asyncio.sleep(10)
    server.put("leases", "posse", "system", metadata=server.objects[KEY]["metadata"] | {"x": "y"})
    await acquiring
    assert now() < 20


async def test_the_holders_own_duration_counts(server: ModelServer) -> None:
    held(server, "other", leaseDurationSeconds=40)
    await Candidate(server, "one").leadership.acquire()
    assert now() >= 40


async def test_a_deleted_lease_does_not_shorten_the_wait(server: ModelServer) -> None:
    """Its holder may not have noticed yet."""
    held(server, "other", renewTime="1")
    acquiring = asyncio.create_task(Candidate(server, "one").leadership.acquire())
    await asyncio.sleep(5)
    server.delete("leases", "posse", "system")
    await acquiring
    assert now() >= 15


@pytest.mark.parametrize("broken", [None, [], {"holderIdentity": 7, "leaseDurationSeconds": "x"}])
async def test_a_malformed_lease_is_taken_over(server: ModelServer, broken: Any) -> None:
    server.put("leases", "posse", "system", spec=broken)
    await asyncio.wait_for(Candidate(server, "one").leadership.acquire(), 60)
    assert spec(server)["holderIdentity"] == "one"


async def test_of_two_candidates_one_leads(server: ModelServer) -> None:
    one, two = Candidate(server, "one").leadership, Candidate(server, "two").leadership
    racing = [asyncio.create_task(each.acquire()) for each in (one, two)]
    await asyncio.sleep(10)
    assert [one.surely_held(), two.surely_held()].count(True) == 1
    for task in racing:
        task.cancel()


async def test_keeping_renews_and_keeps_what_others_wrote(server: ModelServer) -> None:
    one = Candidate(server, "one").leadership
    await one.acquire()
    keeping = asyncio.create_task(one.keep())
    await asyncio.sleep(1)
    server.objects[KEY]["metadata"]["labels"] = {"kept": "yes"}
    server.put("leases", "posse", "system")  # our next renewal meets a conflict
    await asyncio.sleep(100)
    assert one.surely_held()
    assert not keeping.done()
    assert server.objects[KEY]["metadata"]["labels"] == {"kept": "yes"}
    assert parse_time(spec(server)["renewTime"]) > EPOCH + 96
    assert spec(server)["leaseTransitions"] == 0
    keeping.cancel()


async def test_a_lease_taken_by_another_ends_leadership_at_once(server: ModelServer) -> None:
    one = Candidate(server, "one").leadership
    await one.acquire()
    keeping = asyncio.create_task(one.keep())
    await asyncio.sleep(1)
    held(server, "other")
    await asyncio.wait_for(keeping, 4)
    assert not one.surely_held()
    assert spec(server)["holderIdentity"] == "other"


async def test_without_the_server_leadership_ends_before_another_may_begin(
    server: ModelServer,
) -> None:
    one = Candidate(server, "one")
    await one.leadership.acquire()
    keeping = asyncio.create_task(one.leadership.keep())
    await asyncio.sleep(3.5)  # one renewal, at about 3 s
    one.transport.before = lambda method, path: True
    await keeping
    ended = now()
    assert ended < parse_time(spec(server)["renewTime"]) - EPOCH + 15
    assert ended > 12
    assert not one.leadership.surely_held()


async def test_a_short_outage_is_survived(server: ModelServer) -> None:
    one = Candidate(server, "one")
    await one.leadership.acquire()
    keeping = asyncio.create_task(one.leadership.keep())
    one.transport.before = times(4)
    await asyncio.sleep(60)
    assert one.leadership.surely_held()
    keeping.cancel()


async def test_a_renewal_whose_answer_was_lost_is_found_to_be_ours(server: ModelServer) -> None:
    one = Candidate(server, "one")
    await one.leadership.acquire()
    keeping = asyncio.create_task(one.leadership.keep())
    one.transport.after = times(1)
    await asyncio.sleep(30)
    assert one.leadership.surely_held()
    assert spec(server)["leaseTransitions"] == 0
    keeping.cancel()


async def test_a_lost_answer_does_not_count_as_a_renewal(server: ModelServer) -> None:
    """Who cannot hear the server must not go on for another duration."""
    one = Candidate(server, "one")
    await one.leadership.acquire()
    one.transport.after = lambda method, path: True
    await one.leadership.keep()
    assert now() < 15


async def test_a_paused_leader_knows_when_it_wakes(server: ModelServer) -> None:
    one = Candidate(server, "one").leadership
    await one.acquire()
    await asyncio.sleep(12)
    assert one.surely_held()
    await asyncio.sleep(2)
    assert not one.surely_held()


async def test_time_counts_from_before_the_request(server: ModelServer) -> None:
    one = Candidate(server, "one")

    async def slowly(scope: Any, receive: Any, send: Any) -> None:
        if scope["method"] == "POST":
            await asyncio.sleep(6)
        await server(scope, receive, send)

    one.transport._inner = AsgiTransport(slowly)
    await one.leadership.acquire()
    assert now() == 6
    await asyncio.sleep(7.5)
    assert not one.leadership.surely_held()


async def test_a_hanging_server_does_not_hold_the_leader_past_its_time(
    server: ModelServer,
) -> None:
    hang = False

    async def hanging(scope: Any, receive: Any, send: Any) -> None:
        if hang:
            await asyncio.sleep(1000)
        await server(scope, receive, send)

    one = Candidate(server, "one")
    one.transport._inner = AsgiTransport(hanging)
    await one.leadership.acquire()
    hang = True
    await one.leadership.keep()
    assert now() < 15
    await one.transport.close()


async def test_a_deleted_lease_is_made_again_by_its_holder(server: ModelServer) -> None:
    one = Candidate(server, "one").leadership
    await one.acquire()
    keeping = asyncio.create_task(one.keep())
    server.delete("leases", "posse", "system")
    await asyncio.sleep(20)
    assert one.surely_held()
    assert spec(server)["holderIdentity"] == "one"
    keeping.cancel()


async def test_release_frees_the_lease_for_the_next(server: ModelServer) -> None:
    one, two = Candidate(server, "one").leadership, Candidate(server, "two").leadership
    await one.acquire()
    await one.release()
    assert not one.surely_held()
    assert spec(server)["holderIdentity"] == ""
    await two.acquire()
    assert now() == 0


async def test_release_leaves_anothers_lease_alone(server: ModelServer) -> None:
    one = Candidate(server, "one").leadership
    await one.acquire()
    held(server, "other")
    before = dict(server.objects[KEY])
    await one.release()
    assert server.objects[KEY] == before


async def test_release_without_a_server_ends_quietly(server: ModelServer) -> None:
    one = Candidate(server, "one")
    await one.leadership.acquire()
    one.transport.before = lambda method, path: True
    await one.leadership.release()
    assert not one.leadership.surely_held()


async def test_acquiring_outlasts_refusals(server: ModelServer) -> None:
    refusals = iter(
        [Answer(500, status(500, "InternalError")), Answer(403, status(403, "Forbidden"))]
    )
    server.answers = lambda request: next(refusals, None)
    one = Candidate(server, "one").leadership
    await asyncio.wait_for(one.acquire(), 10)
    assert one.surely_held()


@pytest.mark.parametrize("seed", range(8))
async def test_never_two_leaders_by_their_own_belief(server: ModelServer, seed: int) -> None:
    """Candidates that lose their connection at random never both believe."""
    chance = virtual_world(seed).chance
    cut_off, connected = times(10**9), times(0)
    candidates = [Candidate(server, name) for name in ("one", "two", "three")]

    async def campaign(candidate: Candidate) -> None:
        while True:
            await candidate.leadership.acquire()
            await candidate.leadership.keep()

    tasks = [asyncio.create_task(campaign(candidate)) for candidate in candidates]
    led = 0
    for _ in range(200):
        cut = chance.choice(candidates)
        cut.transport.before = cut_off if chance.random() < 0.5 else connected
        cut.transport.after = cut_off if chance.random() < 0.1 else connected
        await asyncio.sleep(chance.random() * 4)
        believers = [c.leadership.identity for c in candidates if c.leadership.surely_held()]
        assert len(believers) <= 1
        led += len(believers)
    assert led > 25
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


@pytest.mark.parametrize(
    "options", [{"duration": 3.0, "renew_every": 3.0}, {"duration": 0.0}, {"renew_every": 0.0}]
)
async def test_times_that_cannot_work_are_refused(
    server: ModelServer, options: dict[str, float]
) -> None:
    with pytest.raises(ValueError, match="renewed within"):
        Candidate(server, "one", **options)
