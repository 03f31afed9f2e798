"""The state of the cluster: objects, one revision counter, and what changed when.

Every object is a dict that nobody may change once it is in the store: a new state is a new dict.
It is kept with its JSON bytes, which answers and watches share.

A write is decided on the *latest* state, which counts writes still on their way to the journal,
and is seen by readers and watchers only when the journal has it: then it is *published*, in the
order of revisions. So nobody is ever shown a state that a crash could take back. When the journal
fails, the latest state falls back to the published one and every write on its way fails with it.

Deciding must not yield to the event loop between looking at the latest state and calling `put` or
`remove`; that alone makes each write atomic.
"""

from __future__ import annotations

import asyncio
import logging
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from posse.local.apiserver.journal import Journal, Record
from posse.objects.meta import Key

log = logging.getLogger(__name__)

Object = dict[str, Any]
Subscriber = Callable[["Event"], None]
Follower = Callable[[str, "Event"], None]

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class Stored:
    """One state of one object. `raw` is its JSON; `obj` the same, read when first asked for."""

    __slots__ = ("_obj", "key", "raw", "revision", "usage")

    def __init__(self, key: Key, revision: int, raw: bytes, obj: Object | None = None) -> None:
        self.key = key
        self.revision = revision
        self.raw = raw
        self._obj = obj
        self.usage: dict[str, int] | None = None
        """What it counts for in a quota, once that was computed."""

    @property
    def obj(self) -> Object:
        if self._obj is None:
            self._obj = _decode(self.raw)
        return self._obj

    @property
    def uid(self) -> str:
        uid: str = self.obj["metadata"].get("uid", "")
        return uid

    def forget(self) -> None:
        """Lets the dict go when the object has moved on; the bytes stay for late watchers."""
        self._obj = None


class Event:
    """One published change. A deletion carries the last state under the deletion's revision."""

    __slots__ = ("deleted", "frames", "previous", "revision", "stored")

    def __init__(self, stored: Stored, previous: Stored | None, deleted: bool) -> None:
        self.revision = stored.revision
        self.stored = stored
        self.previous = previous
        self.deleted = deleted
        self.frames: dict[tuple[str, str], bytes] = {}


class Expired(Exception):
    """The revision asked for lies before what the history still holds."""

    def __init__(self, revision: int, oldest: int) -> None:
        super().__init__(f"too old resource version: {revision} ({oldest})")
        self.revision = revision
        self.oldest = oldest


class History:
    """The last changes of one resource, bounded in number and in bytes."""

    def __init__(self, floor: int, events: int, size: int) -> None:
        self.floor = floor
        self._most_events = events
        self._most_bytes = size
        self._events: deque[Event] = deque()
        self._bytes = 0

    def add(self, event: Event) -> None:
        self._events.append(event)
        self._bytes += len(event.stored.raw)
        while len(self._events) > self._most_events or self._bytes > self._most_bytes:
            oldest = self._events.popleft()
            self._bytes -= len(oldest.stored.raw)
            self.floor = oldest.revision

    def since(self, revision: int) -> list[Event]:
        """All changes after `revision`, oldest first."""
        if revision < self.floor:
            raise Expired(revision, self.floor)
        found: list[Event] = []
        for event in reversed(self._events):
            if event.revision <= revision:
                break
            found.append(event)
        found.reverse()
        return found


