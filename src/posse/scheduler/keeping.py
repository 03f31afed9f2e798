"""Writes on PodGroups which seats are kept for them, so that a successor keeps them too.

Off the bind path: what is decided counts in the view at once, and a seat whose keeping was not
written yet is lost only together with the whole scheduler. Of several changes to one gang's seats
the last is written.
"""

from __future__ import annotations

import asyncio
import logging

import msgspec

from posse.engine.decisions import Keep
from posse.kube.backoff import Backoff
from posse.kube.connection import Connection
from posse.kube.errors import KubeError, NotFound
from posse.objects import keys
from posse.objects.groups import PodGroup
from posse.scheduler.reading.keeps import write_keeps
from posse.scheduler.reading.reader import Reader
from posse.world import World

_log = logging.getLogger(__name__)

WRITERS = 4


class Keeper:
    def __init__(self, connection: Connection, world: World, reader: Reader) -> None:
        self._connection = connection
        self._world = world
        self._reader = reader
        self._wanted: dict[str, Keep] = {}
        self._ready: asyncio.Queue[str] = asyncio.Queue()
        self._under_way: dict[str, None] = {}

    def keep(self, decision: Keep) -> None:
        earlier = self._wanted.get(decision.gang)
        if earlier is not None and decision.overtaken is None:
            decision = msgspec.structs.replace(decision, overtaken=earlier.overtaken)
        self._wanted[decision.gang] = decision
        if decision.gang not in self._under_way:
            self._under_way[decision.gang] = None
            self._ready.put_nowait(decision.gang)

    def forget(self, gang: str) -> None:
        """Somebody else writes what is kept for it now."""
        self._wanted.pop(gang, None)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as writers:
            for _ in range(WRITERS):
                writers.create_task(self._work())

    async def _work(self) -> None:
        while True:
            gang = await self._ready.get()
            backoff = Backoff(self._world, first=0.2, most=30)
            while gang in self._wanted:
                wanted = self._wanted.pop(gang)
                try:
                    await self._write(wanted)
                except NotFound:
                    _log.debug("%s went away while its kept seats were written", gang)
                except KubeError as error:
                    _log.info("%s: kept seats not written: %s; trying again", gang, error)
                    self._wanted.setdefault(gang, wanted)
                    await asyncio.sleep(backoff.pause())
            del self._under_way[gang]

    async def _write(self, decision: Keep) -> None:
        muster = self._reader.musters.get(decision.gang)
        group = None if muster is None else muster.group
        if muster is None or group is None or group.metadata.deleting:
            return
        keeps, overtaken = decision.keeps, decision.overtaken
        wanted = {keys.KEEPS: None if keeps is None else write_keeps(keeps)}
        if overtaken is not None:
            wanted[keys.OVERTAKEN] = str(overtaken) if overtaken else None
        if all(group.metadata.annotations.get(key) == text for key, text in wanted.items()):
            return
        written = await self._connection.patch(
            muster.kind,
            group.metadata.name,
            {"metadata": {"uid": group.metadata.uid, "annotations": wanted}},
            group.metadata.namespace,
            model=PodGroup,
        )
        self._reader.wrote(written)
