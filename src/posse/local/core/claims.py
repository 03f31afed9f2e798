"""Claims are bound to volumes that exist; nothing here makes a volume.

Claims of a class that waits for its first consumer are left to the scheduler, which promises them
a volume or gives them a node; what is promised is bound here like any other promise.

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
from posse.local.core.claim_users import Users
from posse.local.core.protecting import let_go
from posse.local.core.volume_choice import choose, claimed
from posse.objects.kinds import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, POD, STORAGE_CLASS
from posse.objects.raw import mapping, text
from posse.objects.volumes import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    CLAIM_PROTECTION,
    SELECTED_NODE,
    VOLUME_PROTECTION,
    WAIT_FOR_FIRST_CONSUMER,
    class_of,
    default_class,
    names_class,
)

_PROVISIONERS = (
    "volume.beta.kubernetes.io/storage-provisioner",
    "volume.kubernetes.io/storage-provisioner",
)
_IN_TREE = "kubernetes.io/"
_FIRST_CONSUMER = "waiting for first consumer to be created before binding"
_EXTERNAL = (
    "Waiting for a volume to be created either by the external provisioner '{}' or manually by the"
    " system administrator. If volume creation is delayed, please verify that the provisioner is"
    " running and correctly registered."
)
_NONE = "no persistent volumes available for this claim and no storage class is set"
_NO_CLASS = 'storageclass.storage.k8s.io "{}" not found'


def claim_controller() -> Controller:
    waiting = _Waiting()
    return Controller(
        "claim",
        PERSISTENT_VOLUME_CLAIM,
        waiting.reconcile,
        watches=(
            Watch(PERSISTENT_VOLUME, waiting.of_volume),
            Watch(STORAGE_CLASS, waiting.of_class),
            Watch(POD, waiting.of_pod),
        ),
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


class _Waiting:
    """The claims for which there is no volume yet: a change of any volume is for them to see."""

    def __init__(self) -> None:
        self._claims: dict[Key, None] = {}
        self._users = Users()

    def of_volume(self, volume: Manifest) -> list[Key]:
        claim = claimed(volume)
        return [claim] if claim is not None else list(self._claims)

    def of_class(self, storage_class: Manifest) -> list[Key]:
        return list(self._claims)

    def of_pod(self, pod: Manifest) -> list[Key]:
        return self._users.of_pod(pod)

    async def reconcile(self, context: Context, key: Key) -> float | None:
        self._claims.pop(key, None)
        claim = context.get(PERSISTENT_VOLUME_CLAIM, key)
        if claim is None:
            await self._users.make(context, key)
            return None
        if metadata_of(claim).get("deletionTimestamp"):
            if not self._users.using(context, key):
                await let_go(context, PERSISTENT_VOLUME_CLAIM, claim, CLAIM_PROTECTION)
            return None
        name = text(mapping(claim, "spec"), "volumeName")
        storage_class = context.get(STORAGE_CLASS, ("", class_of(claim)))
        if name:
            volume = context.get(PERSISTENT_VOLUME, ("", name))
        else:
            volumes = context.all(PERSISTENT_VOLUME)
            volume = choose(claim, volumes, waits=_waits(storage_class))
        if volume is not None and claimed(volume) in (None, key):
            await _bind(context, claim, volume)
            return None
        self._claims[key] = None
        if not name:
            await self._provide(context, claim, storage_class)
        elif volume is None and text(mapping(claim, "status"), "phase") == "Bound":
            await _set_claim(context, claim, {"phase": "Lost"})
        return None

    async def _provide(
        self, context: Context, claim: Manifest, storage_class: Manifest | None
    ) -> None:
        """Says what the claim waits for; whoever makes volumes of its class is asked to."""
        if not names_class(claim) and (name := default_class(context.all(STORAGE_CLASS))):
            await _classify(context, claim, name)
            return
        annotations = mapping(claim, "metadata", "annotations")
        if _waits(storage_class) and SELECTED_NODE not in annotations:
            pods = self._users.unplaced(context, key_of(claim))
            reason, message = "WaitForFirstConsumer", _FIRST_CONSUMER
            if pods:
                reason = "WaitForPodScheduled"
                message = f"waiting for pod{'s' * (len(pods) > 1)} {','.join(pods)} to be scheduled"
            _tell(context, claim, reason, message)
        elif not class_of(claim):
            _tell(context, claim, "FailedBinding", _NONE)
        elif storage_class is None:
            message = _NO_CLASS.format(class_of(claim))
            _tell(context, claim, "ProvisioningFailed", message, warning=True)
        else:
            await _ask(context, claim, text(storage_class, "provisioner"))


def _waits(storage_class: Manifest | None) -> bool:
    return text(storage_class, "volumeBindingMode") == WAIT_FOR_FIRST_CONSUMER


async def _classify(context: Context, claim: Manifest, name: str) -> None:
    """A default that came later than the claim counts for it as well; its change wakes us."""
    metadata = metadata_of(claim)
    changed = {
        "metadata": {"resourceVersion": metadata["resourceVersion"]},
        "spec": {"storageClassName": name},
    }
    answer = await context.connection.patch(
        PERSISTENT_VOLUME_CLAIM, metadata["name"], changed, metadata["namespace"]
    )
    context.wrote(PERSISTENT_VOLUME_CLAIM, claim, answer)


async def _ask(context: Context, claim: Manifest, provisioner: str) -> None:
    """External provisioners look for claims that carry their name."""
    if provisioner.startswith(_IN_TREE):
        message = f"no volume plugin matched name: {provisioner}"
        _tell(context, claim, "ProvisioningFailed", message, warning=True)
        return
    annotations = dict.fromkeys(_PROVISIONERS, provisioner)
    present = mapping(claim, "metadata", "annotations")
    if any(present.get(name) != provisioner for name in annotations):
        metadata = metadata_of(claim)
        changed = {"resourceVersion": metadata["resourceVersion"], "annotations": annotations}
        answer = await context.connection.patch(
            PERSISTENT_VOLUME_CLAIM, metadata["name"], {"metadata": changed}, metadata["namespace"]
        )
        context.wrote(PERSISTENT_VOLUME_CLAIM, claim, answer)
    _tell(context, claim, "ExternalProvisioning", _EXTERNAL.format(provisioner))


def _tell(
    context: Context, claim: Manifest, reason: str, message: str, *, warning: bool = False
) -> None:
    context.recorder.record(claim, reason, message, kind=PERSISTENT_VOLUME_CLAIM, warning=warning)


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
            changed["metadata"]["annotations"] = {BOUND_BY_CONTROLLER: "yes"}
        answer = await connection.patch(PERSISTENT_VOLUME, metadata_of(volume)["name"], changed)
        context.wrote(PERSISTENT_VOLUME, volume, answer)
        volume = answer
    if text(mapping(claim, "spec"), "volumeName") != metadata_of(volume)["name"]:
        annotations = {BIND_COMPLETED: "yes", BOUND_BY_CONTROLLER: "yes"}
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
    if volume is None:
        return None
    phase = _phase(context, volume)
    if text(mapping(volume, "status"), "phase") != phase:
        answer = await context.connection.patch(
            PERSISTENT_VOLUME, key[1], {"status": {"phase": phase}}, subresource="status"
        )
        context.wrote(PERSISTENT_VOLUME, volume, answer)
        volume = answer
    if phase != "Bound" and metadata_of(volume).get("deletionTimestamp"):
        await let_go(context, PERSISTENT_VOLUME, volume, VOLUME_PROTECTION)
    return None


def _phase(context: Context, volume: Manifest) -> str:
    """A volume whose claim went away is not given to the next one: its data may matter."""
    holder, uid = claimed(volume), text(mapping(volume, "spec", "claimRef"), "uid")
    if holder is None or not uid:
        return "Available"
    claim = context.get(PERSISTENT_VOLUME_CLAIM, holder)
    return "Bound" if claim is not None and uid_of(claim) == uid else "Released"
