"""What the server does of its own accord when objects change or time passes.

The status of ResourceQuotas follows what their namespaces hold; a definition that is being deleted
takes its objects with it; a namespace gets its default account back; events are forgotten after an
hour. Each looks at the whole state, one step after the change, so that many changes cost one look
and a restart needs no memory of what was pending.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from posse.local.apiserver.cluster import Cluster
from posse.local.apiserver.deleting import DeleteOptions, remove
from posse.local.apiserver.store import Event, Object
from posse.local.apiserver.strategies import quotas
from posse.local.apiserver.strategies.definitions import CLEANUP, is_terminating
from posse.local.apiserver.strategies.namespaces import default_account
from posse.local.apiserver.writing import make, replace
from posse.objects.kinds import (
    CUSTOM_RESOURCE_DEFINITION,
    EVENT,
    NAMESPACE,
    RESOURCE_QUOTA,
    SERVICE_ACCOUNT,
)
from posse.objects.times import parse_time

log = logging.getLogger(__name__)

_EVENTS_LAST = 3600.0
_FORGET_EVERY = 300.0


class Upkeep:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._due: dict[tuple[Callable[[str], None], str], None] = {}
        """What to look at next, and how."""

    def start(self) -> None:
        store = self._cluster.store
        store.follow(self._on_change)
        for quota in store.objects(RESOURCE_QUOTA.qualified):
            self._look_soon(self._count, quota.key[0])
        for definition in store.objects(CUSTOM_RESOURCE_DEFINITION.qualified):
            self._look_soon(self._empty, definition.key[1])
        self._forget_later()

    def _on_change(self, resource: str, event: Event) -> None:
        namespace, name = event.stored.key
        if namespace and any(self._cluster.store.all_latest(RESOURCE_QUOTA.qualified, namespace)):
            self._look_soon(self._count, namespace)
        if resource == CUSTOM_RESOURCE_DEFINITION.qualified:
            self._look_soon(self._empty, name)
        elif event.deleted:
            # A custom resource's name in the store is the name of its definition.
            key = ("", resource)
            if self._cluster.store.get(CUSTOM_RESOURCE_DEFINITION.qualified, key) is not None:
                self._look_soon(self._empty, resource)
            if (resource, name) == (SERVICE_ACCOUNT.qualified, "default"):
                self._look_soon(self._restore_account, namespace)

    def _look_soon(self, look: Callable[[str], None], name: str) -> None:
        if not self._due:
            asyncio.get_running_loop().call_soon(self._look)
        self._due[(look, name)] = None

    def _look(self) -> None:
        due, self._due = self._due, {}
        for look, name in due:
            try:
                look(name)
            except Exception:  # what is wrong with one must not keep the others waiting
                log.exception("upkeep of %s failed", name)

    def _count(self, namespace: str) -> None:
        cluster = self._cluster
        resource = cluster.registry.resource(RESOURCE_QUOTA)
        for stored in list(cluster.store.all_latest(RESOURCE_QUOTA.qualified, namespace)):
            status = quotas.status_of(cluster.store, stored.obj)
            if stored.obj.get("status") != status:
                replace(cluster, resource, stored, {**stored.obj, "status": status})

    def _restore_account(self, namespace: str) -> None:
        found = self._cluster.store.latest(NAMESPACE.qualified, ("", namespace))
        if found is not None and found.obj["metadata"].get("deletionTimestamp") is None:
            make(self._cluster, SERVICE_ACCOUNT, default_account(namespace))

    def _empty(self, name: str) -> None:
        """Deletes the objects of an ending definition; lets the definition go after the last."""
        cluster = self._cluster
        stored = cluster.store.latest(CUSTOM_RESOURCE_DEFINITION.qualified, ("", name))
        if stored is None or not is_terminating(stored.obj):
            return
        finalizers = stored.obj["metadata"].get("finalizers") or []
        if CLEANUP not in finalizers:
            return
        if (resource := cluster.registry.custom(stored.obj)) is not None:
            for instance in list(cluster.store.all_latest(name)):
                if instance.obj["metadata"].get("deletionTimestamp") is None:
                    options = DeleteOptions(policy="Background")
                    kind, context = resource.storage, cluster.context()
                    remove(cluster, context, resource, kind, instance.key, options)
            if any(cluster.store.all_latest(name)):
                return
        definitions = cluster.registry.resource(CUSTOM_RESOURCE_DEFINITION)
        metadata = dict(stored.obj["metadata"])
        metadata["finalizers"] = [one for one in finalizers if one != CLEANUP]
        replace(cluster, definitions, stored, {**stored.obj, "metadata": metadata})

    def _forget_later(self) -> None:
        asyncio.get_running_loop().call_later(_FORGET_EVERY, self._forget)

    def _forget(self) -> None:
        store = self._cluster.store
        long_ago = self._cluster.world.now() - _EVENTS_LAST
        for stored in store.objects(EVENT.qualified):
            latest = store.latest(EVENT.qualified, stored.key)
            if latest is not None and _last_seen(latest.obj) < long_ago:
                store.remove(EVENT.qualified, stored.key)
        self._forget_later()


def _last_seen(event: Object) -> float:
    """When an event was last told; times that cannot be read do not count."""
    series = event.get("series") or {}
    said = (
        event["metadata"].get("creationTimestamp"),
        event.get("lastTimestamp"),
        event.get("eventTime"),
        series.get("lastObservedTime"),
    )
    latest = 0.0
    for text in said:
        try:
            latest = max(latest, parse_time(text or ""))
        except ValueError:
            continue
    return latest
