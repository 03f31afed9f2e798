"""The loop: caches wake keys, workers reconcile them, failures come back later.

Nothing is decided before every cache that a controller reads has been listed whole. Controllers
wait for their own caches only: a kind whose CRD is not served yet keeps nobody else waiting. Under
an Election the caches start after the lease is won, so a new leader always begins with fresh lists,
and everything stops as soon as the lease is not surely held.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass

from posse.controllers.runtime.context import Context
from posse.controllers.runtime.creating import ForeignObjectError
from posse.controllers.runtime.expectations import Expectations
from posse.controllers.runtime.informing import Informer, Selection
from posse.controllers.runtime.observing import Observer
from posse.controllers.runtime.queue import WorkQueue
from posse.kube.cache import Change
from posse.kube.connection import Connection
from posse.kube.errors import ApiError, Conflict, Forbidden, KubeError
from posse.kube.events import Recorder
from posse.kube.leases import Leadership
from posse.objects.kinds import Kind
from posse.objects.ownership import (
    Key,
    Manifest,
    key_of,
    metadata_of,
    owner_key,
    uid_of,
)
from posse.world import World

log = logging.getLogger(__name__)

Reconcile = Callable[[Context, Key], Awaitable[float | None]]
"""Bring one object to what it should be; the answer is when to look again, in seconds."""

Keys = Callable[[Manifest], Iterable[Key]]


def _all(obj: Manifest) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Watch:
    """A kind whose changes concern our objects without being owned by them."""

    kind: Kind | Selection
    keys: Keys  # which of our objects a change of this one concerns


@dataclass(frozen=True, slots=True)
class Controller:
    """A kind, and how one object of it is reconciled.

    `owns`: kinds whose changes wake the object that controls them (by controller ownerReference).
    `watches`: kinds whose changes wake what `keys` says. `reads`: cached, but wake nobody.
    `concerns`: objects of the kind that are not worth a look do not wake their key.
    """

    name: str
    kind: Kind
    reconcile: Reconcile
    owns: tuple[Kind | Selection, ...] = ()
    watches: tuple[Watch, ...] = ()
    reads: tuple[Kind | Selection, ...] = ()
    workers: int = 4
    concerns: Callable[[Manifest], bool] = _all


@dataclass(frozen=True, slots=True)
class Election:
    """The lease under which one of several replicas works."""

    name: str
    namespace: str
    identity: str


async def run_controllers(
    connection: Connection,
    world: World,
    controllers: Sequence[Controller],
    *,
    election: Election | None = None,
    component: str = "posse-controllers",
    namespace: str = "",
    observer: Observer | None = None,
) -> None:
    """Run until cancelled. `component` signs the events, `namespace` narrows the caches."""
    observer = observer or Observer()
    connection = Connection(
        observer.measured(connection.transport), world, namespace=connection.namespace
    )
    program = _Program(connection, world, tuple(controllers), component, namespace, observer)
    if election is None:
        await program.run(_always)
        return
    while True:
        leadership = Leadership(
            connection,
            world,
            name=election.name,
            namespace=election.namespace,
            identity=election.identity,
        )
        await leadership.acquire()
        log.info("%s leads as %s", election.name, election.identity)
        observer.leads(True)
        working = asyncio.create_task(program.run(leadership.surely_held))
        keeping = asyncio.create_task(leadership.keep())
        try:
            await asyncio.wait((working, keeping), return_when=asyncio.FIRST_COMPLETED)
        finally:
            # The lease is given back only when nothing of ours can write any more.
            for task in (working, keeping):
                task.cancel()
            outcomes = await asyncio.gather(working, keeping, return_exceptions=True)
            observer.leads(False)
            await leadership.release()
        for outcome in outcomes:
            if isinstance(outcome, Exception):
                raise outcome
        log.warning("%s lost the lease; standing by", election.name)


def _always() -> bool:
    return True


@dataclass(frozen=True, slots=True)
class _Program:
    connection: Connection
    world: World
    controllers: tuple[Controller, ...]
    component: str
    namespace: str
    observer: Observer

    async def run(self, may_write: Callable[[], bool]) -> None:
        """Start caches, then each controller's workers once its own caches are whole."""
        recorder = Recorder(self.connection, self.world, self.component)
        informers: dict[Selection, Informer] = {}
        loops = [
            _Loop.build(controller, self, recorder, informers, may_write)
            for controller in self.controllers
        ]
        self.observer.watches([informer.cache for informer in informers.values()])
        self.observer.queues({loop.controller.name: loop.queue for loop in loops})
        self.observer.works()
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(recorder.run())
                for informer in informers.values():
                    tasks.create_task(informer.cache.run())
                for loop in loops:
                    tasks.create_task(loop.run())
        finally:
            for loop in loops:
                loop.queue.close()


