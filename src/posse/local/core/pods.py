"""What controllers that make pods from a template have in common."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from posse.controllers.runtime import (
    Context,
    Key,
    Manifest,
    delete_exactly,
    key_of,
    metadata_of,
    owner_reference,
    uid_of,
)
from posse.kube.errors import ApiError
from posse.local.core.conditions import condition, is_true
from posse.objects.kinds import POD, Kind
from posse.objects.times import parse_time

GENERATED = 58  # the longest prefix to which five characters can still be added


def phase(pod: Manifest) -> str:
    return str((pod.get("status") or {}).get("phase") or "Pending")


def terminal(pod: Manifest) -> bool:
    return phase(pod) in ("Succeeded", "Failed")


def deleting(pod: Manifest) -> bool:
    return bool(metadata_of(pod).get("deletionTimestamp"))


def active(pod: Manifest) -> bool:
    return not terminal(pod) and not deleting(pod)


def ready(pod: Manifest) -> bool:
    return is_true(pod, "Ready")


def available_at(pod: Manifest, min_ready: int) -> float | None:
    """Wall time from which a ready pod counts as available."""
    if not ready(pod):
        return None
    if not min_ready:
        return 0.0
    since = wall(condition(pod, "Ready").get("lastTransitionTime"))
    return None if since is None else since + min_ready


def wall(text: Any) -> float | None:
    try:
        return parse_time(text) if isinstance(text, str) else None
    except ValueError:
        return None


def from_template(
    kind: Kind, owner: Manifest, template: Manifest, labels: dict[str, str] | None = None
) -> Manifest:
    """A pod of the owner's template, its name still to be generated."""
    own = template.get("metadata") or {}
    name = metadata_of(owner)["name"]
    metadata: Manifest = {
        "generateName": f"{name[: GENERATED - 1]}-",
        "namespace": metadata_of(owner)["namespace"],
        "labels": {**(own.get("labels") or {}), **(labels or {})},
        "annotations": dict(own.get("annotations") or {}),
        "ownerReferences": [owner_reference(kind, owner)],
    }
    if own.get("finalizers"):
        metadata["finalizers"] = list(own["finalizers"])
    return {"metadata": metadata, "spec": deepcopy(template.get("spec") or {})}


async def create_pods(
    context: Context, key: Key, kind: Kind, owner: Manifest, pod: Manifest, count: int
) -> tuple[int, ApiError | None]:
    """How many of `count` pods were created, and what refused the next one."""
    for created in range(count):
        try:
            made = await context.connection.create(POD, pod, key[0])
        except ApiError as error:
            message = f"Error creating: {error.message}"
            context.recorder.record(owner, "FailedCreate", message, warning=True, kind=kind)
            return created, error
        context.expectations.created(key, uid_of(made))
        name = metadata_of(made).get("name")
        context.recorder.record(owner, "SuccessfulCreate", f"Created pod: {name}", kind=kind)
    return count, None


async def delete_pods(
    context: Context, key: Key, kind: Kind, owner: Manifest, pods: list[Manifest]
) -> None:
    for pod in pods:
        if await delete_exactly(context.connection, POD, pod):
            context.expectations.deleted(key, uid_of(pod))
            name = key_of(pod)[1]
            context.recorder.record(owner, "SuccessfulDelete", f"Deleted pod: {name}", kind=kind)


def least_missed_first(pod: Manifest) -> tuple[bool, bool, bool, float, str]:
    """The order in which surplus pods go: without a node, not running, not ready, the youngest."""
    created = wall(metadata_of(pod).get("creationTimestamp")) or 0.0
    return (
        bool((pod.get("spec") or {}).get("nodeName")),
        phase(pod) == "Running",
        ready(pod),
        -created,
        key_of(pod)[1],
    )