class Collection:
    """All objects of one resource, in whatever version they are served."""

    def __init__(self, name: str, history: History) -> None:
        self.name = name
        self.published: dict[Key, Stored] = {}
        self.latest: dict[Key, Stored] = {}
        self.history = history
        self.subscribers: list[Subscriber] = []
        self._order: list[Key] = []

    def load(self, objects: list[Stored]) -> None:
        self.published = {stored.key: stored for stored in objects}
        self.latest = dict(self.published)
        self._order = sorted(self.published)

    def keys(self, namespace: str | None) -> list[Key]:
        """The published keys in order."""
        if namespace is None:
            return self._order
        start = bisect_left(self._order, (namespace, ""))
        end = bisect_left(self._order, (namespace + "\0", ""), start)
        return self._order[start:end]

    def publish(self, event: Event) -> None:
        key = event.stored.key
        if event.deleted:
            del self.published[key]
            del self._order[bisect_left(self._order, key)]
        else:
            if key not in self.published:
                insort(self._order, key)
            self.published[key] = event.stored
        self.history.add(event)
        for subscriber in tuple(self.subscribers):
            try:
                subscriber(event)
            except Exception:  # one that fails must not keep the change from the others
                log.exception("a subscriber of %s failed", self.name)
        event.frames.clear()
        if event.previous is not None:
            event.previous.forget()


class Write:
    """A change on its way: `stored` is what it makes, `durable` resolves when it is published."""

    __slots__ = ("collection", "deleted", "durable", "previous", "stored")

    def __init__(
        self,
        collection: Collection,
        stored: Stored,
        previous: Stored | None,
        deleted: bool,
        durable: asyncio.Future[None],
    ) -> None:
        self.collection = collection
        self.stored = stored
        self.previous = previous
        self.deleted = deleted
        self.durable = durable


