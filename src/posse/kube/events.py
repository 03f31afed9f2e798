"""Events: what happened to an object, for the people who look at it.

Recording is a note in passing: it never raises, never waits, and costs the recorder's own task
the requests. What repeats is one Event with a count; what cannot be sent is dropped and logged.
"""

from __future__ import annotations

import asyncio
import logging
from typing import NamedTuple

import msgspec

from posse.kube.backoff import Backoff
from posse.kube.connection import Connection
from posse.kube.errors import (
    AlreadyExists,
    Forbidden,
    KubeError,
    NotFound,
    ServerError,
    TooManyRequests,
    Unreachable,
)
from posse.kube.identity import Object, identify_loosely
from posse.kube.lulls import Lull
from posse.objects.kinds import EVENT, Kind
from posse.objects.times import rfc3339
from posse.world import World

_log = logging.getLogger(__name__)

LONGEST_QUEUE = 10_000
_REMEMBERED = 4096
_ATTEMPTS = 4
# Seconds that an event waits for a lull: nobody else waits for it.
_PATIENCE = 10.0
_LONGEST_NAME = 253


class _Subject(NamedTuple):
    """What makes two recordings the same event."""

    uid: str
    name: str
    namespace: str
    kind: str
    type: str
    reason: str
    message: str


class _Note(msgspec.Struct):
    """Recordings of one subject that have not been sent yet."""

    involved: Object
    count: int
    first: float
    last: float
    due: float  # by the loop's clock: it waits for a lull no longer than this


class _Written(msgspec.Struct):
    """An Event on the server."""

    name: str
    count: int


class Recorder:
    def __init__(
        self, connection: Connection, world: World, component: str, lull: Lull | None = None
    ) -> None:
        """With a `lull`, events let what is more urgent go first, for a moment."""
        self._lull = lull
        self._connection = connection
        self._world = world
        self._component = component
        self._waiting: dict[_Subject, _Note] = {}
        self._written: dict[_Subject, _Written] = {}
        self._wake = asyncio.Event()

    def record(
        self,
        regarding: Object | msgspec.Struct,
        reason: str,
        message: str,
        *,
        warning: bool = False,
        kind: Kind,
    ) -> None:
        found = identify_loosely(regarding)
        subject = _Subject(
            found.uid,
            found.name,
            found.namespace,
            kind.kind,
            "Warning" if warning else "Normal",
            reason,
            message,
        )
        now = self._world.now()
        note = self._waiting.get(subject)
        if note is not None:
            note.count += 1
            note.last = now
            return
        if len(self._waiting) >= LONGEST_QUEUE:
            oldest = next(iter(self._waiting))
            del self._waiting[oldest]
            _log.warning("too many events; dropped %s of %s", oldest.reason, oldest.name)
        involved = {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "namespace": found.namespace,
            "name": found.name,
            "uid": found.uid,
            "resourceVersion": found.resource_version,
        }
        named = {field: value for field, value in involved.items() if value}
        due = asyncio.get_running_loop().time() + _PATIENCE
        self._waiting[subject] = _Note(named, 1, now, now, due)
        self._wake.set()

    async def run(self) -> None:
        """Sends what was recorded, in order, until cancelled."""
        while True:
            await self._wake.wait()
            while self._waiting:
                subject, note = next(iter(self._waiting.items()))
                if self._lull is not None:
                    await self._lull.wait(note.due)
                if self._waiting.pop(subject, None) is not None:
                    await self._deliver(subject, note)
            self._wake.clear()

    async def _deliver(self, subject: _Subject, note: _Note) -> None:
        # One name for all attempts: one whose answer was lost is then found, not doubled.
        suffix = f".{self._world.entropy(8).hex()}"
        name = subject.name[: _LONGEST_NAME - len(suffix)] + suffix
        backoff = Backoff(self._world, first=0.2)
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                await self._send(subject, note, name)
                return
            except KubeError as error:
                if isinstance(error, Forbidden) and error.namespace_ending:
                    return
                passing = isinstance(error, Unreachable | ServerError | TooManyRequests)
                if not passing or attempt == _ATTEMPTS:
                    _log.warning("event %s of %s lost: %s", subject.reason, subject.name, error)
                    return
            await asyncio.sleep(backoff.pause())

    async def _send(self, subject: _Subject, note: _Note, name: str) -> None:
        namespace = subject.namespace or "default"
        written = self._written.pop(subject, None)
        if written is not None:
            self._remember(subject, written)
            count = written.count + note.count
            patch = {"count": count, "lastTimestamp": rfc3339(note.last)}
            try:
                await self._connection.patch(EVENT, written.name, patch, namespace)
                written.count = count
                return
            except NotFound:  # servers forget events after a while
                del self._written[subject]
        try:
            await self._connection.create(EVENT, self._event(subject, note, name, namespace))
        except AlreadyExists:
            _log.debug("event %s was written by an attempt whose answer was lost", name)
        self._remember(subject, _Written(name, note.count))

    def _event(self, subject: _Subject, note: _Note, name: str, namespace: str) -> Object:
        return {
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": note.involved,
            "reason": subject.reason,
            "message": subject.message,
            "type": subject.type,
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "reportingInstance": "",
            "firstTimestamp": rfc3339(note.first),
            "lastTimestamp": rfc3339(note.last),
            "count": note.count,
        }

    def _remember(self, subject: _Subject, written: _Written) -> None:
        self._written[subject] = written
        if len(self._written) > _REMEMBERED:
            del self._written[next(iter(self._written))]
