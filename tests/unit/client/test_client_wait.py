"""Waiting for a job: until it is so, or can never be, or until nobody wants to wait on."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from posse.client.errors import JobNotFound, TimedOut
from posse.client.jobs import TrainingJob, read_job
from posse.client.trainers import MPI, Trainer
from posse.client.training import Training
from posse.kube.connection import Connection
from posse.kube.errors import KubeError, ServerError, TooManyRequests, Unreachable
from posse.kube.inprocess import AsgiTransport
from posse.virtual.world import virtual_world

pytestmark = pytest.mark.looptime

AWAY = Unreachable("nobody answers")
STARTING = ServerError(503, "ServiceUnavailable")
BUSY = TooManyRequests(429)


async def _nobody(*_: Any) -> None:
    raise AssertionError("nothing is asked of a server here")


class Told(Training):
    """What each look at the job shows, in turn; the last one for good."""

    def __init__(self, *told: str | Exception) -> None:
        super().__init__(Connection(AsgiTransport(_nobody), virtual_world()), "default")
        self._told = list(told)
        self.looks: list[float] = []

    async def get(self, name: str, trainer: Trainer | None = None) -> TrainingJob:
        self.looks.append(asyncio.get_running_loop().time())
        now = self._told.pop(0) if len(self._told) > 1 else self._told[0]
        if isinstance(now, Exception):
            raise now
        conditions = [{"type": now, "status": "True"}] if now else []
        job = {"metadata": {"name": name}, "spec": {}, "status": {"conditions": conditions}}
        return read_job(MPI, job, [], 0.0)


@pytest.mark.parametrize(
    ("wanted", "told", "status"),
    [
        ("RUNNING", ("", "", "Running"), "RUNNING"),
        ("SUCCEEDED", ("", "Running", "Succeeded"), "SUCCEEDED"),
        ("SUCCEEDED", ("Running", "Failed"), "FAILED"),
        ("RUNNING", ("", "Succeeded"), "SUCCEEDED"),
        ("RUNNING", ("", AWAY, AWAY, "Running"), "RUNNING"),
        ("RUNNING", ("", STARTING, BUSY, "Running"), "RUNNING"),
    ],
    ids=["runs", "succeeds", "fails", "ran between two looks", "nobody answers", "nobody has time"],
)
async def test_a_wait_ends_when_it_is_so_or_never_can_be(
    wanted: str, told: tuple[str | Exception, ...], status: str
) -> None:
    assert (await Told(*told).wait("j", wanted, 600)).status == status


@pytest.mark.parametrize("told", [("",), ("", AWAY)], ids=["waiting", "away"])
async def test_a_wait_ends_when_its_time_is_over(told: tuple[str | Exception, ...]) -> None:
    began = asyncio.get_running_loop().time()
    with pytest.raises(TimedOut, match="j is PENDING and not RUNNING after 60s"):
        await Told(*told).wait("j", "RUNNING", 60)
    assert asyncio.get_running_loop().time() - began == pytest.approx(60)


@pytest.mark.parametrize("told", [AWAY, JobNotFound("j", "default")])
async def test_what_was_never_seen_is_not_waited_for(told: KubeError | JobNotFound) -> None:
    with pytest.raises(type(told)):
        await Told(told).wait("j", "RUNNING", 60)


async def test_a_job_that_is_deleted_meanwhile_is_not_waited_for() -> None:
    with pytest.raises(JobNotFound):
        await Told("Running", JobNotFound("j", "default")).wait("j", "SUCCEEDED", None)


async def test_who_waits_for_long_asks_seldom() -> None:
    told = Told("")
    with pytest.raises(TimedOut):
        await told.wait("j", "RUNNING", 600)
    assert told.looks[1] - told.looks[0] == pytest.approx(0.2)
    assert len(told.looks) < 320
