"""Which resources are served: the built-in ones, and those of established definitions."""

from __future__ import annotations

import logging
from typing import Any

from posse.local.apiserver.discovery import Served, Subresource
from posse.local.apiserver.openapi import Described
from posse.local.apiserver.store import Event, Object, Store
from posse.local.apiserver.strategies import definitions
from posse.local.apiserver.strategies.definitions import Definitions
from posse.local.apiserver.strategies.instances import Instances
from posse.local.apiserver.strategies.namespaces import Namespaces
from posse.local.apiserver.strategies.pods import Pods
from posse.local.apiserver.strategies.services import Services
from posse.local.apiserver.strategies.storage import (
    Capacities,
    Classes,
    Drivers,
    DriversOfNodes,
    Storage,
)
from posse.local.apiserver.strategies.strategy import Strategy
from posse.local.apiserver.strategies.workloads import (
    Budgets,
    Jobs,
    Leases,
    Nodes,
    Plain,
    PriorityClasses,
    Put,
    Quotas,
    Returned,
    Slices,
    Workloads,
)
from posse.local.apiserver.tables import Column, columns_of
from posse.objects import kinds
from posse.objects.kinds import BINDING, CUSTOM_RESOURCE_DEFINITION, EVICTION, SCALE, Kind
from posse.objects.raw import mapping, text
from posse.objects.schemas.structural import SchemaError

log = logging.getLogger(__name__)

_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_PART_VERBS = ("get", "patch", "update")

_STRATEGIES: dict[Kind, Strategy] = {
    kinds.NAMESPACE: Namespaces(),
    kinds.NODE: Nodes(),
    kinds.POD: Pods(),
    kinds.SERVICE: Services(),
    kinds.SERVICE_ACCOUNT: Returned(),
    kinds.RESOURCE_QUOTA: Quotas(),
    kinds.JOB: Jobs(),
    kinds.DEPLOYMENT: Workloads(),
    kinds.REPLICA_SET: Workloads(),
    kinds.PRIORITY_CLASS: PriorityClasses(),
    kinds.POD_DISRUPTION_BUDGET: Budgets(),
    kinds.LEASE: Leases(),
    kinds.EVENT: Put(),
    kinds.LIMIT_RANGE: Put(),
    kinds.ROLE: Put(),
    kinds.ROLE_BINDING: Put(),
    kinds.CLUSTER_ROLE: Put(),
    kinds.CLUSTER_ROLE_BINDING: Put(),
    kinds.ENDPOINTS: Put(),
    kinds.ENDPOINT_SLICE: Slices(),
    kinds.PERSISTENT_VOLUME: Storage(),
    kinds.PERSISTENT_VOLUME_CLAIM: Storage(),
    kinds.STORAGE_CLASS: Classes(),
    kinds.CSI_NODE: DriversOfNodes(),
    kinds.CSI_DRIVER: Drivers(),
    kinds.CSI_STORAGE_CAPACITY: Capacities(),
    kinds.CUSTOM_RESOURCE_DEFINITION: Definitions(),
}
_PARTS: dict[Kind, tuple[Subresource, ...]] = {
    kinds.POD: (
        Subresource("binding", BINDING, ("create",)),
        Subresource("eviction", EVICTION, ("create",)),
        Subresource("log", kinds.POD, ("get",)),
    ),
    kinds.NAMESPACE: (Subresource("finalize", kinds.NAMESPACE, ("update",)),),
}


class Resource:
    """One collection of objects; `kinds` are the versions in which it is served."""

    def __init__(self, storage: Kind, versions: list[Kind], strategy: Strategy) -> None:
        self.name = storage.qualified
        self.storage = storage
        self.kinds = {kind.version: kind for kind in versions}
        self.strategy = strategy
        self.columns: dict[str, list[Column] | None] = {}
        self.schemas: dict[str, dict[str, Any]] = {}
        self.custom = False
        self.verbs: tuple[str, ...] = _VERBS
        if storage == kinds.NAMESPACE:
            self.verbs = tuple(verb for verb in _VERBS if verb != "deletecollection")

    def parts(self, kind: Kind) -> tuple[Subresource, ...]:
        status = (
            (Subresource("status", kind, _PART_VERBS),) if self.strategy.has_status(kind) else ()
        )
        scaling = self.strategy.scaling(kind)
        scale = (Subresource("scale", SCALE, _PART_VERBS),) if scaling is not None else ()
        return (*_PARTS.get(kind, ()), *scale, *status)

    def served(self) -> list[Served]:
        return [Served(kind, self.verbs, self.parts(kind)) for kind in self.kinds.values()]


