"""Queues through every layer: quotas, borrowing and giving back, and what they tell."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from posse.objects import kinds
from posse.objects.groups import Queue
from tests.cluster.backends import Riding
from tests.cluster.riding import cluster, seated, tf, training, wait_for_status

pytestmark = pytest.mark.looptime

GPU = "nvidia.com/gpu"
FOUR_GPUS = {"capability": {GPU: "4"}}


@asynccontextmanager
async def queues(running: Riding, **specs: Any) -> AsyncIterator[None]:
    """They belong to no namespace, so they go with the story."""
    for name, spec in specs.items():
        await running.connection.create(kinds.QUEUE, {"metadata": {"name": name}, "spec": spec})
    try:
        yield
    finally:
        for name in specs:
            await running.connection.delete(kinds.QUEUE, name)


async def status_of(running: Riding, name: str) -> Any:
    return (await running.connection.get(kinds.QUEUE, name, model=Queue)).status


async def test_a_queue_that_has_all_it_may_have_says_so() -> None:
    async with cluster(4, gpus=2) as running, queues(running, vision=FOUR_GPUS):
        await training(running).submit(tf("first", workers=2, queue="vision"))
        await wait_for_status(running, "first", "RUNNING")
        await training(running).submit(tf("second", workers=1, queue="vision"))

        async def told() -> bool:
            why = (await training(running).why("second")).sentence
            return "but queue vision may use 4 (capability) and 4 are in use" in why

        await running.until(told, "the job names the quota")
        await running.linger(600)
        assert await seated(running, "second") == 0
        await training(running).delete("first")
        await wait_for_status(running, "second", "RUNNING")


async def test_an_idle_queue_lends_its_share_and_gets_it_back() -> None:
    async with cluster(4, gpus=2) as running, queues(running, nlp={}, vision={}):
        for number in range(4):
            await training(running).submit(tf(f"nlp-{number}", workers=1, queue="nlp"))
        for number in range(4):
            await wait_for_status(running, f"nlp-{number}", "RUNNING")
        await training(running).submit(tf("vision", workers=2, queue="vision"))
        await wait_for_status(running, "vision", "RUNNING")

        async def even() -> bool:
            borrowed = [await seated(running, f"nlp-{number}") for number in range(4)]
            return sorted(borrowed) == [0, 0, 1, 1]

        await running.until(even, "half of the borrower's jobs still run")
        await running.linger(60)
        assert await even(), "what was given back is not taken again"


async def test_a_queue_tells_what_is_in_it() -> None:
    async with cluster(4, gpus=2) as running, queues(running, vision=FOUR_GPUS):
        await training(running).submit(tf("runs", workers=2, queue="vision"))
        await wait_for_status(running, "runs", "RUNNING")
        await training(running).submit(tf("waits", workers=2, queue="vision"))

        async def told() -> bool:
            status = await status_of(running, "vision")
            return (status.state, status.running, status.inqueue) == ("Open", 1, 1)

        await running.until(told, "the queue counts one that runs and one that waits")
        assert (await status_of(running, "vision")).allocated[GPU] == "4"
