"""What the server does of its own accord when objects change.

Two things: the status of ResourceQuotas follows what their namespaces hold, and a definition that
is being deleted takes its objects with it. Both look at the whole state each time, one step after
the change, so that many changes cost one look and a restart needs no memory of what was pending.
"""

from __future__ import annotations

import asyncio
import logging

from posse.local.apiserver.cluster import Cluster
from posse.local.apiserver.deleting import DeleteOptions, remove
from posse.local.apiserver.statuses import Refusal
from posse.local.apiserver.store import Event
from posse.local.apiserver.strategies import quotas
from posse.local.apiserver.strategies.definitions import CLEANUP, is_terminating
from posse.local.apiserver.writing import replace
from posse.objects.kinds import CUSTOM_RESOURCE_DEFINITION, RESOURCE_QUOTA

log = logging.getLogger(__name__)


class Upkeep:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._namespaces: dict[str, None] = {}
        self._definitions: dict[str, None] = {}
        self._due = False

    def start(self) -> None:
        store = self._cluster.store
        store.follow(self._on_change)
        for quota in store.objects(RESOURCE_QUOTA.qualified):
            self._namespaces[quota.key[0]] = None
        for definition in store.objects(CUSTOM_RESOURCE_DEFINITION.qualified):
            self._definitions[definition.key[1]] = None
        self._schedule()

    def _on_change(self, resource: str, event: Event) -> None:
        namespace = event.stored.key[0]
        if namespace and self._has_quota(namespace):
            self._namespaces[namespace] = None
            self._schedule()
        if resource == CUSTOM_RESOURCE_DEFINITION.qualified:
            self._definitions[event.stored.key[1]] = None
            self._schedule()
        elif event.deleted:
            # A custom resource's name in the store is the name of its definition.
            key = ("", resource)
            if self._cluster.store.get(CUSTOM_RESOURCE_DEFINITION.qualified, key) is not None:
                self._definitions[resource] = None
                self._schedule()

    def _has_quota(self, namespace: str) -> bool:
        return any(self._cluster.store.all_latest(RESOURCE_QUOTA.qualified, namespace))

    def _schedule(self) -> None:
        if not self._due and (self._namespaces or self._definitions):
            self._due = True
            asyncio.get_running_loop().call_soon(self._look)

    def _look(self) -> None:
        self._due = False
        namespaces, self._namespaces = self._namespaces, {}
        definitions, self._definitions = self._definitions, {}
        for namespace in namespaces:
            self._count(namespace)
        for name in definitions:
            self._empty(name)

    def _count(self, namespace: str) -> None:
        cluster = self._cluster
        resource = cluster.registry.resource(RESOURCE_QUOTA)
        for stored in list(cluster.store.all_latest(RESOURCE_QUOTA.qualified, namespace)):
            status = quotas.status_of(cluster.store, stored.obj)
            if stored.obj.get("status") != status:
                replace(cluster, resource, stored, {**stored.obj, "status": status})

    def _empty(self, name: str) -> None:
        """Deletes the objects of an ending definition; lets the definition go after the last."""
        cluster = self._cluster
        stored = cluster.store.latest(CUSTOM_RESOURCE_DEFINITION.qualified, ("", name))
        if stored is None or not is_terminating(stored.obj):
            return
        finalizers = stored.obj["metadata"].get("finalizers") or []
        if CLEANUP not in finalizers:
            return
        resource = cluster.registry.custom(stored.obj)
        instances = list(cluster.store.all_latest(name)) if resource is not None else []
        for instance in instances:
            if instance.obj["metadata"].get("deletionTimestamp") is None:
                options = DeleteOptions(policy="Background")
                try:
                    assert resource is not None
                    kind = resource.storage
                    remove(cluster, cluster.context(), resource, kind, instance.key, options)
                except Refusal:
                    log.exception("%s %s cannot be deleted", name, instance.key)
        if not any(cluster.store.all_latest(name)):
            definitions = cluster.registry.resource(CUSTOM_RESOURCE_DEFINITION)
            metadata = dict(stored.obj["metadata"])
            metadata["finalizers"] = [one for one in finalizers if one != CLEANUP]
            replace(cluster, definitions, stored, {**stored.obj, "metadata": metadata})
