"""Volumes, claims, classes, and what drivers of storage say."""

from __future__ import annotations

from posse.local.apiserver.store import Object
from posse.local.apiserver.strategies.strategy import Context, Strategy, same
from posse.objects.kinds import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, STORAGE_CLASS, Kind
from posse.objects.raw import mapping, mappings
from posse.objects.times import parse_time, rfc3339
from posse.objects.volumes import (
    CLAIM_PROTECTION,
    CLASS_ANNOTATION,
    VOLUME_PROTECTION,
    is_default,
)

_SINCE = "lastPhaseTransitionTime"
_TOKENS = (
    "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to"
    " prevent possible logging of tokens in volume attributes"
)


class Storage(Strategy):
    """Volumes and claims."""

    status_apart = True
    returns_deleted = True

    def admit(self, context: Context, kind: Kind, obj: Object) -> None:
        """A claim that names no class gets the default one; an empty name is a name."""
        _protect(kind, obj["metadata"])
        if kind != PERSISTENT_VOLUME_CLAIM:
            return
        annotations = mapping(obj, "metadata", "annotations")
        if "storageClassName" in obj["spec"] or CLASS_ANNOTATION in annotations:
            return
        if (name := _default_class(context)) is not None:
            obj["spec"]["storageClassName"] = name

    def prepare_create(self, context: Context, kind: Kind, obj: Object) -> None:
        if kind == PERSISTENT_VOLUME:
            now = rfc3339(context.world.now())
            obj["status"] = {**mapping(obj, "status"), _SINCE: now}

    def prepare_status(self, context: Context, kind: Kind, new: Object, old: Object) -> Object:
        result = super().prepare_status(context, kind, new, old)
        if kind == PERSISTENT_VOLUME:
            _stamp(context, result, old)
        return result


def _stamp(context: Context, new: Object, old: Object) -> None:
    """Since when the volume is in its phase; whoever writes another time is believed."""
    after, before = mapping(new, "status"), mapping(old, "status")
    unsaid = after.get(_SINCE) in (None, before.get(_SINCE))
    if after.get("phase") == before.get("phase"):
        if after.get(_SINCE) is None and before.get(_SINCE) is not None:
            new["status"] = {**after, _SINCE: before[_SINCE]}
    elif unsaid:
        new["status"] = {**after, _SINCE: rfc3339(context.world.now())}


def _protect(kind: Kind, metadata: Object) -> None:
    """What is in use outlives its deletion; core's controllers say when it is not any more."""
    finalizer = CLAIM_PROTECTION if kind == PERSISTENT_VOLUME_CLAIM else VOLUME_PROTECTION
    finalizers = list(metadata.get("finalizers") or [])
    if finalizer not in finalizers:
        metadata["finalizers"] = [*finalizers, finalizer]


def _default_class(context: Context) -> str | None:
    """The youngest of those that say they are it; of several of one second, the first by name."""
    found = [
        stored.obj["metadata"]
        for stored in context.store.all_latest(STORAGE_CLASS.qualified)
        if is_default(stored.obj)
    ]
    ordered = sorted(found, key=lambda one: (-parse_time(one["creationTimestamp"]), one["name"]))
    return str(ordered[0]["name"]) if ordered else None


class Classes(Strategy):
    returns_deleted = True


class Capacities(Strategy):
    """What drivers say is for nobody to overwrite unseen."""

    unconditional_update = False


class DriversOfNodes(Capacities):
    returns_deleted = True


class Drivers(DriversOfNodes):
    def admit(self, context: Context, kind: Kind, obj: Object) -> None:
        if not self.validate_create(kind, obj):
            self._warn(context, obj)

    def prepare_update(self, context: Context, kind: Kind, new: Object, old: Object) -> None:
        after, before = mapping(new, "spec"), mapping(old, "spec")
        if not same(after, before):
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
        changed = not same(after.get("tokenRequests"), before.get("tokenRequests"))
        if changed and not self.validate_update(kind, new, old):
            self._warn(context, new)

    def _warn(self, context: Context, driver: Object) -> None:
        spec = mapping(driver, "spec")
        if mappings(spec, "tokenRequests") and spec.get("serviceAccountTokenInSecrets") is None:
            context.warnings.append(_TOKENS)
