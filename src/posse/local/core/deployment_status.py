"""A Deployment's status: its counts, whether it is available, whether it gets on."""

from __future__ import annotations

from posse.controllers.runtime import Context, Manifest, metadata_of, uid_of
from posse.kube.errors import NotFound
from posse.local.core.conditions import condition, condition_set
from posse.local.core.pods import wall
from posse.local.core.rollouts import bounds
from posse.objects.kinds import DEPLOYMENT
from posse.objects.times import rfc3339

DEFAULT_DEADLINE = 600


def replicas_of(obj: Manifest) -> int:
    value = obj["spec"].get("replicas")
    return 1 if value is None else int(value)


def count_of(obj: Manifest, name: str) -> int:
    return int((obj.get("status") or {}).get(name) or 0)


async def report(
    context: Context, deployment: Manifest, current: Manifest | None, sets: list[Manifest]
) -> float | None:
    now = context.world.now()
    wanted, old = replicas_of(deployment), deployment.get("status") or {}
    total = sum(count_of(each, "replicas") for each in sets)
    available = sum(count_of(each, "availableReplicas") for each in sets)
    updated = count_of(current, "replicas") if current is not None else 0
    strategy = deployment["spec"].get("strategy") or {}
    limits = strategy.get("rollingUpdate") or {}
    unavailable = bounds(
        wanted, limits.get("maxSurge", "25%"), limits.get("maxUnavailable", "25%")
    )[1]
    if strategy.get("type") == "Recreate":
        unavailable = 0
    conditions = [dict(each) for each in old.get("conditions") or []]
    _available(conditions, available >= wanted - unavailable, rfc3339(now))
    complete = updated == wanted and total == wanted and available >= wanted
    moved = (updated, available) != (
        old.get("updatedReplicas") or 0,
        old.get("availableReplicas") or 0,
    )
    wake = None
    if current is not None:
        wake = _progressing(conditions, deployment, current, complete, moved, now)
    status: Manifest = {
        "observedGeneration": metadata_of(deployment).get("generation"),
        "replicas": total or None,
        "updatedReplicas": updated or None,
        "readyReplicas": sum(count_of(each, "readyReplicas") for each in sets) or None,
        "availableReplicas": available or None,
        "unavailableReplicas": max(0, max(total, wanted) - available) or None,
        "conditions": conditions,
    }
    if any((old.get(name) or None) != (value or None) for name, value in status.items()):
        metadata = metadata_of(deployment)
        try:
            await context.connection.patch(
                DEPLOYMENT,
                metadata["name"],
                {"metadata": {"uid": uid_of(deployment)}, "status": status},
                metadata["namespace"],
                subresource="status",
            )
        except NotFound:
            return None
    return wake


def _available(conditions: list[Manifest], holds: bool, now: str) -> None:
    if holds:
        reason, message = "MinimumReplicasAvailable", "Deployment has minimum availability."
    else:
        reason = "MinimumReplicasUnavailable"
        message = "Deployment does not have minimum availability."
    _set(conditions, "Available", "True" if holds else "False", reason, message, now)


def _progressing(
    conditions: list[Manifest],
    deployment: Manifest,
    current: Manifest,
    complete: bool,
    moved: bool,
    now: float,
) -> float | None:
    """Set the condition; the answer is when the rollout would be late."""
    name = metadata_of(current)["name"]
    stamp = rfc3339(now)
    known = condition(deployment, "Progressing")
    if complete:
        message = f'ReplicaSet "{name}" has successfully progressed.'
        _set(conditions, "Progressing", "True", "NewReplicaSetAvailable", message, stamp)
        return None
    seconds = deployment["spec"].get("progressDeadlineSeconds")
    deadline = DEFAULT_DEADLINE if seconds is None else int(seconds)
    was_over = known.get("reason") == "NewReplicaSetAvailable"
    since = wall(known.get("lastUpdateTime"))
    if moved or was_over or since is None:
        reason = "NewReplicaSetCreated" if since is None else "ReplicaSetUpdated"
        verb = "Created new" if since is None else "Updated"
        message = f'{verb} replica set "{name}"'
        _set(conditions, "Progressing", "True", reason, message, stamp, touch=True)
        return float(deadline)
    if since + deadline <= now:
        message = f'ReplicaSet "{name}" has timed out progressing.'
        _set(conditions, "Progressing", "False", "ProgressDeadlineExceeded", message, stamp)
        return None
    return since + deadline - now


def _set(
    conditions: list[Manifest],
    kind: str,
    status: str,
    reason: str,
    message: str,
    now: str,
    *,
    touch: bool = False,
) -> None:
    """As Deployments write conditions: with the time of the last update, and stable in place."""
    for entry in conditions:
        if entry.get("type") != kind:
            continue
        if touch or (entry.get("status"), entry.get("reason")) != (status, reason):
            since = entry.get("lastTransitionTime") if entry.get("status") == status else now
            entry.update(
                status=status,
                reason=reason,
                message=message,
                lastUpdateTime=now,
                lastTransitionTime=since or now,
            )
        return
    stamped = ("lastUpdateTime", "lastTransitionTime")
    condition_set(conditions, kind, status, reason, message, now, stamped=stamped)
