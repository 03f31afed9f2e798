"""Volumes, claims, classes, and what drivers of storage say."""

from __future__ import annotations

from posse.local.apiserver import statuses
from posse.local.apiserver.store import Object
from posse.local.apiserver.strategies.strategy import Context, Strategy, same
from posse.objects.kinds import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, STORAGE_CLASS, Kind
from posse.objects.quantity import QuantityError, milli_units
from posse.objects.raw import mapping, mappings
from posse.objects.times import rfc3339
from posse.objects.volumes import (
    CLAIM_PROTECTION,
    VOLUME_PROTECTION,
    class_of,
    default_class,
    names_class,
)

_UNBOUND = "Only bound persistent volume claims can be expanded"
_RIGID = (
    "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc"
    " must support resize"
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
        if names_class(obj):
            return
        classes = context.store.all_latest(STORAGE_CLASS.qualified)
        if (name := default_class(stored.obj for stored in classes)) is not None:
            obj["spec"]["storageClassName"] = name

    def admit_update(self, context: Context, kind: Kind, new: Object, old: Object) -> None:
        """A claim grows only where its class says that its volumes can."""
        if kind != PERSISTENT_VOLUME_CLAIM or _size(new) <= _size(old):
            return
        name = new["metadata"]["name"]
        if mapping(old, "status").get("phase") != "Bound":
            raise statuses.forbidden(kind, name, _UNBOUND)
        wanted = class_of(new)
        known = context.latest(STORAGE_CLASS, "", wanted) if wanted == class_of(old) else None
        if not wanted or known is None or known.get("allowVolumeExpansion") is not True:
            raise statuses.forbidden(kind, name, _RIGID)

    def prepare_create(self, context: Context, kind: Kind, obj: Object) -> None:
        if kind == PERSISTENT_VOLUME:
            now = rfc3339(context.world.now())
            obj["status"] = {**mapping(obj, "status"), _SINCE: now}

    def prepare_status(self, context: Context, kind: Kind, new: Object, old: Object) -> Object:
        result = super().prepare_status(context, kind, new, old)
        if kind == PERSISTENT_VOLUME:
            _stamp(context, result, old)
        return result


def _size(claim: Object) -> int:
    try:
        return milli_units(mapping(claim, "spec", "resources", "requests").get("storage") or 0, "")
    except QuantityError:
        return 0


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