class Store:
    """`get` and `objects` read the published state, `latest` and `all_latest` the latest one."""

    def __init__(
        self, journal: Journal, *, history_events: int = 100_000, history_bytes: int = 64 << 20
    ) -> None:
        self._journal = journal
        self._history_events = history_events
        self._history_bytes = history_bytes
        self._collections: dict[str, Collection] = {}
        self._writes: deque[Write] = deque()
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._followers: list[Follower] = []
        self._settling = False
        objects: dict[str, dict[Key, Stored]] = {}
        for record in journal.load():
            of_resource = objects.setdefault(record.resource, {})
            key = (record.namespace, record.name)
            of_resource.pop(key, None)
            if record.value is not None:
                of_resource[key] = Stored(key, record.revision, record.value)
        self.revision = self._assigned = self._loaded = journal.revision
        """The revision of the published state."""
        for resource, of_resource in objects.items():
            self._collection(resource).load(list(of_resource.values()))

    def get(self, resource: str, key: Key) -> Stored | None:
        return self._collection(resource).published.get(key)

    def objects(
        self, resource: str, namespace: str | None = None, at: int | None = None
    ) -> list[Stored]:
        """The published objects in the order of their keys, now or as of an earlier revision."""
        collection = self._collection(resource)
        if at is None or at >= self.revision:
            published = collection.published
            return [published[key] for key in collection.keys(namespace)]
        state = dict(collection.published)
        for event in reversed(collection.history.since(at)):
            if event.previous is None:
                state.pop(event.stored.key, None)
            else:
                state[event.stored.key] = event.previous
        return [state[key] for key in sorted(state) if namespace is None or key[0] == namespace]

    def latest(self, resource: str, key: Key) -> Stored | None:
        """The object as the next write must see it."""
        self._settle()
        return self._collection(resource).latest.get(key)

    def all_latest(self, resource: str, namespace: str | None = None) -> Iterator[Stored]:
        """The objects as the next write must see them, in no meaningful order."""
        self._settle()
        for stored in self._collection(resource).latest.values():
            if namespace is None or stored.key[0] == namespace:
                yield stored

    def put(self, resource: str, obj: Object) -> Write:
        """Makes `obj` the latest state under a new revision. The caller gives the dict away."""
        metadata = obj["metadata"]
        key = (metadata.get("namespace") or "", metadata["name"])
        return self._stage(resource, key, obj, deleted=False)

    def remove(self, resource: str, key: Key, last: Object | None = None) -> Write:
        """Takes the object away; `last` is its final state where that differs from the latest."""
        stored = self._collection(resource).latest[key]
        obj = dict(last if last is not None else stored.obj)
        obj["metadata"] = dict(obj["metadata"])
        return self._stage(resource, key, obj, deleted=True)

    def durable(self, resource: str, key: Key) -> asyncio.Future[None] | None:
        """What to wait for before saying that the latest state of an object is so."""
        for write in reversed(self._writes):
            if write.stored.key == key and write.collection is self._collection(resource):
                return write.durable
        return None

    def last_write(self) -> asyncio.Future[None] | None:
        """The write on its way that all others on their way will have preceded."""
        self._settle()
        return self._writes[-1].durable if self._writes else None

    def since(self, resource: str, revision: int) -> list[Event]:
        """The published changes of a resource after a revision; Expired if no longer known."""
        return self._collection(resource).history.since(revision)

    def subscribe(self, resource: str, subscriber: Subscriber) -> Callable[[], None]:
        """Calls `subscriber` at each change from now on, in order; returns how to end that."""
        subscribers = self._collection(resource).subscribers
        subscribers.append(subscriber)
        return lambda: subscribers.remove(subscriber)

    def follow(self, follower: Follower) -> None:
        """Calls `follower` with the resource and the change at each change of any resource."""
        self._followers.append(follower)

    async def reached(self, revision: int) -> None:
        """Returns once the published state is at `revision` or later."""
        if self.revision < revision:
            there = asyncio.get_running_loop().create_future()
            entry = (revision, there)
            self._waiting.append(entry)
            try:
                await there
            finally:
                self._waiting.remove(entry)

    def close(self) -> None:
        self._journal.close()

    def _collection(self, resource: str) -> Collection:
        collection = self._collections.get(resource)
        if collection is None:
            history = History(self._loaded, self._history_events, self._history_bytes)
            collection = self._collections[resource] = Collection(resource, history)
        return collection

    def _stage(self, resource: str, key: Key, obj: Object, deleted: bool) -> Write:
        self._settle()
        collection = self._collection(resource)
        self._assigned += 1
        revision = self._assigned
        obj["metadata"]["resourceVersion"] = str(revision)
        raw = _encode(obj)
        stored = Stored(key, revision, raw, obj)
        previous = collection.latest.get(key)
        durable = self._journal.append(
            Record(revision, resource, key[0], key[1], None if deleted else raw)
        )
        write = Write(collection, stored, previous, deleted, durable)
        self._writes.append(write)
        if deleted:
            del collection.latest[key]
        else:
            collection.latest[key] = stored
        if durable.done():
            self._settle()
        else:
            durable.add_done_callback(self._on_durable)
        return write

    def _on_durable(self, _: asyncio.Future[None]) -> None:
        self._settle()

    def _settle(self) -> None:
        """Publishes what has become durable; falls back to the published state on a failure.

        A subscriber may write. Its change is published after the one it is being told of has
        reached everybody.
        """
        if self._settling:
            return
        self._settling = True
        try:
            while self._writes and self._writes[0].durable.done():
                write = self._writes[0]
                if write.durable.cancelled() or write.durable.exception() is not None:
                    self._fall_back()
                    return
                self._writes.popleft()
                self.revision = write.stored.revision
                event = Event(write.stored, write.previous, write.deleted)
                write.collection.publish(event)
                for follower in self._followers:
                    try:
                        follower(write.collection.name, event)
                    except Exception:  # as for subscribers
                        log.exception("a follower of %s failed", write.collection.name)
        finally:
            self._settling = False
        if self._waiting:
            self._wake()

    def _fall_back(self) -> None:
        for write in self._writes:
            key = write.stored.key
            published = write.collection.published.get(key)
            if published is None:
                write.collection.latest.pop(key, None)
            else:
                write.collection.latest[key] = published
        self._writes.clear()

    def _wake(self) -> None:
        for revision, there in self._waiting:
            if revision <= self.revision and not there.done():
                there.set_result(None)
