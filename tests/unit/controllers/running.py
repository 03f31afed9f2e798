"""A controller at work against the API in a dictionary, for as long as a block lasts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from posse.controllers.runtime import Controller, Election, run_controllers
from posse.kube.connection import Connection
from tests.unit.controllers.api import Api
from tests.unit.controllers.builders import world

SETTLE = 0.5
"""Virtual seconds in which a controller does all that it has to do at once."""


@asynccontextmanager
async def running(
    api: Api, *controllers: Controller, election: Election | None = None, seed: int = 7
) -> AsyncIterator[asyncio.Task[None]]:
    chance = world(seed)
    work = run_controllers(Connection(api, chance), chance, controllers, election=election)
    task = asyncio.create_task(work)
    try:
        await asyncio.sleep(SETTLE)
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def settle(seconds: float = SETTLE) -> None:
    await asyncio.sleep(seconds)
