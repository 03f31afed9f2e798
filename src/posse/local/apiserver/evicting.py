"""POST pods/<name>/eviction: a deletion that a disruption budget may refuse.

The budget's status is taken at its word; who reckons it is core's disruption controller. What an
eviction uses up is written to the budget before the pod is touched, so that the next one sees it.
"""

from __future__ import annotations

from typing import Final

from posse.local.apiserver import statuses
from posse.local.apiserver.cluster import Cluster
from posse.local.apiserver.deleting import DeleteOptions, check, remove
from posse.local.apiserver.intake import WriteOptions
from posse.local.apiserver.requests import Request
from posse.local.apiserver.responses import Reply, json_reply
from posse.local.apiserver.routing import Target
from posse.local.apiserver.store import Object, Stored
from posse.local.apiserver.subresources import read_part, with_condition
from posse.local.apiserver.writing import replace
from posse.objects.budgets import allowing, condition_of
from posse.objects.kinds import EVICTION, POD_DISRUPTION_BUDGET
from posse.objects.raw import mapping, mappings, number, text
from posse.objects.times import rfc3339
from posse.objects.validating.placement import selects
from posse.objects.validating.report import Report

_REFUSED = "Cannot evict pod as it would violate the pod's disruption budget."
_SEVERAL = (
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not"
    " support."
)
_TOO_MANY = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
_MOST_DISRUPTED: Final = 2000
_PROCESSED_IN: Final = 10
_IGNORE = "ignoreStoreReadErrorWithClusterBreakingPotential"
_UNGUARDED = ("Succeeded", "Failed", "Pending")


async def evict(cluster: Cluster, request: Request, target: Target) -> Reply:
    options = WriteOptions.of(request, "CreateOptions")
    eviction = await read_part(request, EVICTION)
    name = text(mapping(eviction, "metadata"), "name")
    if name != target.name:
        raise statuses.bad_request("name in URL does not match name in Eviction object")
    _check_options(name, mapping(eviction, "deleteOptions"))
    deletion = DeleteOptions.read(eviction.get("deleteOptions") or {})
    deletion.dry_run = deletion.dry_run or options.dry_run
    stored = cluster.store.latest(target.resource.name, target.key)
    if stored is None:
        raise statuses.not_found(target.kind, name)
    if _guarded(stored.obj):
        _ask_budgets(cluster, stored, deletion)
    if not deletion.dry_run:
        check(target.kind, stored, deletion)
        deletion.version = ""
        replace(cluster, target.resource, stored, _disrupted(cluster, stored.obj))
    context = cluster.context()
    outcome = remove(cluster, context, target.resource, target.kind, target.key, deletion)
    await cluster.durable(outcome.write)
    return json_reply(statuses.success(201), 201)


def _check_options(name: str, options: Object) -> None:
    if options.get(_IGNORE) is True:
        report = Report()
        detail = "can not be set for pod eviction, try after removing the option"
        report.invalid(f"deleteOptions.{_IGNORE}", True, detail)
        raise statuses.invalid_object(EVICTION, name, report.errors)


def _guarded(pod: Object) -> bool:
    """What does not run yet, has ended or is ending is nothing that a budget counts on."""
    phase = mapping(pod, "status").get("phase")
    return phase not in _UNGUARDED and pod["metadata"].get("deletionTimestamp") is None


def _ask_budgets(cluster: Cluster, pod: Stored, deletion: DeleteOptions) -> None:
    labels = mapping(pod.obj, "metadata", "labels")
    budgets = [
        budget
        for budget in cluster.store.all_latest(POD_DISRUPTION_BUDGET.qualified, pod.key[0])
        if isinstance(selector := mapping(budget.obj, "spec").get("selector"), dict)
        and selects(selector, labels)
    ]
    if len(budgets) > 1:
        raise statuses.failed(_SEVERAL)
    for budget in budgets:
        if _may_go_unhealthy(pod.obj, budget.obj):
            # Nothing happens between this look and the deletion: no version need be asked for.
            deletion.version = ""
            return
        _use(cluster, budget, pod.key[1], deletion.dry_run)


def _may_go_unhealthy(pod: Object, budget: Object) -> bool:
    """An unhealthy pod is not missed while enough others are healthy, or by a budget's choice."""
    ready = (one for one in mappings(pod, "status", "conditions") if one.get("type") == "Ready")
    if any(one.get("status") == "True" for one in ready):
        return False
    if mapping(budget, "spec").get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = mapping(budget, "status")
    desired = number(status, "desiredHealthy") or 0
    return (number(status, "currentHealthy") or 0) >= desired > 0


def _use(cluster: Cluster, stored: Stored, pod: str, dry_run: bool) -> None:
    """Takes one of the disruptions that the budget allows; refuses where it allows none."""
    budget, name = stored.obj, stored.key[1]
    status = dict(mapping(budget, "status"))
    observed = number(status, "observedGeneration") or 0
    if observed < (number(budget["metadata"], "generation") or 0):
        said = f"The disruption budget {name} is still being processed by the server."
        raise _refused(said, _PROCESSED_IN)
    disrupted = mapping(status, "disruptedPods")
    if len(disrupted) > _MOST_DISRUPTED:
        # The one place where the resource is named in the singular.
        details = {"name": name, "group": "policy", "kind": "poddisruptionbudget"}
        message = f'poddisruptionbudget.policy "{name}" is forbidden: {_TOO_MANY}'
        raise statuses.Refusal(403, "Forbidden", message, details)
    allowed = number(status, "disruptionsAllowed") or 0
    if allowed <= 0:
        raise _refused(_why(name, status))
    if dry_run:
        return
    status["disruptionsAllowed"] = allowed - 1
    now = rfc3339(cluster.world.now())
    if allowed == 1:
        status["conditions"] = allowing(status, now)
    status["disruptedPods"] = {**disrupted, pod: now}
    resource = cluster.registry.resource(POD_DISRUPTION_BUDGET)
    replace(cluster, resource, stored, {**budget, "status": status})


def _why(name: str, status: Object) -> str:
    condition = condition_of(status)
    reason, message = text(condition, "reason"), text(condition, "message")
    told = message if condition.get("status") == "False" else ""
    current, desired = (number(status, n) or 0 for n in ("currentHealthy", "desiredHealthy"))
    if told and reason == "SyncFailed":
        return (
            f"The disruption budget {name} does not allow evicting pods currently because it"
            f" failed sync: {message}"
        )
    if current <= desired:
        return (
            f"The disruption budget {name} needs {desired} healthy pods and has {current} currently"
        )
    says = f"The disruption budget {name} does not allow evicting pods currently"
    return f"{says} ({reason}): {message}" if told else says


def _refused(cause: str, retry_after: int = 0) -> statuses.Refusal:
    details: Object = {"causes": [{"reason": "DisruptionBudget", "message": cause}]}
    if retry_after:
        details["retryAfterSeconds"] = retry_after
    return statuses.Refusal(429, "TooManyRequests", _REFUSED, details)


def _disrupted(cluster: Cluster, pod: Object) -> Object:
    """Who looks at an evicted pod can tell that it did not fail of itself."""
    why = {"reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting"}
    return {**pod, "status": with_condition(cluster, pod, "DisruptionTarget", **why)}
