"""Claims are bound to volumes that exist; nothing here makes a volume.

A volume is promised before the claim learns of it (`claimRef` first, then the claim's
`volumeName`), so that a stop in between leaves a promise to keep, never a volume given twice.
"""

from __future__ import annotations

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
from posse.objects.kinds import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM
from posse.objects.quantity import QuantityError, parse
from posse.objects.raw import mapping, text, texts
from posse.objects.validating.placement import selects

_BOUND_BY = "pv.kubernetes.io/bound-by-controller"
_COMPLETED = "pv.kubernetes.io/bind-completed"
_NONE = "no persistent volumes available for this claim and no storage class is set"
_NO_CLASS = 'storageclass.storage.k8s.io "{}" not found'


def claim_controller() -> Controller:
    waiting = _Waiting()
    return Controller(
        "claim",
        PERSISTENT_VOLUME_CLAIM,
        waiting.reconcile,
        watches=(Watch(PERSISTENT_VOLUME, waiting.of_volume),),
        workers=1,
    )


def volume_controller() -> Controller:
    return Controller(
        "volume",
        PERSISTENT_VOLUME,
        _reconcile_volume,
        watches=(Watch(PERSISTENT_VOLUME_CLAIM, _volume_of),),
    )


def _volume_of(claim: Manifest) -> list[Key]:
    name = text(mapping(claim, "spec"), "volumeName")
    return [("", name)] if name else []


def _claimed(volume: Manifest) -> Key | None:
    reference = mapping(volume, "spec", "claimRef")
    return (text(reference, "namespace"), text(reference, "name")) if reference else None


class _Waiting:
    """The claims for which there is no volume yet: a change of any volume is for them to see."""

    def __init__(self) -> None:
        self._claims: dict[Key, None] = {}

    def of_volume(self, volume: Manifest) -> list[Key]:
        claim = _claimed(volume)
        return [claim] if claim is not None else list(self._claims)

    async def reconcile(self, context: Context, key: Key) -> float | None:
        self._claims.pop(key, None)
        claim = context.get(PERSISTENT_VOLUME_CLAIM, key)
        if claim is None or metadata_of(claim).get("deletionTimestamp"):
            return None
        name = text(mapping(claim, "spec"), "volumeName")
        if name:
            volume = context.get(PERSISTENT_VOLUME, ("", name))
        else:
            volume = _choose(claim, context.all(PERSISTENT_VOLUME))
        if volume is not None and _claimed(volume) in (None, key):
            await _bind(context, claim, volume)
            return None
        self._claims[key] = None
        if not name:
            _say_why(context, claim)
        elif volume is None and text(mapping(claim, "status"), "phase") == "Bound":
            await _set_claim(context, claim, {"phase": "Lost"})
        return None


def _say_why(context: Context, claim: Manifest) -> None:
    name = text(mapping(claim, "spec"), "storageClassName")
    if name:
        reason, message = "ProvisioningFailed", _NO_CLASS.format(name)
    else:
        reason, message = "FailedBinding", _NONE
    context.recorder.record(
        claim, reason, message, kind=PERSISTENT_VOLUME_CLAIM, warning=bool(name)
    )


