"""Writes into each Queue's status what is in it: groups by phase, what they take, and its state.

The one writer of these fields, but for `state`: others open a queue and begin to close it, and here
a new queue is called open and a closing one closed when its last group has left. All of it is for
people, so it follows a few seconds behind, and only what differs is written.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from posse.kube.backoff import Backoff
from posse.kube.connection import Connection, Patch
from posse.kube.errors import ApiError, Conflict, KubeError, NotFound
from posse.objects.groups import Queue
from posse.objects.kinds import QUEUE
from posse.objects.quantity import format_base_units
from posse.scheduler.reading.groups import COMPLETED, INQUEUE, PENDING, RUNNING, UNKNOWN
from posse.scheduler.reading.muster import Muster
from posse.scheduler.reading.reader import Reader
from posse.scheduler.standing import phase
from posse.world import World

_log = logging.getLogger(__name__)

_AT_A_TIME = 500
# Volcano's queue controller, as the API server knows it.
STATE_MANAGER = "queue-controller"
NO_SUCH_PATCH = 415
FIELDS = {
    PENDING: "pending",
    INQUEUE: "inqueue",
    RUNNING: "running",
    UNKNOWN: "unknown",
    COMPLETED: "completed",
}


def phase_in_queue(muster: Muster, queues: Mapping[str, Queue]) -> str:
    """The field that counts the group. A pod that is a group of one counts as one too."""
    ended = muster.first is not None and muster.first.place.finished
    return FIELDS[COMPLETED if muster.alone and ended else phase(muster, queues)]


def queue_status(
    queue: Queue, counts: Mapping[str, int], allocated: Mapping[str, int]
) -> dict[str, Any]:
    """What has to change in the status: a merge patch, empty when it is all there."""
    now = queue.status
    patch: dict[str, Any] = {
        field: number for field, number in counts.items() if getattr(now, field) != number
    }
    wanted = {name: format_base_units(name, amount) for name, amount in allocated.items()}
    has = {name: str(amount) for name, amount in now.allocated.items()}
    if has != wanted:
        gone = {name: None for name in has if name not in wanted}
        patch["allocated"] = {n: w for n, w in wanted.items() if has.get(n) != w} | gone
    if not now.state:
        patch["state"] = "Open"
    elif now.state == "Closing" and not any(counts.values()):
        # Those that have ended count, too: Volcano's controllers go by that, and would otherwise
        # call it closing again as often as we called it closed.
        patch["state"] = "Closed"
    return patch


class Tallies:
    def __init__(
        self, connection: Connection, world: World, reader: Reader, *, every: float
    ) -> None:
        self._connection = connection
        self._world = world
        self._reader = reader
        self._every = every
        self._stirred = asyncio.Event()

    def stir(self) -> None:
        """Something has changed; what that means for queues is found out in a while."""
        self._stirred.set()

    async def run(self) -> None:
        backoff = Backoff(self._world, first=1.0, most=60)
        while True:
            await self._stirred.wait()
            await asyncio.sleep(self._every)
            self._stirred.clear()
            try:
                await self._write()
                backoff = Backoff(self._world, first=1.0, most=60)
            except KubeError as error:
                _log.info("status of queues not written: %s; trying again", error)
                self._stirred.set()
                await asyncio.sleep(backoff.pause())

    async def _count(self, queues: Mapping[str, Queue]) -> dict[str, dict[str, int]]:
        """How many groups of each phase every queue has; others have the loop now and then."""
        counts = {name: dict.fromkeys(FIELDS.values(), 0) for name in queues}
        for number, muster in enumerate(list(self._reader.musters.values()), start=1):
            there = counts.get(muster.queue)
            if there is not None:
                there[phase_in_queue(muster, queues)] += 1
            if number % _AT_A_TIME == 0:
                await asyncio.sleep(0)
        return counts

    async def _write(self) -> None:
        queues = dict(self._reader.tenancy.queues)
        if not queues:
            return
        counts = await self._count(queues)
        for name, queue in queues.items():
            patch = queue_status(queue, counts[name], self._reader.allocated(name))
            if not patch or queue.metadata.deleting:
                continue
            try:
                if "state" in patch and await self._applies(queue, patch["state"]):
                    del patch["state"]
                if patch:
                    await self._merge(queue, patch)
            except NotFound:
                _log.debug("queue %s went away while its status was written", name)
            except Conflict:
                self._stirred.set()

    async def _merge(self, queue: Queue, patch: dict[str, Any]) -> None:
        metadata = {"uid": queue.metadata.uid}
        if "state" in patch:
            # Whoever opened or closed it meanwhile has the last word.
            metadata["resourceVersion"] = queue.metadata.resource_version
        whole = {"metadata": metadata, "status": patch}
        await self._connection.patch(QUEUE, queue.metadata.name, whole, subresource="status")

    async def _applies(self, queue: Queue, state: str) -> bool:
        """Writes the state in the name of Volcano's controllers; False where nothing is applied.

        They apply it, and take no field from anybody: a state written in a name of our own they
        could never change, and so neither close the queue nor open it again.
        """
        meta = queue.metadata
        whole = {
            "apiVersion": QUEUE.api_version,
            "kind": QUEUE.kind,
            "metadata": {
                "name": meta.name,
                "uid": meta.uid,
                "resourceVersion": meta.resource_version,
            },
            "status": {"state": state},
        }
        try:
            await self._connection.patch(
                QUEUE,
                meta.name,
                whole,
                how=Patch.APPLY,
                subresource="status",
                field_manager=STATE_MANAGER,
                force=True,
            )
        except ApiError as error:
            if error.code == NO_SUCH_PATCH:
                return False
            raise
        return True
