"""WATCH: every change of a selection, in order, once.

A watcher subscribes in the same step in which it reads what went before, so no change falls between
the two. Frames of plain JSON are made once for each change and shared by all watchers. A watcher
that does not keep up is cut off rather than fed from memory without bound; its client comes back
with the last revision it saw, and gets the rest or is told to list again.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterator

import msgspec

from posse.local.apiserver import statuses
from posse.local.apiserver.cluster import Cluster
from posse.local.apiserver.negotiation import Form
from posse.local.apiserver.reading import (
    Selection,
    check_list_options,
    fresh,
    revision_of,
    view_of,
)
from posse.local.apiserver.rendering import View
from posse.local.apiserver.requests import Request
from posse.local.apiserver.responses import CutOff, Streamed
from posse.local.apiserver.routing import Target
from posse.local.apiserver.store import Event, Expired, Object, Stored

log = logging.getLogger(__name__)

ADDED, MODIFIED, DELETED = "ADDED", "MODIFIED", "DELETED"
_INITIAL_EVENTS_END = "k8s.io/initial-events-end"
_DEFAULT_SECONDS = 1800.0
_BOOKMARK_EVERY = 60.0
_PUNCTUAL = 0.001  # timers may fire a little early; what is this close is due
_BEHIND = 20_000  # frames that may wait for one watcher
_TOGETHER = 256  # frames that are sent as one chunk
_encode = msgspec.json.Encoder().encode

Chunk = Callable[[bytes], Awaitable[None]]


class Frames:
    """Makes the frames of one watcher; `wanted` turns a change into what the watcher sees of it."""

    def __init__(self, view: View, selection: Selection) -> None:
        self._view = view
        self._selection = selection
        self._version = view.kind.version
        self._headed = False

    def wanted(self, event: Event) -> bytes | None:
        selection = self._selection
        if selection.namespace is not None and event.stored.key[0] != selection.namespace:
            return None
        previous = event.previous
        if selection.everything:
            is_in, was_in = not event.deleted, previous is not None
        else:
            is_in = not event.deleted and selection.accepts(event.stored.obj)
            was_in = previous is not None and selection.accepts(previous.obj)
        if is_in:
            return self._frame(event, MODIFIED if was_in else ADDED)
        return self._frame(event, DELETED) if was_in else None

    def initial(self, stored: Stored) -> bytes:
        return self._encoded(ADDED, stored)

    def bookmark(self, revision: int, *, initial_events_end: bool = False) -> bytes:
        metadata: Object = {"resourceVersion": str(revision)}
        if initial_events_end:
            metadata["annotations"] = {_INITIAL_EVENTS_END: "true"}
        kind = self._view.kind
        obj: Object = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": metadata}
        if self._view.form in (Form.PARTIAL, Form.PARTIAL_LIST):
            obj |= {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
        elif self._view.form is Form.TABLE:
            obj = self._table([])
            obj["metadata"] = metadata
        return frame_of("BOOKMARK", obj)

    def _frame(self, event: Event, kind: str) -> bytes:
        if not self._view.shared:
            return self._encoded(kind, _shown(event, kind))
        cached = event.frames.get((kind, self._version))
        if cached is None:
            cached = self._encoded(kind, _shown(event, kind))
            event.frames[(kind, self._version)] = cached
        return cached

    def _encoded(self, kind: str, stored: Stored) -> bytes:
        if self._view.shared:
            raw = self._view.raw(stored)
        elif self._view.form is Form.TABLE:
            raw = _encode(self._table([stored.obj]))
        else:
            raw = _encode(self._view.one(stored.obj))
        return b'{"type":"%b","object":%b}\n' % (kind.encode(), raw)

    def _table(self, objects: list[Object]) -> Object:
        """The columns are said once; the rows that follow have the same."""
        shown = self._view.table(objects)
        if objects:
            metadata = objects[0]["metadata"]
            shown["metadata"] = {"resourceVersion": metadata.get("resourceVersion", "")}
        if self._headed:
            shown["columnDefinitions"] = None
        self._headed = True
        return shown


class Watcher:
    """Frames waiting to be sent, and the one task that waits for them."""

    def __init__(self, frames: Frames) -> None:
        self._frames = frames
        self._queue: deque[bytes] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._closed = False
        self.on_close: Callable[[], None] | None = None

    def is_open(self) -> bool:
        return not self._closed

    def push(self, event: Event) -> None:
        if self._closed:
            return
        try:
            frame = self._frames.wanted(event)
        except Exception:  # a change that cannot be shown must not be passed over in silence
            log.exception("a change of %s cannot be shown", event.stored.key)
            self.close()
            return
        if frame is None:
            return
        self._queue.append(frame)
        if len(self._queue) > _BEHIND:
            self._queue.clear()
            self.close()
        else:
            self._wake()

    def close(self) -> None:
        self._closed = True
        self._wake()
        if self.on_close is not None:
            self.on_close()

    def take(self) -> bytes:
        """As many waiting frames as go well together; empty when none wait."""
        queue = self._queue
        if len(queue) == 1:
            return queue.popleft()
        return b"".join([queue.popleft() for _ in range(min(len(queue), _TOGETHER))])

    async def wait(self, until: float) -> None:
        """Returns when there are frames, when closed, or when the loop's clock says `until`."""
        if self._queue or self._closed:
            return
        loop = asyncio.get_running_loop()
        self._waiter = loop.create_future()
        timer = loop.call_at(until, self._wake)
        try:
            await self._waiter
        finally:
            timer.cancel()
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Watch:
    """One WATCH request: what it begins with, then what happens, until its time is over."""

    def __init__(self, cluster: Cluster, request: Request, target: Target) -> None:
        check_list_options(request, watch=True)
        self._cluster = cluster
        self._request = request
        self._resource = target.resource.name
        self._selection = Selection.of(request, target.kind, target.namespace)
        self._frames = Frames(view_of(cluster, request, target), self._selection)
        self._bookmarks = request.flag("allowWatchBookmarks") or False
        self._initial = request.flag("sendInitialEvents")
        self._revision = revision_of(request.query.get("resourceVersion", ""))
        seconds = request.whole("timeoutSeconds")
        if not seconds or seconds < 0:
            self._seconds = cluster.world.jitter(_DEFAULT_SECONDS)
        else:
            self._seconds = float(seconds)

    async def stream(self, chunk: Chunk) -> None:
        try:
            await fresh(self._cluster, self._revision)
        except statuses.Refusal as refusal:
            await chunk(frame_of("ERROR", refusal.status))
            return
        store = self._cluster.store
        watcher = Watcher(self._frames)
        try:
            beginning = self._begin()
        except Expired as error:
            await chunk(frame_of("ERROR", statuses.expired(str(error)).status))
            return
        unsubscribe = store.subscribe(self._resource, watcher.push)
        leaving = asyncio.ensure_future(self._request.gone())
        leaving.add_done_callback(lambda _: watcher.close())
        try:
            await self._feed(watcher, beginning, chunk)
        except TimeoutError:
            raise CutOff from None
        finally:
            watcher.on_close = None
            unsubscribe()
            leaving.cancel()
        if not watcher.is_open():
            raise CutOff

    def _begin(self) -> Iterator[bytes]:
        """What comes before the live changes, read now and made into frames as it is sent."""
        store = self._cluster.store
        from_state = self._initial if self._initial is not None else self._revision == 0
        if from_state:
            items = store.objects(self._resource, self._selection.namespace)
            return self._state(items, store.revision)
        if self._revision == 0:
            return iter(())
        return self._changes(store.since(self._resource, self._revision))

    def _state(self, items: list[Stored], revision: int) -> Iterator[bytes]:
        for stored in items:
            if self._selection.selects(stored):
                yield self._frames.initial(stored)
        if self._initial and self._bookmarks:
            yield self._frames.bookmark(revision, initial_events_end=True)

    def _changes(self, events: list[Event]) -> Iterator[bytes]:
        for event in events:
            frame = self._frames.wanted(event)
            event.frames.clear()
            if frame is not None:
                yield frame

    async def _feed(self, watcher: Watcher, beginning: Iterator[bytes], chunk: Chunk) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + self._seconds
        # A client that takes nothing any more keeps `chunk` waiting; being cut off must end that.
        async with asyncio.timeout(None) as patience:
            watcher.on_close = lambda: patience.reschedule(loop.time())
            while watcher.is_open() and (batch := _batch(beginning)):
                await chunk(batch)
            bookmark_at = loop.time() + _BOOKMARK_EVERY
            while watcher.is_open():
                await watcher.wait(min(end, bookmark_at) if self._bookmarks else end)
                while watcher.is_open() and (batch := watcher.take()):
                    await chunk(batch)
                now = loop.time() + _PUNCTUAL
                if self._bookmarks and watcher.is_open() and now >= min(end, bookmark_at):
                    await chunk(self._frames.bookmark(self._cluster.store.revision))
                    bookmark_at = now + _BOOKMARK_EVERY
                if now >= end:
                    return


async def watch(cluster: Cluster, request: Request, target: Target) -> Streamed:
    prepared = Watch(cluster, request, target)
    return Streamed(prepared.stream)


def frame_of(kind: str, obj: Object) -> bytes:
    return b'{"type":"%b","object":%b}\n' % (kind.encode(), _encode(obj))


def _shown(event: Event, kind: str) -> Stored:
    """The state to show: one that left the selection is shown as it was when it was last in it."""
    if kind != DELETED or event.deleted or event.previous is None:
        return event.stored
    before = event.previous
    obj = {**before.obj, "metadata": dict(before.obj["metadata"])}
    obj["metadata"]["resourceVersion"] = str(event.revision)
    return Stored(before.key, event.revision, _encode(obj), obj)


def _batch(frames: Iterator[bytes]) -> bytes:
    gathered: list[bytes] = []
    for frame in frames:
        gathered.append(frame)
        if len(gathered) == _TOGETHER:
            break
    return b"".join(gathered)
