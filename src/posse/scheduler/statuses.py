"""Writes down where gangs stand: phases, conditions of groups and pods, one event per change.

All of it is off the bind path and written only where it differs. A change of phase goes out at
once, since others act on it; a verdict first has to stand for a moment, so that a gang that is
still arriving or about to start says nothing; and one whose numbers, or whose place in line, alone
keep changing is restated now and then. A new place is no event.

This is the one writer of a PodGroup's status; each gang is written by one task at a time.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable
from typing import Any

import msgspec

from posse.engine.decisions import Reason, Verdict
from posse.kube.backoff import Backoff
from posse.kube.connection import Connection, Patch
from posse.kube.errors import Conflict, KubeError, NotFound
from posse.kube.lulls import Lull
from posse.objects.groups import PodGroup
from posse.objects.kinds import POD
from posse.objects.pods import Pod
from posse.objects.times import rfc3339
from posse.scheduler.groupwriting import GroupWriter
from posse.scheduler.nominating import Nominations
from posse.scheduler.reading.members import Member
from posse.scheduler.reading.muster import Muster
from posse.scheduler.reading.pods import Place
from posse.scheduler.reading.quarantine import Records
from posse.scheduler.reading.reader import Reader
from posse.scheduler.standing import (
    FAILED,
    Waiting,
    group_status,
    pod_condition,
    said_of,
    says,
    waiting,
    written_phase,
)
from posse.world import World

_log = logging.getLogger(__name__)

WRITERS = 4
PODS_AT_ONCE = 4
# Timers may fire a little early; what is this close is due.
_PUNCTUAL = 0.01
# Seconds in which the pods of a new group come by themselves, if nobody waits for its phase.
_PODS_FOLLOW = 0.05
# Seconds for which binds and evictions go first: while a gang waits to hear why it waits, and once
# it has its nodes, which its pods say themselves, or others end for it.
_PATIENCE = 1.0
_LEISURE = 5.0


class _Stated(msgspec.Struct):
    """What was last said of a gang, and when."""

    why: Waiting
    at: float


class Statuses:
    def __init__(
        self,
        connection: Connection,
        world: World,
        reader: Reader,
        events: Records,
        *,
        fact: Callable[[Pod], None],
        lull: Lull,
        settle: float,
        restate: float,
    ) -> None:
        self._connection = connection
        self._groups = GroupWriter(connection)
        self._world = world
        self._reader = reader
        self._nominations = Nominations(reader)
        self._events = events
        self._fact = fact
        self._lull = lull
        self._settle = settle
        self._restate = restate
        self.verdicts: dict[str, Verdict] = {}
        self._since: dict[str, tuple[float, float]] = {}  # its first verdict in a row, its last
        self._stated: dict[str, _Stated] = {}
        self._backoffs: dict[str, Backoff] = {}
        self._timers: dict[str, tuple[float, asyncio.Handle]] = {}  # when it is due
        # Those that are due and since when: of whom others wait to hear, and the seated.
        self._urgent: asyncio.Queue[tuple[str, float]] = asyncio.Queue()
        self._seated: asyncio.Queue[tuple[str, float]] = asyncio.Queue()
        self._queued: dict[str, bool] = {}  # and whether as urgent
        self._under_way: dict[str, bool] = {}  # and whether to look again afterwards

    def waits(self, gang: str, verdict: Verdict) -> None:
        if self.verdicts.get(gang) != verdict:
            self.verdicts[gang] = verdict
            now = self._world.monotonic()
            self._since[gang] = (self._since.get(gang, (now, now))[0], now)
            self._look(gang, self._settle)

    def starts(self, gang: str) -> None:
        """It has been decided on: whatever kept it waiting is over."""
        self._clear(gang)

    def touched(self, gang: str) -> None:
        """Its objects have changed."""
        muster = self._reader.musters.get(gang)
        if muster is None:
            self._forget(gang)
            return
        group = muster.group
        if group is None or group.status.phase == written_phase(
            muster, self._reader.tenancy.queues
        ):
            self._look(gang, self._settle)
        else:
            self._look(gang, 0.0 if muster.members else _PODS_FOLLOW)

    async def run(self) -> None:
        try:
            async with asyncio.TaskGroup() as writers:
                for _ in range(WRITERS):
                    writers.create_task(self._work(self._urgent, _PATIENCE))
                    writers.create_task(self._work(self._seated, _LEISURE))
        finally:
            for _, timer in self._timers.values():
                timer.cancel()

    def _clear(self, gang: str) -> None:
        self.verdicts.pop(gang, None)
        self._since.pop(gang, None)
        self._nominations.forget(gang)

    def _forget(self, gang: str) -> None:
        self._clear(gang)
        self._stated.pop(gang, None)
        self._backoffs.pop(gang, None)
        if timer := self._timers.pop(gang, None):
            timer[1].cancel()

    def _look(self, gang: str, after: float) -> None:
        """Has the gang looked at no later than this."""
        loop = asyncio.get_running_loop()
        due = loop.time() + after
        if timer := self._timers.get(gang):
            if timer[0] <= due:
                return
            timer[1].cancel()
        self._timers[gang] = (due, loop.call_later(after, self._due, gang))

    def _due(self, gang: str) -> None:
        self._timers.pop(gang, None)
        if gang in self._under_way:
            self._under_way[gang] = True
            return
        urgent = not self._is_seated(gang)
        if gang not in self._queued or (urgent and not self._queued[gang]):
            self._queue(gang, urgent, asyncio.get_running_loop().time())

    def _queue(self, gang: str, urgent: bool, since: float) -> None:
        self._queued[gang] = urgent
        (self._urgent if urgent else self._seated).put_nowait((gang, since))

    def _is_seated(self, gang: str) -> bool:
        """Whether it has its nodes, and there is nothing else to tell of it."""
        muster = self._reader.musters.get(gang)
        return (
            muster is not None
            and muster.whole
            and not muster.count(Place.SUCCEEDED)
            and gang not in self.verdicts
        )

    async def _work(self, queue: asyncio.Queue[tuple[str, float]], patience: float) -> None:
        while True:
            gang, since = await queue.get()
            quiet = True
            if (muster := self._reader.musters.get(gang)) is not None and muster.members:
                # Nobody waits for a group that has its pods to say how it stands.
                made = self._reader.room_made_for(gang)
                quiet = await self._lull.wait(since + (_LEISURE if made else patience))
            if self._queued.pop(gang, None) is None:
                continue  # it became urgent, and has been written
            if queue is self._urgent and not quiet and self._is_seated(gang):
                self._queue(gang, False, since)
                continue
            self._under_way[gang] = False
            try:
                await self._write(gang)
                self._backoffs.pop(gang, None)
            except NotFound:
                _log.debug("%s went away while its status was written", gang)
            except KubeError as error:
                _log.info("%s: status not written: %s; trying again", gang, error)
                backoff = self._backoffs.setdefault(gang, Backoff(self._world, first=0.2, most=30))
                self._look(gang, backoff.pause())
            if self._under_way.pop(gang):
                self._look(gang, 0.0)

    async def _write(self, gang: str) -> None:
        muster = self._reader.musters.get(gang)
        if muster is None:
            return
        why = self._state(muster, waiting(muster, self.verdicts.get(gang)))
        await self._write_group(muster, why)
        await self._write_pods(muster, why)

    def _state(self, muster: Muster, why: Waiting | None) -> Waiting | None:
        """The reason to be written now: a new one at once, new numbers when it is time."""
        if why is None or not (muster.count(Place.WAITING) or muster.group is not None):
            self._stated.pop(muster.key, None)
            return None
        now = self._world.monotonic()
        stated = self._stated.get(muster.key)
        if stated is None and (left := self._stands_at(muster.key) - now) > _PUNCTUAL:
            self._look(muster.key, left)
            return None
        if stated is not None and stated.why == why:
            return why
        if stated is not None and stated.why.reason == why.reason:
            left = stated.at + self._restate - now
            if left > _PUNCTUAL:
                self._look(muster.key, left)
                return stated.why
        self._stated[muster.key] = _Stated(why, now)
        if stated is None or (stated.why.reason, stated.why.sentence) != (why.reason, why.sentence):
            self._announce(muster, why)
        return why

    def _stands_at(self, gang: str) -> float:
        """When the verdict will have stood for its moment, if it stays.

        One of a gang whose pods are still being made, however slowly, changes with every pod; to
        write each on all of them would slow down whoever makes them.
        """
        if gang not in self._since:
            return -math.inf
        first, last = self._since[gang]
        if self.verdicts[gang].reason is Reason.INCOMPLETE:
            return min(last + self._settle, first + self._restate)
        return first + self._settle

    def _announce(self, muster: Muster, why: Waiting) -> None:
        """One event, on the PodGroup or, where there is none, on the first pod: there in the word
        that kube-scheduler has for it, which people and tools look for.

        What an earlier leader has already said is on the object, and is not said again.
        """
        group, member = muster.group, muster.first if muster.group is None else None
        if group is not None and not muster.problem and not _says(group, why):
            self._events.record(group, why.reason, why.sentence, warning=True, kind=muster.kind)
        if member is not None and said_of(member.pod) != (why.reason, why.sentence):
            self._events.record(member.pod, FAILED, why.sentence, warning=True, kind=POD)

    async def _write_group(self, muster: Muster, why: Waiting | None) -> None:
        group = muster.group
        if group is None or group.metadata.deleting:
            return
        patch = group_status(muster, self._reader.tenancy.queues, why, self._world)
        if not patch:
            return
        meta = group.metadata
        written = await self._groups.status(muster.kind, meta.name, meta.namespace, meta.uid, patch)
        muster.last_phase = patch.get("phase", muster.last_phase)
        self._reader.wrote(written)

    async def _write_pods(self, muster: Muster, why: Waiting | None) -> None:
        members = iter(
            [m for m in muster.members.values() if m.place in (Place.WAITING, Place.BARRED)]
        )
        failures: list[KubeError] = []
        nodes = self._nominations.of(muster)

        async def worker() -> None:
            for member in members:
                try:
                    await self._write_pod(muster, member, why, nodes.get(member.pod.metadata.uid))
                except NotFound:
                    continue
                except KubeError as error:
                    failures.append(error)

        async with asyncio.TaskGroup() as workers:
            for _ in range(PODS_AT_ONCE):
                workers.create_task(worker())
        if failures:
            raise failures[0]

    async def _write_pod(
        self, muster: Muster, member: Member, why: Waiting | None, node: str | None
    ) -> None:
        pod = member.pod
        uid = pod.metadata.uid
        status: dict[str, Any] = {}
        told = pod_condition(member, why)
        if told is not None and told != said_of(pod):
            status["conditions"] = [self._condition(pod, *told)]
        if node is not None and node != pod.status.nominated_node_name:
            status["nominatedNodeName"] = node or None
        if not status:
            return
        if muster.members.get(uid) is not member or pod.metadata.deleting:
            return  # it has moved on, and its gang will be looked at again
        # The version makes sure that a pod which was bound meanwhile is left alone.
        metadata = {"uid": uid, "resourceVersion": pod.metadata.resource_version}
        try:
            written = await self._connection.patch(
                POD,
                pod.metadata.name,
                {"metadata": metadata, "status": status},
                pod.metadata.namespace,
                how=Patch.STRATEGIC,
                subresource="status",
                model=Pod,
            )
        except Conflict:
            if muster.members.get(uid) is member:
                raise
            return
        self._fact(written)

    def _condition(self, pod: Pod, reason: str, message: str) -> dict[str, str]:
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": reason,
            "message": message,
        }
        if said_of(pod) is None:
            condition["lastTransitionTime"] = rfc3339(self._world.now())
        return condition


def _says(group: PodGroup, why: Waiting) -> bool:
    return any(
        condition.status == "True" and says(condition.message, why)
        for condition in group.status.conditions
    )
