"""What a scheduler tells of its work."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from posse.engine.policy import Policy
from posse.kube.connection import Connection
from posse.scheduler.config import SchedulerConfig
from posse.scheduler.metrics import PHASES, SchedulerMetrics
from posse.scheduler.program import run
from tests.unit.scheduler.rig import Rig, crash, group, pod

pytestmark = pytest.mark.looptime


class Measured(Rig):
    """A rig whose scheduler is watched."""

    def __init__(self) -> None:
        super().__init__()
        self.metrics = SchedulerMetrics(CollectorRegistry(), self.world)

    def start(self, **options: Any) -> asyncio.Task[None]:
        config = SchedulerConfig(**({"identity": "one"} | options))
        connection = Connection(self.api, self.world)
        return asyncio.create_task(run(config, connection, self.world, observer=self.metrics))

    def value(self, name: str, **labels: str) -> float:
        found = self.metrics.registry.get_sample_value(f"posse_{name}", labels)
        assert found is not None, f"there is no posse_{name} {labels}"
        return found

    def waiting(self) -> dict[str, float]:
        return {
            sample.labels["reason"]: sample.value
            for family in self.metrics.registry.collect()
            if family.name == "posse_scheduler_waiting_gangs"
            for sample in family.samples
            if sample.value
        }


async def test_a_started_gang_is_counted_bind_by_bind() -> None:
    rig = Measured()
    rig.nodes(2)
    rig.gang("a", 2)
    async with rig.running():
        await rig.until(lambda: len(rig.bound_of("a")) == 2)
        await rig.settle()
        assert rig.value("scheduler_binds_total", outcome="bound") == 2
        assert rig.value("scheduler_gang_starts_total") == 1
        assert rig.value("scheduler_bind_seconds_count") == 2
        assert rig.value("scheduler_watch_lag_seconds_count") == 2
        assert rig.value("leader", lease="posse-scheduler") == 1
        assert rig.metrics.unready() == ""
    assert rig.value("leader", lease="posse-scheduler") == 0


async def test_bind_latency_is_that_of_the_api_server() -> None:
    rig = Measured()
    rig.api.latency = 0.1  # there, and back again
    rig.nodes(1)
    rig.gang("a", 1)
    async with rig.running():
        await rig.until(lambda: len(rig.bound_of("a")) == 1)
        await rig.settle()
        assert rig.value("scheduler_bind_seconds_sum") == pytest.approx(0.2, abs=0.05)


async def test_a_late_watch_shows_as_lag() -> None:
    rig = Measured()
    rig.nodes(1)
    rig.gang("a", 1)
    async with rig.running():
        await rig.until(lambda: rig.value("leader", lease="posse-scheduler") == 1)
        rig.api.hold_back("pods")
        await rig.until(lambda: len(rig.bound_of("a")) == 1)
        assert rig.value("scheduler_watch_lag_seconds_count") == 0
        await asyncio.sleep(5)
        rig.api.catch_up()
        await rig.settle()
        assert rig.value("scheduler_watch_lag_seconds_sum") >= 5


async def test_waiting_gangs_are_counted_by_reason_as_they_are_now() -> None:
    rig = Measured()
    rig.nodes(1)
    rig.gang("large", 2)
    rig.api.put("podgroups", group("early", 3))
    rig.api.put("pods", pod("early-0", "early", 0))
    rig.api.put("pods", pod("orphan-0", "absent", 0))
    async with rig.running():
        await rig.settle()
        assert rig.waiting() == {"Unschedulable": 1, "GangIncomplete": 2}
        rig.api.put("nodes", {**rig.api.get("nodes", "n0"), "metadata": {"name": "n1"}})
        await rig.until(lambda: len(rig.bound_of("large")) == 2)
        await rig.settle()
        assert rig.waiting() == {"GangIncomplete": 2}
    assert rig.waiting() == {}


async def test_a_denied_bind_is_counted_as_what_it_is() -> None:
    rig = Measured()
    rig.nodes(1)
    rig.gang("a", 1)
    rig.api.fault = lambda method, path: 403 if path.endswith("/binding") else None
    async with rig.running():
        await rig.until(lambda: rig.value("scheduler_binds_total", outcome="denied") >= 1)
        assert rig.value("scheduler_binds_total", outcome="bound") == 0
        assert rig.value("scheduler_gang_starts_total") == 0


async def test_a_released_gang_shows_its_evictions() -> None:
    rig = Measured()
    rig.nodes(1)
    rig.api.put("podgroups", group("half", 2))
    rig.api.put("pods", pod("half-0", "half", nodeName="n0"))
    rig.api.put("pods", pod("half-1", "half"))
    async with rig.running(policy=Policy(release_after=5.0)):
        await rig.until(lambda: rig.value("scheduler_gang_releases_total") == 1)
        assert rig.value("scheduler_evictions_total") == 1


async def test_an_object_set_aside_is_counted() -> None:
    rig = Measured()
    rig.nodes(1)
    rig.api.put("podgroups", group("bad", 1, annotations={"posse.dev/expects": "nonsense"}))
    async with rig.running():
        await rig.settle()
        assert rig.value("scheduler_quarantined_objects") == 1


async def test_every_phase_of_every_cycle_is_timed() -> None:
    rig = Measured()
    rig.nodes(1)
    rig.gang("a", 1)
    async with rig.running():
        await rig.settle()
        counts = [rig.value("scheduler_cycle_seconds_count", phase=phase) for phase in PHASES]
        assert counts[0] > 0
        assert len(set(counts)) == 1


async def test_a_standby_is_ready_and_knows_of_no_gangs() -> None:
    rig = Measured()
    rig.nodes(1)
    rig.gang("large", 2)
    leader = Rig.start(rig, identity="leader")
    await rig.settle()
    async with rig.running(identity="standby"):
        await rig.settle()
        assert rig.metrics.unready() == ""
        assert rig.value("leader", lease="posse-scheduler") == 0
        assert rig.waiting() == {}
    await crash(leader)


async def test_every_name_has_the_prefix_and_help() -> None:
    rig = Measured()
    for family in rig.metrics.registry.collect():
        assert family.name.startswith("posse_")
        assert family.documentation.endswith(".")
