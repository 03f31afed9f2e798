"""Services with a selector get Endpoints and EndpointSlices that follow their pods."""

from __future__ import annotations

from collections.abc import Iterable

from posse.controllers.runtime import (
    Context,
    Controller,
    Key,
    Manifest,
    Watch,
    key_of,
    metadata_of,
    uid_of,
)
from posse.kube.errors import AlreadyExists, NotFound
from posse.local.core.addresses import SERVICE_NAME, endpoints_of, selects, slices_of
from posse.objects.kinds import ENDPOINT_SLICE, ENDPOINTS, POD, SERVICE, Kind
from posse.objects.raw import mapping
from posse.objects.validating.report import same

_WRITE_EVERY = 0.5  # seconds between two writes for one service, however many pods change


def endpoints_controller() -> Controller:
    books = _Books()
    return Controller(
        "endpoints",
        SERVICE,
        books.reconcile,
        watches=(
            Watch(POD, books.of_pod),
            Watch(ENDPOINTS, lambda obj: (key_of(obj),)),
            Watch(ENDPOINT_SLICE, _of_slice),
        ),
    )


def _of_slice(endpoint_slice: Manifest) -> Iterable[Key]:
    name = mapping(endpoint_slice, "metadata", "labels").get(SERVICE_NAME)
    if isinstance(name, str):
        yield (metadata_of(endpoint_slice)["namespace"], name)


class _Books:
    """Which services and pods concern each other, and when each service was last written.

    Made anew by a restart, since every service is looked at then. Services are found by one label
    of their selectors, so that a pod's change costs its labels, not the cluster's services.
    """

    def __init__(self) -> None:
        self._services: dict[Key, Manifest] = {}
        self._by_label: dict[tuple[str, str, str], dict[Key, None]] = {}
        self._pods: dict[Key, dict[Key, None]] = {}
        self._written: dict[Key, float] = {}

    def of_pod(self, pod: Manifest) -> Iterable[Key]:
        key = key_of(pod)
        found = []
        for name, value in mapping(pod, "metadata", "labels").items():
            for service in self._by_label.get((key[0], name, value), ()):
                if selects(self._services[service], pod):
                    self._pods[service][key] = None
                    found.append(service)
        return found

    async def reconcile(self, context: Context, key: Key) -> float | None:
        service = context.get(SERVICE, key)
        if service is None:
            await self._end(context, key)
            return None
        self._learn(context, key, service)
        if key not in self._services or metadata_of(service).get("deletionTimestamp"):
            return None
        wait = self._written.get(key, 0.0) + _WRITE_EVERY - context.world.monotonic()
        if key in self._written and wait > 0:
            return wait
        pods = self._pods_of(context, key, service)
        wrote = await _write(context, ENDPOINTS, endpoints_of(service, pods))
        slices = slices_of(service, pods)
        for wanted in slices:
            wrote = await _write(context, ENDPOINT_SLICE, wanted) or wrote
        await _drop_surplus(context, service, [metadata_of(one)["name"] for one in slices])
        if wrote:
            self._written[key] = context.world.monotonic()
        return None

    def _learn(self, context: Context, key: Key, service: Manifest) -> None:
        """Remembers the service; a new or changed selector means a look at all pods."""
        selector = mapping(service, "spec", "selector")
        known = self._services.get(key)
        if known is not None and mapping(known, "spec", "selector") == selector:
            self._services[key] = service
            return
        self._forget(key)
        if not selector:
            return
        name = min(selector)
        self._by_label.setdefault((key[0], name, selector[name]), {})[key] = None
        self._services[key] = service
        self._pods[key] = {
            key_of(pod): None
            for pod in context.all(POD)
            if metadata_of(pod)["namespace"] == key[0] and selects(service, pod)
        }

    def _forget(self, key: Key) -> Manifest | None:
        known = self._services.pop(key, None)
        if known is not None:
            selector = mapping(known, "spec", "selector")
            label = (key[0], min(selector), selector[min(selector)])
            self._by_label[label].pop(key)
            if not self._by_label[label]:
                del self._by_label[label]
            del self._pods[key]
        return known

    def _pods_of(self, context: Context, key: Key, service: Manifest) -> list[Manifest]:
        found = {pod_key: context.get(POD, pod_key) for pod_key in self._pods[key]}
        pods = {at: pod for at, pod in found.items() if pod is not None and selects(service, pod)}
        self._pods[key] = dict.fromkeys(pods)
        return list(pods.values())

    async def _end(self, context: Context, key: Key) -> None:
        """Slices go by their owner; Endpoints have none, and go with the service's name."""
        known = self._forget(key)
        self._written.pop(key, None)
        present = context.get(ENDPOINTS, key)
        if present is not None and (known is not None or _is_managed(present)):
            try:
                await context.connection.delete(ENDPOINTS, key[1], key[0], uid=uid_of(present))
            except NotFound:
                return


def _is_managed(endpoints: Manifest) -> bool:
    return "endpoints.kubernetes.io/managed-by" in mapping(endpoints, "metadata", "labels")


async def _write(context: Context, kind: Kind, wanted: Manifest) -> bool:
    """Makes the object what it should be; whether that took a write."""
    metadata = metadata_of(wanted)
    key = (metadata["namespace"], metadata["name"])
    present = context.get(kind, key)
    if present is None:
        try:
            await context.connection.create(kind, wanted, key[0])
        except AlreadyExists:  # the cache is behind; its next event brings us back
            return True
        return True
    parts = [part for part in wanted if part not in ("kind", "apiVersion", "metadata")]
    labels = metadata_of(present).get("labels")
    if same(labels, metadata["labels"]) and all(
        same(present.get(part), wanted[part]) for part in parts
    ):
        return False
    changed = {**present, **{part: wanted[part] for part in parts}}
    changed["metadata"] = {**metadata_of(present), "labels": metadata["labels"]}
    context.wrote(kind, present, await context.connection.replace(kind, changed))
    return True


async def _drop_surplus(context: Context, service: Manifest, kept: list[str]) -> None:
    for present in context.all(ENDPOINT_SLICE):
        metadata = metadata_of(present)
        owners = [owner.get("uid") for owner in metadata.get("ownerReferences") or []]
        if uid_of(service) in owners and metadata["name"] not in kept:
            try:
                await context.connection.delete(
                    ENDPOINT_SLICE, metadata["name"], metadata["namespace"], uid=uid_of(present)
                )
            except NotFound:
                continue
