"""The scheduler as a program: wait to lead, serve, and begin anew whenever leadership is lost."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator

import msgspec

from posse.kube.connection import Connection
from posse.kube.leases import Leadership
from posse.scheduler.config import LEASE_NAME, SchedulerConfig
from posse.scheduler.fencing import Fence, LeadershipLost
from posse.scheduler.observing import Observer
from posse.scheduler.policies import Policies
from posse.scheduler.suspecting import Stumble, Suspects
from posse.scheduler.term import Term
from posse.world import World

__all__ = ["SchedulerConfig", "run"]

_log = logging.getLogger(__name__)

_AFTERMATH = 2.0


async def run(
    config: SchedulerConfig,
    connection: Connection,
    world: World,
    *,
    observer: Observer | None = None,
) -> None:
    """Runs until cancelled. What one term knew, the next one lists again.

    PolicyError when the policy file cannot be used to begin with.
    """
    observer = observer or Observer()
    policies = Policies(config.policy, config.policy_file, observer)
    connection = Connection(
        observer.measured(connection.transport), world, namespace=connection.namespace
    )
    leadership = Leadership(
        connection,
        world,
        name=LEASE_NAME,
        namespace=config.namespace,
        identity=config.identity or f"{LEASE_NAME}-{world.uid()}",
        duration=config.lease_duration,
        renew_every=config.renew_every,
    )
    suspects = Suspects(world)
    following = asyncio.create_task(policies.follow(), name="policy")
    try:
        while True:
            await leadership.acquire()
            ruled = msgspec.structs.replace(config, policy=policies.current)
            observer.leads(True)
            try:
                await _lead(ruled, connection, world, leadership, policies, observer, suspects)
            except* Stumble as failures:
                for failure in _each(failures):
                    if not suspects.suspect(failure):
                        raise
                    observer.stumbled()
                    _log.exception("%s is set aside", failure.gang)
            finally:
                observer.stands(None)
                observer.leads(False)
            # Writes of the lost term that were on their way have arrived, or never will, by then.
            await asyncio.sleep(_AFTERMATH)
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


async def _lead(
    config: SchedulerConfig,
    connection: Connection,
    world: World,
    leadership: Leadership,
    policies: Policies,
    observer: Observer,
    suspects: Suspects,
) -> None:
    """One term. Returns when it is over, with nothing of it left running.

    It is over when the lease is lost, and when there is another policy: then the lease is kept,
    so that nobody decides in between by the old one.
    """
    frozen = config.policy.frozen
    if frozen:
        _log.warning("the policy is frozen: decisions are logged, and nothing is carried out")
    fence = Fence(connection.transport, leadership.left, frozen=frozen)
    fenced = Connection(fence, world, namespace=connection.namespace)
    term = Term(config, fenced, world, observer, suspects)
    keeping = asyncio.create_task(leadership.keep(), name="lease")
    serving = asyncio.create_task(term.serve(), name="term")
    ruling = asyncio.create_task(policies.other_than(config.policy), name="ruling")
    tasks = (serving, keeping, ruling)
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        # The lease is handed on only by a leader that was told to stop, and only when no write
        # can still arrive: otherwise it runs out.
        quiet = not (any(task.done() for task in tasks) or fence.in_flight)
        for task in tasks:
            task.cancel()
        endings = await asyncio.gather(*tasks, return_exceptions=True)
        if quiet:
            await leadership.release()
    for ending in endings:
        _raise_unless_lost(ending)


def _each(failures: BaseExceptionGroup[Stumble]) -> Iterator[Stumble]:
    for failure in failures.exceptions:
        if isinstance(failure, BaseExceptionGroup):
            yield from _each(failure)
        else:
            yield failure


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
