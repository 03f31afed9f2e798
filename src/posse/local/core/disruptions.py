"""Pods that were to be disrupted and were not: the mark is taken back after a while.

Whoever ends a pod marks it first (DisruptionTarget) and deletes it then. Where the deletion never
comes, as when a budget refuses the eviction, a later failure would pass for a disruption.
"""

from __future__ import annotations

from posse.controllers.runtime import Context, Controller, Key, Manifest, key_of, metadata_of
from posse.kube.connection import Patch
from posse.kube.errors import NotFound
from posse.local.core.conditions import condition
from posse.local.core.pods import active, wall
from posse.objects.kinds import POD
from posse.objects.times import rfc3339

_TARGET = "DisruptionTarget"
_BY_NODE = "TerminationByKubelet"  # a node may take long to end what it has marked
_PATIENCE = 120.0


def disruption_controller() -> Controller:
    return Controller("disruption-target", POD, _reconcile, workers=1, concerns=_marked)


def _marked(pod: Manifest) -> bool:
    mark = condition(pod, _TARGET)
    return mark.get("status") == "True" and mark.get("reason") != _BY_NODE and active(pod)


async def _reconcile(context: Context, key: Key) -> float | None:
    pod = context.get(POD, key)
    if pod is None or not _marked(pod):
        return None
    since = wall(condition(pod, _TARGET).get("lastTransitionTime"))
    now = context.world.now()
    if since is not None and since + _PATIENCE > now:
        return since + _PATIENCE - now
    unmarked = {
        "type": _TARGET,
        "status": "False",
        "reason": None,
        "message": None,
        "lastTransitionTime": rfc3339(now),
    }
    change = {
        "metadata": {"resourceVersion": metadata_of(pod)["resourceVersion"]},
        "status": {"conditions": [unmarked]},
    }
    namespace, name = key_of(pod)
    try:
        answer = await context.connection.patch(
            POD, name, change, namespace, how=Patch.STRATEGIC, subresource="status"
        )
    except NotFound:
        return None
    context.wrote(POD, pod, answer)
    return None
