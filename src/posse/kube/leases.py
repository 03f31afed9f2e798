"""Leadership by a Lease, fenced on our own clock.

A Lease is not mutual exclusion: its holder may be paused, partitioned or slow, and nobody tells
it that it has been replaced. So both sides rely on durations measured by themselves alone. The
holder counts its time from before it sent the last renewal that succeeded, and sends nothing once
that is used up; a candidate counts from when it saw the last renewal, which is later, and takes
over only when the whole duration has passed. Wall clocks are written for people to read and are
never compared.
"""

from __future__ import annotations

import asyncio
import logging
import math
from typing import Any, NamedTuple

from posse.kube.connection import Connection
from posse.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from posse.kube.identity import Object
from posse.objects.kinds import LEASE
from posse.objects.times import rfc3339_micro
from posse.world import World

_log = logging.getLogger(__name__)

_RETRY = 1.0
_TICK = 0.01  # no pause is shorter: a clock may be too coarse to show one
_RELEASE_TIMEOUT = 5.0


class Leadership:
    def __init__(
        self,
        connection: Connection,
        world: World,
        *,
        name: str,
        namespace: str,
        identity: str,
        duration: float = 15.0,
        renew_every: float = 3.0,
    ) -> None:
        if not identity:
            raise ValueError("a holder needs an identity")
        if not 0 < renew_every < duration:
            raise ValueError("a lease must be renewed within its duration")
        self.name = name
        self.namespace = namespace
        self.identity = identity
        self._connection = connection
        self._world = world
        self._duration = duration
        self._renew_every = renew_every
        # Requests on their way, and clocks that run at different speeds, fit into the margin.
        self._margin = min(2.0, duration / 5)
        self._lease: Object | None = None
        self._renewed: float | None = None  # when the last successful renewal was begun
        self._seen: _Record | None = None
        self._seen_at = 0.0

    def surely_held(self) -> bool:
        """Whether nobody else can hold the lease now: the only licence to write as the leader."""
        return self.left() > 0

    def left(self) -> float:
        """Seconds for which the lease is surely ours; none, or fewer, when it may be another's."""
        if self._renewed is None:
            return 0.0
        return self._renewed + self._duration - self._margin - self._world.monotonic()

    async def acquire(self) -> None:
        """Returns as the holder: at once where the lease is free or already ours."""
        while not self.surely_held():
            try:
                pause = await self._attempt()
            except (Conflict, AlreadyExists):
                pause = 0.1  # someone wrote between our reading and writing: read again
            except KubeError as error:
                _log.warning("lease %s/%s: %s", self.namespace, self.name, error)
                pause = self._renew_every
            if pause:
                await asyncio.sleep(self._world.jitter(pause))
        _log.info("lease %s/%s: held by %s", self.namespace, self.name, self.identity)

    async def keep(self) -> None:
        """Renews; returns when the lease is another's or could not be renewed in time."""
        pause = self._renew_every
        while self.surely_held():
            await asyncio.sleep(max(_TICK, min(self._world.jitter(pause), self.left())))
            if not self.surely_held():
                break  # we were held up: to ask now would be to ask for somebody else's
            pause = min(_RETRY, self._renew_every)
            try:
                async with asyncio.timeout(max(0.0, self.left())):
                    if not await self._renew():
                        break
                pause = self._renew_every
            except TimeoutError:
                break
            except KubeError as error:
                _log.warning("lease %s/%s: not renewed: %s", self.namespace, self.name, error)
        self._renewed = None
        _log.warning("lease %s/%s: lost by %s", self.namespace, self.name, self.identity)

    async def release(self) -> None:
        """Frees the lease for the next one, if it is still ours; never raises for a server."""
        self._renewed = None  # from here on nothing is sent as the leader, freed or not
        try:
            async with asyncio.timeout(_RELEASE_TIMEOUT):
                lease = await self._read()
                if lease is not None and _Record.of(lease).holder == self.identity:
                    await self._connection.replace(LEASE, self._with(lease, holderIdentity=""))
        except (KubeError, TimeoutError) as error:
            _log.warning("lease %s/%s: not released: %s", self.namespace, self.name, error)

    async def _attempt(self) -> float:
        """Takes the lease if it may be taken; else the seconds to wait before looking again."""
        lease = await self._read()
        if lease is not None:
            record = _Record.of(lease)
            if record != self._seen:
                self._seen, self._seen_at = record, self._world.monotonic()
        # A deleted lease does not tell its holder: the one last seen is waited out all the same.
        if self._seen is not None and self._seen.holder not in ("", self.identity):
            lasts = self._seen.duration or self._duration
            left = self._seen_at + lasts - self._world.monotonic()
            if left > 0:
                return min(max(left, _TICK), self._renew_every)
        await self._write(lease)
        return 0.0

    async def _renew(self) -> bool:
        """False when the lease is another's."""
        try:
            await self._write(self._lease)
            return True
        except (Conflict, NotFound):
            lease = await self._read()
        if lease is not None and _Record.of(lease).holder != self.identity:
            return False
        await self._write(lease)
        return True

    async def _read(self) -> Object | None:
        try:
            return await self._connection.get(LEASE, self.name, self.namespace)
        except NotFound:
            return None

    async def _write(self, lease: Object | None) -> None:
        """Writes us as the holder over the version that was read, or fails as Conflict."""
        began = self._world.monotonic()
        now = rfc3339_micro(self._world.now())
        if lease is None:
            fresh = self._with(
                {"metadata": {"name": self.name, "namespace": self.namespace}},
                acquireTime=now,
                leaseTransitions=0,
            )
            self._lease = await self._connection.create(LEASE, fresh)
        else:
            record = _Record.of(lease)
            taken = (
                {}
                if record.holder == self.identity
                else {"acquireTime": now, "leaseTransitions": record.transitions + 1}
            )
            self._lease = await self._connection.replace(LEASE, self._with(lease, **taken))
        self._renewed = began

    def _with(self, lease: Object, **fields: Any) -> Object:
        spec = lease.get("spec")
        return lease | {
            "spec": (spec if isinstance(spec, dict) else {})
            | {
                "holderIdentity": self.identity,
                "leaseDurationSeconds": math.ceil(self._duration),
                "renewTime": rfc3339_micro(self._world.now()),
            }
            | fields
        }


class _Record(NamedTuple):
    """What a lease says, as far as it can be read; two equal ones mean no renewal in between."""

    holder: str
    duration: float
    transitions: int
    renewed: str

    @staticmethod
    def of(lease: Object) -> _Record:
        spec = lease.get("spec")
        if not isinstance(spec, dict):
            return _Record("", 0.0, 0, "")
        holder, renewed = spec.get("holderIdentity"), spec.get("renewTime")
        duration, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
        return _Record(
            holder if isinstance(holder, str) else "",
            float(duration) if isinstance(duration, int) and duration > 0 else 0.0,
            transitions if isinstance(transitions, int) else 0,
            renewed if isinstance(renewed, str) else "",
        )