@dataclass(frozen=True, slots=True)
class _Loop:
    """One controller at work."""

    controller: Controller
    context: Context
    queue: WorkQueue[Key]
    may_write: Callable[[], bool]
    observer: Observer

    @classmethod
    def build(
        cls,
        controller: Controller,
        program: _Program,
        recorder: Recorder,
        shared: dict[Selection, Informer],
        may_write: Callable[[], bool],
    ) -> _Loop:
        queue: WorkQueue[Key] = WorkQueue(program.world)
        expectations = Expectations(program.world)
        informers: dict[Kind, Informer] = {}

        def informer_of(source: Kind | Selection) -> Informer:
            selection = source if isinstance(source, Selection) else Selection(source)
            if selection not in shared:
                shared[selection] = Informer(
                    program.connection, selection, namespace=program.namespace
                )
            informers[selection.kind] = shared[selection]
            return shared[selection]

        def wake(keys: Keys) -> Callable[[Change[Manifest]], None]:
            def listener(change: Change[Manifest]) -> None:
                woken: dict[Key, None] = {}
                for obj in (change.old, change.new):
                    if obj is not None:
                        woken.update(dict.fromkeys(keys(obj)))
                for key in woken:
                    queue.add(key)

            return listener

        def own(obj: Manifest) -> tuple[Key, ...]:
            return (key_of(obj),) if controller.concerns(obj) else ()

        informer_of(controller.kind).listen(wake(own))
        for source in controller.owns:
            informer = informer_of(source)
            informer.listen(_fulfilling(expectations))
            informer.listen(wake(_owner_among(controller.kind)))
        for watch in controller.watches:
            informer_of(watch.kind).listen(wake(watch.keys))
        for source in controller.reads:
            informer_of(source)
        context = Context(program.connection, program.world, recorder, informers, expectations)
        return cls(controller, context, queue, may_write, program.observer)

    async def run(self) -> None:
        for informer in self.context.informers.values():
            await informer.cache.synced()
        log.info("%s: started", self.controller.name)
        async with asyncio.TaskGroup() as workers:
            for _ in range(self.controller.workers):
                workers.create_task(self._work())

    async def _work(self) -> None:
        while True:
            key = await self.queue.take()
            try:
                await self._reconcile(key)
            finally:
                self.queue.done(key)

    async def _reconcile(self, key: Key) -> None:
        if not self.may_write():
            self.queue.retry(key)
            return
        began, result = self.context.world.monotonic(), "ok"
        try:
            after = await self.controller.reconcile(self.context, key)
        except (Conflict, ForeignObjectError) as blocked:
            # Ordinary life: our view was old, or somebody is in the way for now.
            log.debug("%s %s/%s: %s", self.controller.name, *key, blocked)
            self.queue.retry(key)
            result = "blocked"
        except KubeError as error:
            result = self._failed(key, error)
        except Exception:  # one object that trips the code must not stop the others
            self.queue.retry(key)
            log.exception("%s %s/%s", self.controller.name, *key)
            result = "crashed"
        else:
            self.queue.forget(key)
            # What is still expected and never comes must not keep the key asleep.
            lapse = self.context.expectations.lapses_in(key)
            for moment in (after, lapse):
                if moment is not None:
                    self.queue.add_after(key, moment)
        took = self.context.world.monotonic() - began
        self.observer.reconciled(self.controller.name, result, took)

    def _failed(self, key: Key, error: KubeError) -> str:
        if isinstance(error, Forbidden) and error.namespace_ending:
            # The object goes as well, and that wakes its key.
            log.debug("%s %s/%s: %s", self.controller.name, *key, error)
            self.queue.forget(key)
            return "blocked"
        pause = error.retry_after if isinstance(error, ApiError) else None
        delay = self.queue.retry(key, at_least=pause or 0.0)
        log.warning("%s %s/%s: %s; again in %.1fs", self.controller.name, *key, error, delay)
        return "failed"


def _owner_among(kind: Kind) -> Keys:
    def keys(obj: Manifest) -> tuple[Key, ...]:
        owner = owner_key(obj, kind)
        return () if owner is None else (owner,)

    return keys


def _fulfilling(expectations: Expectations) -> Callable[[Change[Manifest]], None]:
    def listener(change: Change[Manifest]) -> None:
        if change.new is not None:
            expectations.appeared(uid_of(change.new))
            if metadata_of(change.new).get("deletionTimestamp"):
                expectations.ending(uid_of(change.new))
        elif change.old is not None:
            expectations.gone(uid_of(change.old))

    return listener
