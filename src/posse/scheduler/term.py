"""One term of leadership: everything is listed afresh, and only then is anything decided."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

from posse.engine.view import View
from posse.kube.backoff import Backoff
from posse.kube.cache import Cache, Change
from posse.kube.connection import Connection
from posse.kube.errors import KubeError, NotFound
from posse.kube.events import Recorder
from posse.kube.identity import Identity, Malformed
from posse.kube.lulls import Lull
from posse.objects.budgets import PodDisruptionBudget
from posse.objects.groups import PodGroup, PriorityClass, Queue, Workload
from posse.objects.hypernodes import HyperNode
from posse.objects.kinds import (
    CSI_DRIVER,
    CSI_NODE,
    CSI_STORAGE_CAPACITY,
    HYPER_NODE,
    NAMESPACE,
    NATIVE_POD_GROUPS,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    POD_DISRUPTION_BUDGET,
    POD_GROUPS,
    PRIORITY_CLASS,
    QUEUE,
    STORAGE_CLASS,
    WORKLOAD,
    Kind,
)
from posse.objects.meta import Key
from posse.objects.namespaces import Namespace
from posse.objects.nodes import Node
from posse.objects.pods import Pod
from posse.objects.volumes import (
    CsiDriver,
    CsiNode,
    CsiStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from posse.scheduler.abstaining import Abstainer, SilentRecords
from posse.scheduler.binding import Binder
from posse.scheduler.capturing import Capture
from posse.scheduler.claiming import Claimer
from posse.scheduler.committing import Committer, Order
from posse.scheduler.config import COMPONENT, SchedulerConfig
from posse.scheduler.evicting import Eviction, Evictor
from posse.scheduler.inbox import Inbox
from posse.scheduler.keeping import Keeper
from posse.scheduler.loop import Loop
from posse.scheduler.observing import Observer, Standing
from posse.scheduler.outcomes import Outcomes
from posse.scheduler.reading.claims import Claims
from posse.scheduler.reading.quarantine import Quarantine, Records
from posse.scheduler.reading.reader import Reader
from posse.scheduler.releasing import Releaser
from posse.scheduler.standing import waiting_by_reason
from posse.scheduler.statuses import Statuses
from posse.scheduler.suspecting import Suspects
from posse.scheduler.tallying import Tallies
from posse.world import World

T = TypeVar("T")

_log = logging.getLogger(__name__)


class Term:
    """`connection` must refuse to write once leadership is in doubt.

    A term has one policy. Under a frozen one it listens and decides, and has nobody who writes.
    """

    def __init__(
        self,
        config: SchedulerConfig,
        connection: Connection,
        world: World,
        observer: Observer,
        suspects: Suspects,
    ) -> None:
        self._connection = connection
        self._world = world
        self._observer = observer
        self._suspects = suspects
        self._recorder: Recorder | None = None
        self._writers: list[Callable[[], Coroutine[Any, Any, None]]] = []
        self._tallies: Tallies | None = None
        frozen = config.policy.frozen
        lull = Lull()
        events: Records = SilentRecords()
        if not frozen:
            events = self._recorder = Recorder(connection, world, COMPONENT, lull)
        self._quarantine = Quarantine(events)
        self._inbox = Inbox()
        capture = self._capture = _capture(config, world)
        view = View() if capture is None else capture.view()
        claims = Claims(config.policy.claims or config.claims, config.claim_all)
        reader = self._reader = Reader(view, claims, self._quarantine)
        self._pods = self._cache(POD, Pod, reader.pod, self._pod_seen)
        self._nodes = self._cache(NODE, Node, reader.node)
        self._groups = [self._group_cache(kind) for kind in POD_GROUPS]
        self._queues = self._cache(QUEUE, Queue, reader.tenancy.queue)
        self._workloads = self._cache(WORKLOAD, Workload, reader.workload)
        self._namespaces = self._cache(NAMESPACE, Namespace, reader.tenancy.namespace)
        self._classes = self._cache(PRIORITY_CLASS, PriorityClass, reader.priority_class)
        self._budgets = self._cache(POD_DISRUPTION_BUDGET, PodDisruptionBudget, reader.budget)
        self._hypernodes = self._cache(HYPER_NODE, HyperNode, reader.hypernode)
        self._storage: list[Cache[Any]] = [
            self._cache(STORAGE_CLASS, StorageClass, reader.storage.storage_class),
            self._cache(CSI_DRIVER, CsiDriver, reader.storage.csi_driver),
            self._cache(CSI_STORAGE_CAPACITY, CsiStorageCapacity, reader.storage.csi_capacity),
            self._cache(CSI_NODE, CsiNode, reader.storage.csi_node),
            self._cache(PERSISTENT_VOLUME, PersistentVolume, reader.storage.volume),
            self._cache(PERSISTENT_VOLUME_CLAIM, PersistentVolumeClaim, reader.storage.claim),
        ]
        submit: Callable[[Order], None]
        evict: Callable[[Eviction], None]
        outcomes = Outcomes(
            self._inbox, reader, events, world, config.policy, submit=lambda order: submit(order)
        )
        statuses: Statuses | Abstainer
        if frozen:
            statuses = abstainer = Abstainer(reader)
            submit, keep = abstainer.submit, abstainer.keep
            evict = abstainer.evict
        else:
            committer = Committer(
                connection,
                Binder(connection, world, reader.pod_of),
                Releaser(connection, world, reader.pod_of),
                outcomes,
                observer,
                claimer=Claimer(
                    connection,
                    world,
                    reader.storage.shelves,
                    reader.pod_of,
                    reader.ground.labels_of,
                    patience=config.claim_patience,
                ),
                lull=lull,
                gangs_in_flight=config.gangs_in_flight,
                binds_in_flight=config.binds_in_flight,
            )
            statuses = written = Statuses(
                connection,
                world,
                reader,
                events,
                fact=outcomes.fact,
                lull=lull,
                settle=config.settle,
                restate=config.restate,
            )
            self._tallies = Tallies(connection, world, reader, every=config.tally)
            keeper = Keeper(connection, world, reader)
            evictor = Evictor(
                connection, world, outcomes, observer, lull=lull, in_flight=config.binds_in_flight
            )
            submit, keep = committer.submit, keeper.keep

            def evict(order: Eviction) -> None:
                keeper.forget(order.decision.gang)
                evictor.submit(order)

            self._writers = [written.run, committer.run, evictor.run, keeper.run, self._tallies.run]
        self._standing = Standing(
            lambda: waiting_by_reason(reader.musters, statuses.verdicts),
            lambda: len(self._quarantine),
        )
        self._loop = Loop(
            self._inbox,
            view,
            reader,
            statuses,
            outcomes,
            submit,
            evict,
            keep,
            world,
            config.policy,
            observer,
            debounce=config.debounce,
            pace=config.pace,
            before_round=self._before_round,
            capture=capture,
        )
        self._located: dict[Key, tuple[Identity, str]] = {}

    async def serve(self) -> None:
        """Until cancelled, or until a write is refused because leadership is in doubt."""
        try:
            await self._serve()
        finally:
            if self._capture is not None:
                self._capture.close()

    async def _serve(self) -> None:
        required: list[Cache[Any]] = [self._pods, self._nodes, self._namespaces, self._classes]
        native = await self._native_groups()
        optional: list[Cache[Any]] = [
            *self._groups,
            *native,
            self._queues,
            self._workloads,
            self._hypernodes,
            self._budgets,
            *self._storage,
        ]
        self._observer.watches([*required, *optional])
        for gang, (why, seconds) in self._suspects.aside().items():
            self._reader.set_aside(gang, why)
            trust = partial(self._inbox.post, partial(self._reader.set_aside, gang, ""))
            self._inbox.after(f"trust {gang}", seconds, trust)
        async with asyncio.TaskGroup() as tasks:
            if self._recorder is not None:
                tasks.create_task(self._recorder.run())
            for cache in (*required, *optional):
                tasks.create_task(cache.run())
            for cache in required:
                await cache.synced()
            absent = [c.kind.qualified for c in optional if not await self._synced_or_absent(c)]
            if absent:
                _log.info("not served, and so without objects: %s", ", ".join(absent))
            _log.info(
                "decides on %d nodes, %d pods", len(self._nodes.objects), len(self._pods.objects)
            )
            for writer in self._writers:
                tasks.create_task(writer())
            tasks.create_task(self._loop.run())
            self._observer.stands(self._standing)
            self._observer.works()

    async def _native_groups(self) -> list[Cache[Any]]:
        """Kubernetes' own PodGroups, in the newest version that is served; most servers have none.

        A server that cannot be asked is asked again: nothing is decided before that anyway.
        """
        backoff = Backoff(self._world)
        while True:
            try:
                for kind in NATIVE_POD_GROUPS:
                    if await self._serves(kind):
                        return [self._group_cache(kind)]
            except KubeError:
                await asyncio.sleep(backoff.pause())
            else:
                return []

    def _pod_seen(self, change: Change[Pod]) -> None:
        if change.new is not None and change.new.spec.node_name:
            self._observer.seen(change.new.metadata.uid)

    def _group_cache(self, kind: Kind) -> Cache[PodGroup]:
        return self._cache(kind, PodGroup, partial(self._reader.group, kind=kind))

    def _cache(
        self,
        kind: Kind,
        model: type[T],
        apply: Callable[[Change[T]], None],
        witness: Callable[[Change[T]], None] | None = None,
    ) -> Cache[T]:
        """`witness` hears of a change at once, before it is applied."""
        post = self._inbox.hears(apply)

        def hear(change: Change[T]) -> None:
            if witness is not None:
                witness(change)
            post(change)

        def set_aside(record: Malformed) -> None:
            namespace, name, uid, version = record.identity
            regarding = {
                "metadata": {
                    "namespace": namespace,
                    "name": name,
                    "uid": uid,
                    "resourceVersion": version,
                }
            }
            self._quarantine.admit(kind, regarding, uid, record.why)
            self._inbox.wake()

        return Cache(
            self._connection,
            kind,
            model,
            on_change=hear if witness is not None else post,
            on_malformed=set_aside,
        )

    async def _synced_or_absent(self, cache: Cache[Any]) -> bool:
        """Whether it is served. A kind that is not has no objects: it is waited for in the
        background."""
        synced = asyncio.ensure_future(cache.synced())
        backoff = Backoff(self._world)
        try:
            while not synced.done():
                if not await self._served(cache):
                    return False
                await asyncio.wait({synced}, timeout=backoff.pause())
            return True
        finally:
            synced.cancel()

    async def _served(self, cache: Cache[Any]) -> bool:
        try:
            return await self._serves(cache.kind)
        except KubeError:
            return True  # nobody can tell; its list will

    async def _serves(self, kind: Kind) -> bool:
        try:
            served = await self._connection.resources(kind.group, kind.version)
        except NotFound:
            return False
        return any(resource.get("name") == kind.plural for resource in served)

    async def _before_round(self) -> None:
        if self._tallies is not None:
            self._tallies.stir()
        obscure = {name: record.why for (_, name), record in self._queues.malformed.items()}
        self._reader.tenancy.undecodable(obscure)
        await self._locate_undecodable()

    async def _locate_undecodable(self) -> None:
        """Finds the nodes of pods that cannot be decoded: they take room there all the same."""
        records = self._pods.malformed
        if not records and not self._located:
            return
        located: dict[Key, tuple[Identity, str]] = {}
        for key, record in list(records.items()):
            known = self._located.get(key)
            if known is None or known[0] != record.identity:
                known = (record.identity, await self._node_of(*key))
            located[key] = known
        self._located = located
        self._reader.ground.undecodable({key: node for key, (_, node) in located.items()})

    async def _node_of(self, namespace: str, name: str) -> str:
        backoff = Backoff(self._world)
        while namespace and name:
            try:
                pod = await self._connection.get(POD, name, namespace)
            except NotFound:
                break
            except KubeError:
                await asyncio.sleep(backoff.pause())
                continue
            spec, status = pod.get("spec"), pod.get("status")
            node = spec.get("nodeName") if isinstance(spec, dict) else None
            phase = status.get("phase") if isinstance(status, dict) else None
            return node if isinstance(node, str) and phase not in ("Succeeded", "Failed") else ""
        return ""


def _capture(config: SchedulerConfig, world: World) -> Capture | None:
    """A record that cannot be begun is done without."""
    if config.capture is None:
        return None
    try:
        return Capture(config.capture, world, config.policy)
    except OSError as error:
        _log.warning("nothing is recorded: %s", error)
        return None
