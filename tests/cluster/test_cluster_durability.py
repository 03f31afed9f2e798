"""Nothing that was acknowledged is lost: kill -9 of anything, a disk that is full."""

from __future__ import annotations

import asyncio
import resource
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.ordeal.ledger import Broken, Known, Ledger
from bench.soak import Plan, endure
from posse.kube import Connection, connect
from posse.kube.config import load_kubeconfig
from posse.kube.errors import KubeError, ServerError
from posse.objects.kinds import CONFIG_MAP
from posse.world import World
from tests.cluster.processes import Commands

pytestmark = pytest.mark.process


async def test_kill_9_of_anything_at_any_moment(tmp_path: Path) -> None:
    """The short form of `make soak`."""
    plan = Plan(seed=1, seconds=8, nodes=4, pause=0.25, supervisors=0.08)
    try:
        outcome = await endure(plan, tmp_path)
    except Broken as broken:
        raise AssertionError(f"seed {plan.seed}: {broken}") from broken
    assert sum(outcome.kills.values()) > 2
    assert outcome.acknowledged > 10
    assert outcome.submitted > 0


async def test_kill_9_of_anything_ends_no_pod_and_starts_none_twice(tmp_path: Path) -> None:
    if sys.platform != "linux":
        pytest.skip("processes are counted in /proc")
    plan = Plan(seed=2, seconds=5, machine=True, writers=1, pause=0.3)
    try:
        outcome = await endure(plan, tmp_path)
    except Broken as broken:
        raise AssertionError(f"seed {plan.seed}: {broken}") from broken
    assert sum(outcome.kills.values()) > 2
    assert outcome.submitted > 0


# The judge has to be able to find fault.


def _answer(version: int, uid: str = "u") -> dict[str, Any]:
    return {"metadata": {"resourceVersion": str(version), "uid": uid}}


def test_a_ledger_notices_a_lost_write() -> None:
    ledger = Ledger()
    ledger.wrote("a", "1", _answer(5))
    ledger.wrote("a", "2", _answer(6))
    with pytest.raises(Broken, match="found Known"):
        ledger.read("a", Known("1", 5, "u"))
    with pytest.raises(Broken, match="found None"):
        ledger.read("a", None)


def test_a_ledger_notices_a_revision_that_comes_back() -> None:
    ledger = Ledger()
    ledger.wrote("a", "1", _answer(5))
    with pytest.raises(Broken, match="5 had been seen"):
        ledger.wrote("b", "1", _answer(5))


@pytest.mark.parametrize(
    ("found", "attempted"),
    [(Known("2", 6, "u"), "2"), (Known("1", 5, "u"), "2"), (None, None)],
    ids=["it was written", "it was not", "it was removed"],
)
def test_a_lost_answer_leaves_two_possibilities(found: Known | None, attempted: str | None) -> None:
    ledger = Ledger()
    ledger.wrote("a", "1", _answer(5))
    ledger.read("a", found, attempted)
    assert ledger.objects["a"] == found


# A disk that is full.


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    if sys.platform != "linux":
        pytest.skip("only Linux lets one process set another's limits")
    commands = Commands(tmp_path_factory.mktemp("limited"))
    commands.run("posse up --simulate 1")
    yield commands
    commands.run("posse down --purge")


def _limit(commands: Commands, size: int) -> None:
    pid = commands.services()["apiserver"]
    _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, hard))


async def _fill(connection: Connection, name: str, count: int) -> tuple[list[str], str]:
    """Writes until it is refused; what was acknowledged, and the refusal."""
    kept: list[str] = []
    for number in range(count):
        body = {"metadata": {"name": f"{name}-{number}"}, "data": {"text": "x" * 8192}}
        try:
            await connection.create(CONFIG_MAP, body, "default")
        except ServerError as error:
            return kept, error.message
        kept.append(f"{name}-{number}")
    return kept, ""


async def _names(connection: Connection) -> list[str]:
    """Of all that is there, once there is an answer."""
    async with asyncio.timeout(30):
        while True:
            try:
                listed = await connection.list(CONFIG_MAP, "default")
            except KubeError:
                await asyncio.sleep(0.1)
            else:
                return [obj["metadata"]["name"] for obj in listed.items]


async def test_a_full_disk_refuses_writes_and_heals(limited: Commands) -> None:
    connection = connect(load_kubeconfig([limited.kubeconfig]), World.real())
    try:
        used = sum(path.stat().st_size for path in limited.home.glob("store.db*"))
        _limit(limited, used + 200_000)
        kept, refusal = await _fill(connection, "until-full", 200)
        assert kept
        assert "store.db cannot be written: disk" in refusal
        assert (await connection.get(CONFIG_MAP, kept[0], "default"))["data"]
        # The one that takes its place has no limit: the disk has room again.
        limited.kill("apiserver")
        found = await _names(connection)
        assert [name for name in kept if name not in found] == []
        assert f"until-full-{len(kept)}" not in found
        assert await _fill(connection, "after", 2) == (["after-0", "after-1"], "")
    finally:
        await connection.close()


async def test_a_disk_with_room_again_is_written_again(limited: Commands) -> None:
    connection = connect(load_kubeconfig([limited.kubeconfig]), World.real())
    try:
        _limit(limited, 4096)
        kept, refusal = await _fill(connection, "again", 2)
        assert (kept, "cannot be written" in refusal) == ([], True)
        _limit(limited, resource.RLIM_INFINITY)
        assert await _fill(connection, "again", 2) == (["again-0", "again-1"], "")
    finally:
        await connection.close()
