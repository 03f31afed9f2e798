"""apps/v1 Deployments: one ReplicaSet per template, the newest taking over from the others."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import msgspec

from posse.controllers.runtime import (
    Context,
    Controller,
    Key,
    Manifest,
    create_owned,
    delete_exactly,
    metadata_of,
    owner_reference,
    uid_of,
)
from posse.local.core.deployment_status import count_of, replicas_of, report
from posse.local.core.pods import wall
from posse.local.core.rollouts import Replicas, bounds, recreating, rolling
from posse.objects.kinds import DEPLOYMENT, POD, REPLICA_SET

HASH_LABEL = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
LOOK_AGAIN = 1.0
DEFAULT_HISTORY = 10
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


def deployment_controller() -> Controller:
    return Controller("deployment", DEPLOYMENT, _reconcile, owns=(REPLICA_SET,), reads=(POD,))


async def _reconcile(context: Context, key: Key) -> float | None:
    deployment = context.get(DEPLOYMENT, key)
    if deployment is None or metadata_of(deployment).get("deletionTimestamp"):
        return None
    owned = sorted(context.owned(REPLICA_SET, uid_of(deployment)), key=_age)
    sets = [each for each in owned if not metadata_of(each).get("deletionTimestamp")]
    current = next((each for each in sets if _same_template(deployment, each)), None)
    paused = bool(deployment["spec"].get("paused"))
    if current is None and not paused:
        current = await _create(context, deployment, sets)
        if uid_of(current) not in [uid_of(each) for each in sets]:
            sets.append(current)
    elif current is not None:
        await _number(context, deployment, current, sets)
    waiting = False
    if not paused and current is not None:
        waiting = await _roll(context, deployment, current, sets)
        await _forget_history(context, deployment, current, sets)
    wake = await report(context, deployment, current, sets)
    return LOOK_AGAIN if waiting else wake


async def _roll(
    context: Context, deployment: Manifest, current: Manifest, sets: list[Manifest]
) -> bool:
    """Resize what has to change; True while old pods are waited for that wake nobody."""
    spec = deployment["spec"]
    wanted = replicas_of(deployment)
    new = _measure(context, current)
    old = [_measure(context, each) for each in sets if uid_of(each) != uid_of(current)]
    strategy = spec.get("strategy") or {}
    if strategy.get("type") == "Recreate":
        sizes = recreating(wanted, new, old)
        waiting = not sizes and new.asked != wanted
    else:
        limits = strategy.get("rollingUpdate") or {}
        surge, unavailable = bounds(
            wanted, limits.get("maxSurge", "25%"), limits.get("maxUnavailable", "25%")
        )
        sizes = rolling(wanted, new, old, surge, unavailable)
        waiting = False
    by_name = {metadata_of(each)["name"]: each for each in sets}
    for name, size in sizes.items():
        metadata = metadata_of(by_name[name])
        before = replicas_of(by_name[name])
        await context.connection.patch(
            REPLICA_SET,
            name,
            {
                "metadata": {"resourceVersion": metadata["resourceVersion"]},
                "spec": {"replicas": size},
            },
            metadata["namespace"],
        )
        _tell_size(context, deployment, name, before, size)
    return waiting


def _tell_size(context: Context, deployment: Manifest, name: str, before: int, size: int) -> None:
    way = "up" if size > before else "down"
    message = f"Scaled {way} replica set {name} from {before} to {size}"
    context.recorder.record(deployment, "ScalingReplicaSet", message, kind=DEPLOYMENT)


async def _create(context: Context, deployment: Manifest, sets: list[Manifest]) -> Manifest:
    """The ReplicaSet of the present template, of no pods yet where others have to go first."""
    spec, metadata = deployment["spec"], metadata_of(deployment)
    template = deepcopy(spec["template"])
    digest = template_hash(template)
    labels = {**((template.get("metadata") or {}).get("labels") or {}), HASH_LABEL: digest}
    template["metadata"] = {**(template.get("metadata") or {}), "labels": labels}
    selector = deepcopy(spec.get("selector") or {})
    selector["matchLabels"] = {**(selector.get("matchLabels") or {}), HASH_LABEL: digest}
    replica_set: Manifest = {
        "metadata": {
            "name": f"{metadata['name']}-{digest}",
            "namespace": metadata["namespace"],
            "labels": labels,
            "annotations": {REVISION: str(_revision(sets) + 1)},
            "ownerReferences": [owner_reference(DEPLOYMENT, deployment)],
        },
        "spec": {
            "replicas": 0 if sets else replicas_of(deployment),
            "minReadySeconds": spec.get("minReadySeconds") or 0,
            "selector": selector,
            "template": template,
        },
    }
    made = await create_owned(context.connection, REPLICA_SET, replica_set)
    if size := replica_set["spec"]["replicas"]:
        _tell_size(context, deployment, metadata_of(made)["name"], 0, size)
    await _annotate(context, deployment, _revision([*sets, made]))
    return made


async def _number(
    context: Context, deployment: Manifest, current: Manifest, sets: list[Manifest]
) -> None:
    """A template that comes back gets a new number: it is the latest revision again."""
    newest = _revision(sets)
    if _revision([current]) < newest:
        newest += 1
        metadata = metadata_of(current)
        await context.connection.patch(
            REPLICA_SET,
            metadata["name"],
            {
                "metadata": {
                    "resourceVersion": metadata["resourceVersion"],
                    "annotations": {REVISION: str(newest)},
                }
            },
            metadata["namespace"],
        )
    await _annotate(context, deployment, newest)


async def _annotate(context: Context, deployment: Manifest, revision: int) -> None:
    metadata = metadata_of(deployment)
    if (metadata.get("annotations") or {}).get(REVISION) != str(revision):
        await context.connection.patch(
            DEPLOYMENT,
            metadata["name"],
            {"metadata": {"uid": uid_of(deployment), "annotations": {REVISION: str(revision)}}},
            metadata["namespace"],
        )


async def _forget_history(
    context: Context, deployment: Manifest, current: Manifest, sets: list[Manifest]
) -> None:
    limit = deployment["spec"].get("revisionHistoryLimit")
    keep = DEFAULT_HISTORY if limit is None else int(limit)
    idle = [
        each
        for each in sets
        if uid_of(each) != uid_of(current)
        and not replicas_of(each)
        and not count_of(each, "replicas")
    ]
    for each in idle[: max(0, len(idle) - keep)]:
        await delete_exactly(context.connection, REPLICA_SET, each)


def template_hash(template: Any) -> str:
    """A short name for a pod template: equal templates have equal names."""
    digest = 0x811C9DC5
    for byte in msgspec.json.encode(template, order="sorted"):
        digest = ((digest ^ byte) * 0x01000193) & 0xFFFFFFFF
    return "".join(_ALPHABET[ord(digit) % len(_ALPHABET)] for digit in str(digest))


def _same_template(deployment: Manifest, replica_set: Manifest) -> bool:
    return _plain(deployment["spec"]["template"]) == _plain(replica_set["spec"]["template"])


def _plain(template: Manifest) -> Manifest:
    metadata = template.get("metadata") or {}
    labels = {k: v for k, v in (metadata.get("labels") or {}).items() if k != HASH_LABEL}
    rest = {k: v for k, v in metadata.items() if k not in ("labels", "creationTimestamp") and v}
    return {"labels": labels, "metadata": rest, "spec": template.get("spec") or {}}


def _measure(context: Context, replica_set: Manifest) -> Replicas:
    return Replicas(
        metadata_of(replica_set)["name"],
        replicas_of(replica_set),
        count_of(replica_set, "availableReplicas"),
        len(context.owned(POD, uid_of(replica_set))),
    )


def _revision(sets: list[Manifest]) -> int:
    texts = [(metadata_of(each).get("annotations") or {}).get(REVISION, "0") for each in sets]
    return max((int(text) for text in texts if text.isdecimal()), default=0)


def _age(replica_set: Manifest) -> tuple[float, str]:
    metadata = metadata_of(replica_set)
    return (wall(metadata.get("creationTimestamp")) or 0.0, metadata["name"])
