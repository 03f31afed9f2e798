"""Garbage collection: what nobody owns any more goes.

Three ways to delete an owner. In the background, it is gone and its dependents follow. In the
foreground, it stays until the dependents that block it are gone. Orphaning, its dependents forget
it and stay. An object goes only when every one of its owners is gone, and absence is looked up on
the server before anything is deleted: a watch may be late, and a name may be borne by another uid.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from enum import Enum

from posse.controllers.runtime import WorkQueue
from posse.kube.cache import Cache, Change
from posse.kube.connection import Connection
from posse.kube.errors import Conflict, KubeError, NotFound
from posse.local.core.graph import FOREGROUND, ORPHAN, Entry, Graph, Tracked
from posse.local.core.serving import ServedKinds
from posse.objects.kinds import Kind
from posse.objects.meta import ObjectMeta, OwnerReference
from posse.world import World

log = logging.getLogger(__name__)

WORKERS = 8
FIRST_LISTS = 30.0
_REMEMBERED_ABSENCES = 1000


class Owner(Enum):
    SOLID = "there, and staying"
    WAITING = "going once its dependents are gone"
    ABSENT = "gone"
    UNKNOWN = "of a kind that is not served"


class Collector:
    def __init__(self, connection: Connection, world: World, served: ServedKinds) -> None:
        self._connection = connection
        self._served = served
        self._graph = Graph()
        self._queue: WorkQueue[str] = WorkQueue(world)
        self._watches: dict[Kind, tuple[Cache[Tracked], asyncio.Task[None]]] = {}
        self._absent: dict[tuple[str, str, str, str, str], None] = {}
        self._unresolved: dict[str, None] = {}
        self._kinds_changed = asyncio.Event()
        served.listen(self._kinds_changed.set)

    async def run(self) -> None:
        await self._served.known()
        try:
            async with asyncio.TaskGroup() as tasks:
                self._watch(tasks)
                await self._first_lists()
                for _ in range(WORKERS):
                    tasks.create_task(self._work())
                while True:
                    await self._kinds_changed.wait()
                    self._watch(tasks)
        finally:
            self._queue.close()

    async def _first_lists(self) -> None:
        """A full graph spares live looks. It is not needed to be right, so nobody waits long."""
        try:
            async with asyncio.timeout(FIRST_LISTS):
                for cache, _ in list(self._watches.values()):
                    await cache.synced()
        except TimeoutError:
            log.warning("some kinds were not listed within %.0fs", FIRST_LISTS)

    def _watch(self, tasks: asyncio.TaskGroup) -> None:
        """Follow exactly the kinds that are served."""
        self._kinds_changed.clear()
        kinds = dict.fromkeys(self._served.kinds)
        for kind in [kind for kind in self._watches if kind not in kinds]:
            cache, task = self._watches.pop(kind)
            task.cancel()
            # A definition is deleted with its objects, whether or not their ends were watched.
            for tracked in list(cache.objects.values()):
                self._gone(Entry(kind, tracked.metadata))
        for kind in kinds:
            if kind not in self._watches:
                new: Cache[Tracked] = Cache(
                    self._connection, kind, Tracked, on_change=self._listener(kind)
                )
                self._watches[kind] = (new, tasks.create_task(new.run()))
        for uid in self._unresolved:
            self._queue.add(uid)
        self._unresolved.clear()

    def _listener(self, kind: Kind) -> Callable[[Change[Tracked]], None]:
        def changed(change: Change[Tracked]) -> None:
            if change.new is not None:
                before = change.old.metadata if change.old is not None else None
                self._seen(Entry(kind, change.new.metadata), before)
            elif change.old is not None:
                self._gone(Entry(kind, change.old.metadata))

        return changed

    def _seen(self, entry: Entry, before: ObjectMeta | None) -> None:
        self._graph.put(entry)
        if before is not None and (
            before.owner_references == entry.meta.owner_references
            and before.finalizers == entry.meta.finalizers
            and before.deleting == entry.meta.deleting
        ):
            return
        if entry.meta.owner_references or entry.meta.deleting:
            self._queue.add(entry.uid)
        if entry.waits_for_dependents:
            for dependent in self._graph.dependents(entry.uid):
                self._queue.add(dependent.uid)
        if before is not None:
            self._wake_waiting(before.owner_references)

    def _gone(self, entry: Entry) -> None:
        self._graph.remove(entry.uid)
        self._unresolved.pop(entry.uid, None)
        for dependent in self._graph.dependents(entry.uid):
            self._remember_absence(_place(entry.kind, entry.meta))
            self._queue.add(dependent.uid)
        self._wake_waiting(entry.meta.owner_references)

    def _wake_waiting(self, owners: list[OwnerReference]) -> None:
        for reference in owners:
            owner = self._graph.objects.get(reference.uid)
            if owner is not None and owner.waits_for_dependents:
                self._queue.add(owner.uid)

    async def _work(self) -> None:
        while True:
            uid = await self._queue.take()
            try:
                await self._process(uid)
            except Conflict:
                self._queue.retry(uid)
            except KubeError as error:
                delay = self._queue.retry(uid)
                log.warning("collecting %s: %s; again in %.1fs", uid, error, delay)
            except Exception:  # one object that trips the code must not stop the others
                self._queue.retry(uid)
                log.exception("collecting %s", uid)
            else:
                self._queue.forget(uid)
            finally:
                self._queue.done(uid)

    async def _process(self, uid: str) -> None:
        entry = self._graph.objects.get(uid)
        if entry is None:
            return
        if entry.lets_dependents_go:
            for dependent in self._graph.dependents(uid):
                await self._disown(dependent, (uid,))
            await self._unfinalize(entry, ORPHAN)
        elif entry.waits_for_dependents:
            blocking = self._graph.blocking(uid)
            for dependent in blocking:
                if not dependent.meta.deleting:
                    self._queue.add(dependent.uid)
            if not blocking:
                await self._unfinalize(entry, FOREGROUND)
        elif not entry.meta.deleting and entry.meta.owner_references:
            await self._judge(entry)

    async def _judge(self, entry: Entry) -> None:
        """Delete the object, or drop references to owners that are gone, or leave it."""
        states = await self._owners(entry, entry.meta)
        if _stays(states):
            self._remember_unresolved(entry, states)
            return
        latest = await self._latest(entry)
        if latest is None or latest.deleting:
            return
        states = await self._owners(entry, latest)
        if _stays(states):
            return
        by_uid = dict(zip((r.uid for r in latest.owner_references), states, strict=True))
        if Owner.SOLID in states:
            leaving = tuple(uid for uid, state in by_uid.items() if state is not Owner.SOLID)
            await self._disown(Entry(entry.kind, latest), leaving)
            return
        if ORPHAN in latest.finalizers:
            propagation = "Orphan"
        elif FOREGROUND in latest.finalizers or (
            Owner.WAITING in states and self._graph.dependents(entry.uid)
        ):
            propagation = "Foreground"
        else:
            propagation = "Background"
        log.info("%s %s/%s: nobody owns it any more", entry.kind.kind, *latest.key)
        await self._connection.delete(
            entry.kind,
            latest.name,
            latest.namespace,
            uid=latest.uid,
            resource_version=latest.resource_version,
            propagation=propagation,
        )

    async def _owners(self, entry: Entry, meta: ObjectMeta) -> list[Owner]:
        return [
            await self._owner(entry.kind, meta.namespace, reference)
            for reference in meta.owner_references
        ]

    async def _owner(self, kind: Kind, namespace: str, reference: OwnerReference) -> Owner:
        known = self._graph.objects.get(reference.uid)
        if known is not None and known.is_meant_by(reference, namespace):
            return Owner.WAITING if known.waits_for_dependents else Owner.SOLID
        group = reference.api_version.rpartition("/")[0]
        owner_kind = self._served.find(group, reference.kind)
        where = namespace if owner_kind is None or owner_kind.namespaced else ""
        place = (group, reference.kind, where, reference.name, reference.uid)
        if place in self._absent:
            return Owner.ABSENT
        if owner_kind is None or not reference.name:
            return Owner.UNKNOWN
        if owner_kind.namespaced and not kind.namespaced:
            # A cluster-scoped object cannot say which namespace its owner is in.
            return Owner.UNKNOWN
        try:
            found = await self._connection.get(owner_kind, reference.name, where, model=Tracked)
        except NotFound:
            found = None
        if found is None or found.metadata.uid != reference.uid:
            self._remember_absence(place)
            return Owner.ABSENT
        present = Entry(owner_kind, found.metadata)
        return Owner.WAITING if present.waits_for_dependents else Owner.SOLID

    def _remember_absence(self, place: tuple[str, str, str, str, str]) -> None:
        """A uid that is gone never comes back, so one look serves all its dependents."""
        self._absent[place] = None
        if len(self._absent) > _REMEMBERED_ABSENCES:
            del self._absent[next(iter(self._absent))]

    def _remember_unresolved(self, entry: Entry, states: list[Owner]) -> None:
        if Owner.UNKNOWN in states:
            self._unresolved[entry.uid] = None

    async def _latest(self, entry: Entry) -> ObjectMeta | None:
        try:
            found = await self._connection.get(
                entry.kind, entry.meta.name, entry.meta.namespace, model=Tracked
            )
        except NotFound:
            return None
        return found.metadata if found.metadata.uid == entry.uid else None

    async def _disown(self, entry: Entry, owners: tuple[str, ...]) -> None:
        """Take these owners' references out of the object."""
        latest = await self._latest(entry)
        if latest is None:
            return
        kept = [r for r in latest.owner_references if r.uid not in owners]
        if len(kept) != len(latest.owner_references):
            await self._edit(entry, latest, {"ownerReferences": [_written(r) for r in kept]})

    async def _unfinalize(self, entry: Entry, finalizer: str) -> None:
        latest = await self._latest(entry)
        if latest is not None and finalizer in latest.finalizers:
            kept = [name for name in latest.finalizers if name != finalizer]
            await self._edit(entry, latest, {"finalizers": kept})

    async def _edit(self, entry: Entry, latest: ObjectMeta, change: dict[str, object]) -> None:
        guard = {"uid": latest.uid, "resourceVersion": latest.resource_version}
        try:
            await self._connection.patch(
                entry.kind, latest.name, {"metadata": guard | change}, latest.namespace
            )
        except NotFound:
            log.debug("%s %s/%s is gone already", entry.kind.kind, *latest.key)


def _stays(states: list[Owner]) -> bool:
    """Nothing is to be done: an owner holds it and none is gone, or one cannot be judged."""
    return Owner.UNKNOWN in states or all(state is Owner.SOLID for state in states)


def _place(kind: Kind, meta: ObjectMeta) -> tuple[str, str, str, str, str]:
    return (kind.group, kind.kind, meta.namespace, meta.name, meta.uid)


def _written(reference: OwnerReference) -> dict[str, object]:
    written: dict[str, object] = {
        "apiVersion": reference.api_version,
        "kind": reference.kind,
        "name": reference.name,
        "uid": reference.uid,
    }
    if reference.controller:
        written["controller"] = True
    if reference.block_owner_deletion:
        written["blockOwnerDeletion"] = True
    return written
