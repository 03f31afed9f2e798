"""apps/v1 ReplicaSets: as many pods of a template as asked for."""

from __future__ import annotations

from posse.controllers.runtime import Context, Controller, Key, Manifest, metadata_of, uid_of
from posse.kube.errors import ApiError
from posse.local.core.conditions import condition_set
from posse.local.core.pods import (
    active,
    available_at,
    create_pods,
    delete_pods,
    from_template,
    least_missed_first,
    ready,
)
from posse.objects.kinds import POD, REPLICA_SET
from posse.objects.times import rfc3339

LOOK_AGAIN = 30.0  # at what a cache still owes; its arrival wakes the ReplicaSet sooner


def replica_set_controller() -> Controller:
    return Controller("replicaset", REPLICA_SET, _reconcile, owns=(POD,))


async def _reconcile(context: Context, key: Key) -> float | None:
    owner = context.get(REPLICA_SET, key)
    if owner is None:
        return None
    pods = [pod for pod in context.owned(POD, uid_of(owner)) if active(pod)]
    spec = owner["spec"]
    refusal: ApiError | None = None
    settled = context.expectations.settled(key)
    if settled and not metadata_of(owner).get("deletionTimestamp"):
        replicas = spec.get("replicas")
        wanted = 1 if replicas is None else int(replicas)
        if len(pods) < wanted:
            pod = from_template(REPLICA_SET, owner, spec["template"])
            _, refusal = await create_pods(
                context, key, REPLICA_SET, owner, pod, wanted - len(pods)
            )
        elif len(pods) > wanted:
            surplus = sorted(pods, key=least_missed_first)[: len(pods) - wanted]
            await delete_pods(context, key, REPLICA_SET, owner, surplus)
    wake = await _report(context, owner, pods, refusal)
    if refusal is not None:
        raise refusal
    return wake if settled else LOOK_AGAIN


async def _report(
    context: Context, owner: Manifest, pods: list[Manifest], refusal: ApiError | None
) -> float | None:
    """Write the status; the answer is when the next pod becomes available by waiting alone."""
    now = context.world.now()
    spec, old = owner["spec"], owner.get("status") or {}
    min_ready = int(spec.get("minReadySeconds") or 0)
    template = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    moments = [at for pod in pods if (at := available_at(pod, min_ready)) is not None]
    conditions = [c for c in old.get("conditions") or [] if c.get("type") != "ReplicaFailure"]
    if refusal is not None:
        conditions = list(old.get("conditions") or [])
        condition_set(
            conditions,
            "ReplicaFailure",
            "True",
            "FailedCreate",
            refusal.message,
            rfc3339(now),
            stamped=("lastTransitionTime",),
        )
    status: Manifest = {
        "replicas": len(pods),
        "fullyLabeledReplicas": sum(_labelled(pod, template) for pod in pods) or None,
        "readyReplicas": sum(ready(pod) for pod in pods) or None,
        "availableReplicas": sum(at <= now for at in moments) or None,
        "observedGeneration": metadata_of(owner).get("generation"),
        "conditions": conditions or None,
    }
    if any((old.get(name) or None) != (value or None) for name, value in status.items()):
        metadata = metadata_of(owner)
        await context.connection.patch(
            REPLICA_SET,
            metadata["name"],
            {"metadata": {"resourceVersion": metadata["resourceVersion"]}, "status": status},
            metadata["namespace"],
            subresource="status",
        )
    return min((at - now for at in moments if at > now), default=None)


def _labelled(pod: Manifest, template: dict[str, str]) -> bool:
    labels = metadata_of(pod).get("labels") or {}
    return all(labels.get(name) == value for name, value in template.items())
