"""The loop under every controller: who is woken, when, and what a failure costs."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

from posse.controllers.runtime import (
    Context,
    Controller,
    Election,
    ForeignObjectError,
    Key,
    Manifest,
    Selection,
    Watch,
    create_owned,
    owner_reference,
)
from posse.kube.connection import Connection
from posse.kube.errors import Forbidden, ServerError, TooManyRequests
from posse.objects.kinds import CONFIG_MAP, LEASE, MPI_JOB, POD, SERVICE
from tests.unit.controllers.api import Api
from tests.unit.controllers.builders import world
from tests.unit.controllers.running import running, settle

pytestmark = pytest.mark.looptime

JOB = {"metadata": {"name": "a", "namespace": "ns", "uid": "job-a"}}


def obj(name: str, namespace: str = "ns", **metadata: Any) -> Manifest:
    return {"metadata": {"name": name, "namespace": namespace} | metadata}


def owned_by(owner: Manifest, name: str, **metadata: Any) -> Manifest:
    return obj(name, ownerReferences=[owner_reference(MPI_JOB, owner)], **metadata)


class Recording:
    """A reconciler that remembers its calls and answers as it is told."""

    def __init__(self, *answers: float | Exception | None) -> None:
        self.calls: list[tuple[float, Key]] = []
        self.answers = list(answers)

    async def __call__(self, context: Context, key: Key) -> float | None:
        self.calls.append((asyncio.get_running_loop().time(), key))
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, Exception):
            raise answer
        return answer

    @property
    def keys(self) -> list[Key]:
        return [key for _, key in self.calls]


async def test_what_is_there_at_the_start_is_reconciled() -> None:
    api, reconcile = Api(), Recording()
    api.put(MPI_JOB, obj("a"))
    api.put(MPI_JOB, obj("b", "other"))
    async with running(api, Controller("c", MPI_JOB, reconcile)):
        assert reconcile.keys == [("ns", "a"), ("other", "b")]


async def test_created_changed_and_deleted_objects_wake_their_key() -> None:
    api, reconcile = Api(), Recording()
    async with running(api, Controller("c", MPI_JOB, reconcile)):
        for act in (
            lambda: api.put(MPI_JOB, obj("a")),
            lambda: api.change(MPI_JOB, "a", spec={}),
            lambda: api.remove(MPI_JOB, "a"),
        ):
            before = len(reconcile.calls)
            act()
            await settle()
            assert reconcile.keys[before:] == [("ns", "a")]


async def test_an_owned_object_wakes_its_controlling_owner() -> None:
    api, reconcile = Api(), Recording()
    async with running(api, Controller("c", MPI_JOB, reconcile, owns=(POD,))):
        api.put(POD, owned_by(JOB, "a-0"))
        api.put(POD, obj("stranger"))
        await settle()
        assert reconcile.keys == [("ns", "a")]


async def test_an_owner_of_another_kind_is_not_ours() -> None:
    api, reconcile = Api(), Recording()
    reference = owner_reference(MPI_JOB, JOB) | {"apiVersion": "batch/v1", "kind": "Job"}
    async with running(api, Controller("c", MPI_JOB, reconcile, owns=(POD,))):
        api.put(POD, obj("a-0", ownerReferences=[reference]))
        await settle()
        assert reconcile.keys == []


async def test_an_owner_in_another_version_of_our_kind_is_woken() -> None:
    api, reconcile = Api(), Recording()
    reference = owner_reference(MPI_JOB, JOB) | {"apiVersion": "kubeflow.org/v1"}
    async with running(api, Controller("c", MPI_JOB, reconcile, owns=(POD,))):
        api.put(POD, obj("a-0", ownerReferences=[reference]))
        await settle()
        assert reconcile.keys == [("ns", "a")]


async def test_a_watched_object_wakes_whom_its_mapping_names() -> None:
    api, reconcile = Api(), Recording()
    watch = Watch(POD, lambda pod: [("ns", name) for name in pod["metadata"]["labels"]["for"]])
    async with running(api, Controller("c", MPI_JOB, reconcile, watches=(watch,))):
        api.put(POD, obj("p", labels={"for": ["x", "y"]}))
        await settle()
        assert reconcile.keys == [("ns", "x"), ("ns", "y")]


async def test_owned_objects_are_found_by_the_owners_uid() -> None:
    api = Api()
    seen: list[list[str]] = []

    async def reconcile(context: Context, key: Key) -> float | None:
        seen.append([pod["metadata"]["name"] for pod in context.owned(POD, "job-a")])
        return None

    api.put(MPI_JOB, JOB)
    api.put(POD, owned_by(JOB, "a-1"))
    api.put(POD, owned_by(JOB, "a-0"))
    api.put(POD, owned_by({"metadata": {"name": "a", "uid": "older"}}, "a-9"))
    async with running(api, Controller("c", MPI_JOB, reconcile, owns=(POD,))):
        assert seen[-1] == ["a-0", "a-1"]
        api.remove(POD, "a-0")
        await settle()
        assert seen[-1] == ["a-1"]


async def test_labels_keep_the_rest_of_a_kind_out() -> None:
    api = Api()
    seen: list[int] = []

    async def reconcile(context: Context, key: Key) -> float | None:
        seen.append(len(context.all(CONFIG_MAP)))
        return None

    api.put(MPI_JOB, JOB)
    api.put(CONFIG_MAP, obj("ours", labels={"app": "x"}))
    api.put(CONFIG_MAP, obj("theirs"))
    controller = Controller("c", MPI_JOB, reconcile, reads=(Selection(CONFIG_MAP, "app=x"),))
    async with running(api, controller):
        assert seen == [1]


async def own_write(context: Context, name: str, label: str) -> None:
    """Write a label, and tell the runtime of the answer."""
    base = context.get(MPI_JOB, ("ns", name))
    assert base is not None
    patch = {"metadata": {"labels": {"by-us": label}}}
    context.wrote(MPI_JOB, base, await context.connection.patch(MPI_JOB, name, patch, "ns"))


async def test_our_own_write_is_seen_before_the_cache_shows_it() -> None:
    api = Api()
    seen: list[str] = []

    async def reconcile(context: Context, key: Key) -> float | None:
        for label in ("1", "2"):
            await own_write(context, "a", label)
            seen.append((context.get(MPI_JOB, key) or {})["metadata"]["labels"]["by-us"])
        return None

    api.put(MPI_JOB, obj("a"))
    api.held = {"mpijobs": None}
    async with running(api, Controller("c", MPI_JOB, reconcile)):
        assert seen == ["1", "2"]


async def test_a_later_change_is_never_hidden_by_the_answer_to_our_own_write() -> None:
    api = Api()
    seen: list[Manifest] = []

    async def reconcile(context: Context, key: Key) -> float | None:
        base = context.get(MPI_JOB, key)
        seen.append(base or {})
        if base is not None and len(seen) == 1:
            patch = {"metadata": {"labels": {"by-us": "1"}}}
            answer = await context.connection.patch(MPI_JOB, "a", patch, "ns")
            api.change(MPI_JOB, "a", spec={"theirs": True})
            await asyncio.sleep(1)  # both events overtake our reading of the answer
            context.wrote(MPI_JOB, base, answer)
        return None

    api.put(MPI_JOB, obj("a"))
    async with running(api, Controller("c", MPI_JOB, reconcile)):
        await settle(5)
        assert seen[-1]["spec"] == {"theirs": True}


async def test_one_key_is_never_reconciled_twice_at_once() -> None:
    api = Api()
    at_work: dict[Key, None] = {}
    rounds = 0

    async def reconcile(context: Context, key: Key) -> float | None:
        nonlocal rounds
        assert key not in at_work
        at_work[key] = None
        await asyncio.sleep(10)
        del at_work[key]
        rounds += 1
        return None

    api.put(MPI_JOB, obj("a"))
    async with running(api, Controller("c", MPI_JOB, reconcile, workers=4)):
        for number in range(5):
            api.change(MPI_JOB, "a", spec={"number": number})
            await settle()
        await settle(100)
        assert rounds == 2


async def test_other_keys_go_on_beside_a_slow_one() -> None:
    api = Api()
    done: list[str] = []

    async def reconcile(context: Context, key: Key) -> float | None:
        await asyncio.sleep(1000 if key[1] == "slow" else 0)
        done.append(key[1])
        return None

    api.put(MPI_JOB, obj("slow"))
    api.put(MPI_JOB, obj("swift"))
    async with running(api, Controller("c", MPI_JOB, reconcile, workers=2)):
        assert done == ["swift"]


async def test_a_failure_comes_back_and_stops_nobody() -> None:
    api = Api()
    calls: dict[str, int] = {}

    async def reconcile(context: Context, key: Key) -> float | None:
        calls[key[1]] = calls.get(key[1], 0) + 1
        if key[1] == "bad" and calls["bad"] < 4:
            raise RuntimeError("a bug that one object brings out")
        return None

    api.put(MPI_JOB, obj("bad"))
    api.put(MPI_JOB, obj("good"))
    async with running(api, Controller("c", MPI_JOB, reconcile, workers=1)):
        await settle(30)
        assert calls == {"bad": 4, "good": 1}


async def test_the_servers_wish_for_patience_is_honoured() -> None:
    api = Api()
    reconcile = Recording(TooManyRequests(429, retry_after=20.0), None)
    api.put(MPI_JOB, obj("a"))
    async with running(api, Controller("c", MPI_JOB, reconcile)):
        await settle(60)
        first, second = (when for when, _ in reconcile.calls)
        assert second - first == pytest.approx(20.0, abs=0.01)


async def test_a_namespace_that_ends_is_not_written_to_over_and_over() -> None:
    api = Api()
    details = {"causes": [{"reason": "NamespaceTerminating", "field": "metadata.namespace"}]}
    reconcile = Recording(Forbidden(403, "Forbidden", "it is being terminated", details), None)
    api.put(MPI_JOB, obj("a"))
    async with running(api, Controller("c", MPI_JOB, reconcile)):
        await settle(60)
        assert len(reconcile.calls) == 1
        api.remove(MPI_JOB, "a")
        await settle(1)
        assert len(reconcile.calls) == 2


async def test_failures_are_further_and_further_apart() -> None:
    api = Api()
    reconcile = Recording(*(ServerError(500) for _ in range(8)))
    api.put(MPI_JOB, obj("a"))
    async with running(api, Controller("c", MPI_JOB, reconcile)):
        await settle(60)
        times = [when for when, _ in reconcile.calls]
        gaps = [later - sooner for sooner, later in itertools.pairwise(times)]
        assert len(gaps) == 8
        assert all(after > before for before, after in itertools.pairwise(gaps))


async def test_a_key_comes_back_when_it_asked_to() -> None:
    api, reconcile = Api(), Recording(90.0, None)
    api.put(MPI_JOB, obj("a"))
    async with running(api, Controller("c", MPI_JOB, reconcile)):
        await settle(100)
        first, second = (when for when, _ in reconcile.calls)
        assert second - first == 90.0


async def test_an_expectation_that_nothing_fulfils_wakes_its_key_when_it_lapses() -> None:
    api = Api()
    times: list[float] = []

    async def reconcile(context: Context, key: Key) -> float | None:
        times.append(asyncio.get_running_loop().time())
        if len(times) == 1:
            context.expectations.created(key, "never-seen")
        return None

    api.put(MPI_JOB, obj("a"))
    async with running(api, Controller("c", MPI_JOB, reconcile, owns=(POD,))):
        await settle(1000)
        assert len(times) == 2
        assert times[1] - times[0] == pytest.approx(300)


async def test_a_kind_that_is_not_served_keeps_only_its_own_controller_waiting() -> None:
    api, waiting, working = Api(), Recording(), Recording()
    api.absent["mpijobs"] = None
    api.put(MPI_JOB, obj("a"))
    api.put(SERVICE, obj("s"))
    controllers = (Controller("jobs", MPI_JOB, waiting), Controller("names", SERVICE, working))
    async with running(api, *controllers):
        assert (waiting.keys, working.keys) == ([], [("ns", "s")])
        del api.absent["mpijobs"]
        await settle(120)
        assert waiting.keys == [("ns", "a")]


async def test_nothing_is_decided_before_every_cache_is_whole() -> None:
    api, reconcile = Api(), Recording()
    api.absent["pods"] = None
    api.put(MPI_JOB, obj("a"))
    async with running(api, Controller("c", MPI_JOB, reconcile, owns=(POD,))):
        await settle(20)
        assert reconcile.keys == []


ELECTION = Election("posse-controllers", "kube-system", "one")


async def test_only_the_holder_of_the_lease_works() -> None:
    api, first, second = Api(), Recording(), Recording()
    api.put(MPI_JOB, obj("a"))
    other = Election("posse-controllers", "kube-system", "two")
    async with (
        running(api, Controller("c", MPI_JOB, first), election=ELECTION),
        running(api, Controller("c", MPI_JOB, second), election=other),
    ):
        await settle(60)
        assert (first.keys, second.keys) == ([("ns", "a")], [])


async def test_a_replica_takes_over_when_the_holder_stops() -> None:
    api, first, second = Api(), Recording(), Recording()
    api.put(MPI_JOB, obj("a"))
    other = Election("posse-controllers", "kube-system", "two")
    async with (
        running(api, Controller("c", MPI_JOB, first), election=ELECTION) as holder,
        running(api, Controller("c", MPI_JOB, second), election=other),
    ):
        holder.cancel()
        await settle(10)
        assert second.keys == [("ns", "a")]


async def test_a_holder_that_lost_its_lease_stops_working_and_stands_by() -> None:
    api, reconcile = Api(), Recording()
    async with running(api, Controller("c", MPI_JOB, reconcile), election=ELECTION):
        lease = api.get(LEASE, "posse-controllers", "kube-system")
        assert lease is not None
        api.change(
            LEASE,
            "posse-controllers",
            "kube-system",
            spec=lease["spec"] | {"holderIdentity": "two"},
        )
        await settle(5)
        api.put(MPI_JOB, obj("a"))
        await settle(5)
        assert reconcile.keys == []
        await settle(30)
        assert reconcile.keys == [("ns", "a")]


async def test_creating_what_is_already_ours_is_no_error() -> None:
    api = Api()
    connection = Connection(api, world())
    made = await create_owned(connection, POD, owned_by(JOB, "a-0"))
    again = await create_owned(connection, POD, owned_by(JOB, "a-0"))
    assert again["metadata"]["uid"] == made["metadata"]["uid"]


TAKEN = [
    ("by nobody", obj("a-0")),
    ("by an earlier incarnation", owned_by({"metadata": {"name": "a", "uid": "older"}}, "a-0")),
    (
        "by ourselves, on its way out",
        owned_by(JOB, "a-0", deletionTimestamp="2024-01-01T00:00:00Z"),
    ),
]


@pytest.mark.parametrize("present", [row[1] for row in TAKEN], ids=[row[0] for row in TAKEN])
async def test_a_name_that_is_taken_is_neither_adopted_nor_touched(present: Manifest) -> None:
    api = Api()
    before = api.put(POD, present)
    with pytest.raises(ForeignObjectError):
        await create_owned(Connection(api, world()), POD, owned_by(JOB, "a-0"))
    assert api.get(POD, "a-0") == before


async def test_a_lost_answer_does_not_create_twice() -> None:
    api = Api()
    api.lose = lambda method, path: method == "POST"
    made = await create_owned(Connection(api, world()), POD, owned_by(JOB, "a-0"))
    assert api.names(POD) == ["a-0"]
    assert made["metadata"]["uid"] == api.objects["pods", "ns", "a-0"]["metadata"]["uid"]
