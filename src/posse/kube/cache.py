"""All objects of one kind, kept true by list and watch.

Invariants, whatever the server and the network do:
- `objects` is always a state that the server was in, and catches up with the one it is in now;
- the changes delivered lead from the empty cache to `objects`, each one's `old` being the `new`
  of the one before for that object, so that a view built from them alone never drifts;
- an object that was deleted and made again under its name is two changes, never an update.

resourceVersions are compared for equality only, with one exception: where two are decimal
numbers and the server goes backwards, it was restored or repeats itself, and a new list tells.
That is safe in both directions: at worst it lists once too often.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import aclosing
from typing import Generic, TypeVar

import msgspec

from posse.kube.backoff import Backoff
from posse.kube.connection import Connection, Listing
from posse.kube.decoding import WatchEvent
from posse.kube.errors import (
    Gone,
    KubeError,
    NotFound,
    ServerError,
    SignInFailed,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)
from posse.kube.identity import Identity, Malformed, identify
from posse.objects.kinds import Kind
from posse.objects.meta import Key

T = TypeVar("T")

_log = logging.getLogger(__name__)

_PAGE = 5000
_WATCH_SECONDS = 300.0
# A watch that ends sooner than this without having told anything counts as a failure.
_SHORTEST_WATCH = 1.0
_PATIENCE_WITH_A_LAGGING_SERVER = 3
# What says nothing about the version that was asked for.
_PASSING = (Unreachable, ServerError, TooManyRequests, Unauthorized, SignInFailed)


class Change(msgspec.Struct, Generic[T], frozen=True):
    """One step of one object: made (old is None), changed, or gone (new is None)."""

    old: T | None
    new: T | None


class Cache(Generic[T]):
    def __init__(
        self,
        connection: Connection,
        kind: Kind,
        model: type[T],
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        on_change: Callable[[Change[T]], None] | None = None,
        on_malformed: Callable[[Malformed], None] | None = None,
    ) -> None:
        self.objects: dict[Key, T] = {}
        self.malformed: dict[Key, Malformed] = {}
        self.kind = kind
        self.heard = connection.world.monotonic()
        """When the server last said anything: an event, a bookmark, a list, or that it has none."""
        self._connection = connection
        self._model = model
        self._namespace = namespace
        self._labels = labels
        self._fields = fields
        self._on_change = on_change
        self._on_malformed = on_malformed
        self._synced = asyncio.Event()
        self._identities: dict[Key, Identity] = {}
        self._version: str | None = None  # None: the next thing to do is a list
        self._lagging = 0
        self._backoff = Backoff(connection.world)

    def get(self, namespace: str, name: str) -> T | None:
        return self.objects.get((namespace, name))

    async def synced(self) -> None:
        """Returns once the first full list has been applied."""
        await self._synced.wait()

    async def run(self) -> None:
        """Follows the server until cancelled."""
        absent = False
        while True:
            try:
                if self._version is None:
                    await self._list()
                    absent = False
                await self._watch(self._version or "")
            except KubeError as error:
                if not self._may_continue(error):
                    self._version = None
                if isinstance(error, NotFound):
                    self.heard = self._connection.world.monotonic()
                routine = isinstance(error, Gone | Unreachable)
                level = logging.INFO if routine else logging.WARNING
                if isinstance(error, NotFound):
                    # A kind that nobody serves is looked for again and again, and told of once.
                    level = logging.DEBUG if absent else logging.WARNING
                    absent = True
                _log.log(level, "%s: %s; trying again", self.kind.qualified, error)
                await asyncio.sleep(self._backoff.pause())

    async def _list(self) -> None:
        listing = await self._connection.list(
            self.kind,
            self._namespace,
            model=self._model,
            labels=self._labels,
            fields=self._fields,
            limit=_PAGE,
        )
        self.heard = self._connection.world.monotonic()
        self._replace(listing)
        self._version = listing.resource_version
        self._synced.set()

    async def _watch(self, version: str) -> None:
        """One watch, from the version after which nothing is known until its end."""
        world = self._connection.world
        began = world.monotonic()
        told = False
        batches = self._connection.watch_batches(
            self.kind,
            self._namespace,
            resource_version=version,
            model=self._model,
            labels=self._labels,
            fields=self._fields,
            timeout_seconds=int(world.jitter(_WATCH_SECONDS)),
        )
        try:
            async with aclosing(batches):
                async for batch in batches:
                    self.heard = world.monotonic()
                    for event in batch:
                        self._apply(event)
                    told = True
                    self._lagging = 0
        finally:
            useful = told or world.monotonic() - began >= _SHORTEST_WATCH
            if useful:
                self._backoff.reset()
        if not useful:
            raise Unreachable("the server ended a watch at once")
        self._lagging = 0

    def _may_continue(self, error: KubeError) -> bool:
        """Whether a watch from the same version can still tell everything that happened since.

        A server that does not know our version yet may only lag; one that keeps not knowing it
        was restored to an earlier state, and only a list can say which.
        """
        if isinstance(error, ServerError) and error.too_large_version:
            self._lagging += 1
            if self._lagging < _PATIENCE_WITH_A_LAGGING_SERVER:
                return True
            self._lagging = 0
            return False
        return isinstance(error, _PASSING)

    def _apply(self, event: WatchEvent[T]) -> None:
        version = event.resource_version
        if _goes_back(version, self._version):
            raise _ListAgain(f"the server went back from version {self._version} to {version}")
        if event.malformed is not None and not event.identity.name:
            self._set_aside(event.malformed)
            raise _ListAgain("something happened to an object that cannot be told")
        if event.type == "DELETED":
            self._remove(event.identity)
        elif event.malformed is not None:
            self._set_aside(event.malformed)
        elif (
            event.object is not None and self._identities.get(event.identity.key) != event.identity
        ):
            self._put(event.identity, event.object)
        if version:
            self._version = version

    def _replace(self, listing: Listing[T]) -> None:
        """Makes the cache equal to a list, telling the difference as changes."""
        bad = {record.key: record for record in listing.malformed}
        listed: dict[Key, tuple[Identity, T]] = {}
        for item in listing.items:
            try:
                identity = identify(item)
            except ValueError as error:
                nameless = Malformed(self.kind.kind, Identity("", "", "", ""), str(error))
                bad[nameless.key] = nameless
            else:
                listed[identity.key] = (identity, item)
        for key in [key for key in self.objects if key not in listed]:
            self._drop(key)
        self.malformed = {key: old for key, old in self.malformed.items() if key in bad}
        for record in bad.values():
            self._set_aside(record)
        for identity, item in listed.values():
            # A restored server may come to the same version again with other content.
            if self.objects.get(identity.key) != item:
                self._put(identity, item)

    def _put(self, identity: Identity, new: T) -> None:
        key = identity.key
        self.malformed.pop(key, None)
        known = self._identities.get(key)
        if known is not None and known.uid != identity.uid:
            self._drop(key)
        old = self.objects.get(key)
        self.objects[key] = new
        self._identities[key] = identity
        self._tell(Change(old, new))

    def _remove(self, identity: Identity) -> None:
        """An object's end; that of an earlier bearer of its name says nothing of this one."""
        key = identity.key
        bad = self.malformed.get(key)
        if bad is not None and identity.uid in ("", bad.identity.uid):
            del self.malformed[key]
        known = self._identities.get(key)
        if known is not None and identity.uid in ("", known.uid):
            self._drop(key)

    def _drop(self, key: Key) -> None:
        old = self.objects.pop(key)
        del self._identities[key]
        self._tell(Change(old, None))

    def _set_aside(self, record: Malformed) -> None:
        """Leaves an unreadable object out, and says so once for each version of it."""
        if record.key in self.objects:
            self._drop(record.key)
        before = self.malformed.get(record.key)
        self.malformed[record.key] = record
        if before is not None and before.identity == record.identity:
            return
        _log.warning("%s %s/%s: %s", record.kind, *record.key, record.why)
        if self._on_malformed is not None:
            try:
                self._on_malformed(record)
            except Exception:  # noqa: BLE001
                _log.exception("a handler of malformed %s failed", self.kind.qualified)

    def _tell(self, change: Change[T]) -> None:
        if self._on_change is not None:
            try:
                self._on_change(change)
            except Exception:  # noqa: BLE001
                _log.exception("a handler of changes of %s failed", self.kind.qualified)


class _ListAgain(KubeError):
    """The watch has become useless, and what is true only a list can say."""


def _goes_back(version: str, known: str | None) -> bool:
    if not (known and known.isdecimal() and version.isdecimal()):
        return False
    return int(version) < int(known)
