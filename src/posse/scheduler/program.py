"""The scheduler as a program: wait to lead, serve, and begin anew whenever leadership is lost."""

from __future__ import annotations

import asyncio
import logging

from posse.kube.connection import Connection
from posse.kube.leases import Leadership
from posse.scheduler.config import LEASE_NAME, SchedulerConfig
from posse.scheduler.fencing import Fence, LeadershipLost
from posse.scheduler.term import Term
from posse.world import World

__all__ = ["SchedulerConfig", "run"]

_log = logging.getLogger(__name__)

_AFTERMATH = 2.0


async def run(config: SchedulerConfig, connection: Connection, world: World) -> None:
    """Runs until cancelled. What one term knew, the next one lists again."""
    leadership = Leadership(
        connection,
        world,
        name=LEASE_NAME,
        namespace=config.namespace,
        identity=config.identity or f"{LEASE_NAME}-{world.uid()}",
        duration=config.lease_duration,
        renew_every=config.renew_every,
    )
    while True:
        await leadership.acquire()
        await _lead(config, connection, world, leadership)
        # Writes of the lost term that were on their way have arrived, or never will, by then.
        await asyncio.sleep(_AFTERMATH)


async def _lead(
    config: SchedulerConfig, connection: Connection, world: World, leadership: Leadership
) -> None:
    """One term. Returns when it is over, with nothing of it left running."""
    fence = Fence(connection.transport, leadership.surely_held)
    term = Term(config, Connection(fence, world, namespace=connection.namespace), world)
    keeping = asyncio.create_task(leadership.keep(), name="lease")
    serving = asyncio.create_task(term.serve(), name="term")
    try:
        await asyncio.wait({keeping, serving}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        # The lease is handed on only by a leader that was told to stop, and only when no write
        # can still arrive: otherwise it runs out.
        quiet = not (serving.done() or keeping.done() or fence.in_flight)
        for task in (serving, keeping):
            task.cancel()
        endings = await asyncio.gather(serving, keeping, return_exceptions=True)
        if quiet:
            await leadership.release()
    for ending in endings:
        _raise_unless_lost(ending)


def _raise_unless_lost(ending: BaseException | None) -> None:
    if ending is None or isinstance(ending, asyncio.CancelledError | LeadershipLost):
        return
    if isinstance(ending, BaseExceptionGroup):
        _, rest = ending.split((LeadershipLost, asyncio.CancelledError))
        if rest is not None:
            raise rest
        _log.warning("leadership is in doubt: nothing more is sent")
        return
    raise ending