async def _bind(context: Context, claim: Manifest, volume: Manifest) -> None:
    connection, (namespace, name) = context.connection, key_of(claim)
    reference = mapping(volume, "spec", "claimRef")
    if text(reference, "uid") != uid_of(claim):
        changed = {
            "metadata": {"resourceVersion": metadata_of(volume)["resourceVersion"]},
            "spec": {
                "claimRef": {
                    "kind": PERSISTENT_VOLUME_CLAIM.kind,
                    "apiVersion": PERSISTENT_VOLUME_CLAIM.api_version,
                    "namespace": namespace,
                    "name": name,
                    "uid": uid_of(claim),
                }
            },
        }
        if not reference:
            changed["metadata"]["annotations"] = {_BOUND_BY: "yes"}
        answer = await connection.patch(PERSISTENT_VOLUME, metadata_of(volume)["name"], changed)
        context.wrote(PERSISTENT_VOLUME, volume, answer)
        volume = answer
    if text(mapping(claim, "spec"), "volumeName") != metadata_of(volume)["name"]:
        annotations = {_COMPLETED: "yes", _BOUND_BY: "yes"}
        answer = await connection.patch(
            PERSISTENT_VOLUME_CLAIM,
            name,
            {
                "metadata": {
                    "resourceVersion": metadata_of(claim)["resourceVersion"],
                    "annotations": annotations,
                },
                "spec": {"volumeName": metadata_of(volume)["name"]},
            },
            namespace,
        )
        context.wrote(PERSISTENT_VOLUME_CLAIM, claim, answer)
        claim = answer
    spec = mapping(volume, "spec")
    granted = {
        "phase": "Bound",
        "accessModes": spec.get("accessModes"),
        "capacity": spec.get("capacity"),
    }
    await _set_claim(context, claim, granted)


async def _set_claim(context: Context, claim: Manifest, status: Manifest) -> None:
    if all(mapping(claim, "status").get(name) == value for name, value in status.items()):
        return
    namespace, name = key_of(claim)
    answer = await context.connection.patch(
        PERSISTENT_VOLUME_CLAIM, name, {"status": status}, namespace, subresource="status"
    )
    context.wrote(PERSISTENT_VOLUME_CLAIM, claim, answer)


async def _reconcile_volume(context: Context, key: Key) -> float | None:
    volume = context.get(PERSISTENT_VOLUME, key)
    if volume is None or metadata_of(volume).get("deletionTimestamp"):
        return None
    phase = _phase(context, volume)
    if text(mapping(volume, "status"), "phase") != phase:
        answer = await context.connection.patch(
            PERSISTENT_VOLUME, key[1], {"status": {"phase": phase}}, subresource="status"
        )
        context.wrote(PERSISTENT_VOLUME, volume, answer)
    return None


def _phase(context: Context, volume: Manifest) -> str:
    """A volume whose claim went away is not given to the next one: its data may matter."""
    claimed, uid = _claimed(volume), text(mapping(volume, "spec", "claimRef"), "uid")
    if claimed is None or not uid:
        return "Available"
    claim = context.get(PERSISTENT_VOLUME_CLAIM, claimed)
    return "Bound" if claim is not None and uid_of(claim) == uid else "Released"


def _choose(claim: Manifest, volumes: list[Manifest]) -> Manifest | None:
    """The volume promised to the claim, else the smallest that will do."""
    fitting = []
    for volume in volumes:
        reference = mapping(volume, "spec", "claimRef")
        if reference:
            if _claimed(volume) == key_of(claim) and text(reference, "uid") in ("", uid_of(claim)):
                return volume
        elif _fits(claim, volume) and not metadata_of(volume).get("deletionTimestamp"):
            fitting.append(volume)
    return min(fitting, key=lambda one: (_storage(one, "capacity"), key_of(one)), default=None)


def _fits(claim: Manifest, volume: Manifest) -> bool:
    asked, offered = mapping(claim, "spec"), mapping(volume, "spec")
    labels = mapping(volume, "metadata", "labels")
    return (
        text(asked, "storageClassName") == text(offered, "storageClassName")
        and asked.get("volumeMode") == offered.get("volumeMode")
        and all(mode in texts(offered, "accessModes") for mode in texts(asked, "accessModes"))
        and _storage(volume, "capacity") >= _storage(claim, "resources", "requests")
        and ("selector" not in asked or selects(mapping(asked, "selector"), labels))
    )


def _storage(obj: Manifest, *path: str) -> int:
    try:
        return parse(mapping(obj, "spec", *path).get("storage") or "0").nano
    except QuantityError:
        return 0