class Registry:
    """Follows the published definitions, so that what is answered for is what discovery says."""

    def __init__(self, store: Store) -> None:
        self._resources: dict[tuple[str, str], Resource] = {}
        self.generation = 0
        """Grows when anything here changes: documents made of it are kept until then."""
        for kind in kinds.BUILT_IN:
            self._add(Resource(kind, [kind], _STRATEGIES.get(kind, _PLAIN)))
        for stored in store.objects(CUSTOM_RESOURCE_DEFINITION.qualified):
            self._follow(stored.obj)
        store.subscribe(CUSTOM_RESOURCE_DEFINITION.qualified, self._on_change)

    def find(self, group: str, version: str, plural: str) -> tuple[Resource, Kind] | None:
        resource = self._resources.get((group, plural))
        if resource is None or (kind := resource.kinds.get(version)) is None:
            return None
        return resource, kind

    def resource(self, kind: Kind) -> Resource:
        return self._resources[(kind.group, kind.plural)]

    def custom(self, definition: Object) -> Resource | None:
        """The resource of a definition, if it is served."""
        spec = definition["spec"]
        return self._resources.get((spec["group"], spec["names"]["plural"]))

    def resources(self) -> list[Resource]:
        return list(self._resources.values())

    def served(self) -> list[Served]:
        answered = [Served(kind, ("create",)) for kind in (BINDING, *kinds.REVIEWS)]
        return [*answered, *(one for resource in self.resources() for one in resource.served())]

    def described(self) -> list[Described]:
        """The same with the schema of each, for the OpenAPI documents."""
        return [
            Described(one, resource.schemas.get(one.kind.version))
            for resource in self.resources()
            for one in resource.served()
        ]

    def _add(self, resource: Resource) -> None:
        self._resources[(resource.storage.group, resource.storage.plural)] = resource
        self.generation += 1

    def _on_change(self, event: Event) -> None:
        definition = event.stored.obj
        if event.deleted:
            spec = definition["spec"]
            key = (spec["group"], spec["names"]["plural"])
            if key in self._resources and self._resources[key].custom:
                del self._resources[key]
                self.generation += 1
            return
        previous = event.previous
        if previous is not None and previous.obj["spec"] == definition["spec"]:
            was = definitions.is_established(previous.obj)
            if was == definitions.is_established(definition):
                return
        self._follow(definition)

    def _follow(self, definition: Object) -> None:
        """Serves the definition as it is now; one that cannot be read serves nothing."""
        if not definitions.is_established(definition):
            return
        try:
            resource = _of_definition(definition)
        except (SchemaError, KeyError, ValueError):
            log.exception("definition %s cannot be served", definition["metadata"]["name"])
            return
        known = self._resources.get((resource.storage.group, resource.storage.plural))
        if known is None or known.custom:
            self._add(resource)


_PLAIN = Plain()


def _of_definition(definition: Object) -> Resource:
    spec = definition["spec"]
    called = mapping(definition, "status", "acceptedNames") or spec["names"]
    versions = {
        version["name"]: Kind(
            group=spec["group"],
            version=version["name"],
            kind=called["kind"],
            plural=called["plural"],
            namespaced=spec["scope"] == "Namespaced",
            short_names=tuple(called.get("shortNames") or ()),
            categories=tuple(called.get("categories") or ()),
        )
        for version in spec["versions"]
    }
    storage = next(version["name"] for version in spec["versions"] if version.get("storage"))
    served = [versions[version["name"]] for version in spec["versions"] if version.get("served")]
    resource = Resource(versions[storage], served, Instances(definition))
    resource.custom = True
    for version in spec["versions"]:
        name = text(version, "name")
        resource.columns[name] = columns_of(version)
        resource.schemas[name] = mapping(version, "schema", "openAPIV3Schema")
    return resource
