"""PodDisruptionBudgets: how many of their pods are healthy, should be, and may be ended.

The API server's evictions go by what is written here, and write to it themselves: every status is
written over the very version it was reckoned from, so that no eviction in between is forgotten. A
budget that cannot be reckoned allows nothing, and says why.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from posse.controllers.runtime import (
    Context,
    Controller,
    Key,
    Manifest,
    Watch,
    key_of,
    metadata_of,
)
from posse.local.core.pods import deleting, ready, wall
from posse.local.core.rollouts import scaled
from posse.local.core.scales import Scales, UnknownScaleError
from posse.local.core.serving import ServedKinds
from posse.objects.budgets import allowing
from posse.objects.kinds import DEPLOYMENT, POD, POD_DISRUPTION_BUDGET, REPLICA_SET
from posse.objects.raw import mapping, strings
from posse.objects.times import rfc3339
from posse.objects.validating.placement import selects
from posse.objects.validating.report import same

_DELETED_WITHIN = 120.0  # an evicted pod whose deletion is not seen by then is there to stay
_LOOK_AGAIN = 30.0  # at a budget that could not be reckoned: its controller may come yet
_UNMANAGED = (
    "Pods selected by this PodDisruptionBudget ({}) have no controller: how many there should be is"
    " not known. With an integer in .spec.minAvailable it need not be"
)


def budget_controller(served: ServedKinds) -> Controller:
    books = _Books(Scales(served))
    return Controller(
        "disruption",
        POD_DISRUPTION_BUDGET,
        books.reconcile,
        watches=(Watch(POD, books.of_pod),),
        reads=(REPLICA_SET, DEPLOYMENT),
    )


class _Reckoning(msgspec.Struct, frozen=True):
    """How many pods there should be, and how many of them healthy."""

    expected: int
    healthy: int
    unmanaged: list[str] = []


class _Books:
    """Which budgets and pods concern each other; made anew by a restart."""

    def __init__(self, scales: Scales) -> None:
        self._scales = scales
        self._selectors: dict[str, dict[Key, Manifest]] = {}
        self._pods: dict[Key, dict[Key, None]] = {}

    def of_pod(self, pod: Manifest) -> Iterable[Key]:
        key, labels = key_of(pod), strings(pod, "metadata", "labels")
        found = []
        for budget, selector in self._selectors.get(key[0], {}).items():
            if selects(selector, labels):
                self._pods[budget][key] = None
                found.append(budget)
        return found

    async def reconcile(self, context: Context, key: Key) -> float | None:
        budget = context.get(POD_DISRUPTION_BUDGET, key)
        if budget is None:
            self._forget(key)
            return None
        self._learn(context, key, budget)
        pods = self._pods_of(context, key)
        if not pods:
            context.recorder.record(
                budget, "NoPods", "No matching pods found", kind=POD_DISRUPTION_BUDGET
            )
        try:
            reckoned = await self._reckoned(context, budget, pods)
        except UnknownScaleError as error:
            await _fail(context, budget, str(error))
            return _LOOK_AGAIN
        if reckoned.unmanaged:
            message = _UNMANAGED.format(", ".join(reckoned.unmanaged[:3]))
            _warn(context, budget, "UnmanagedPods", message)
        return await _report(context, budget, pods, reckoned)

    async def _reckoned(
        self, context: Context, budget: Manifest, pods: list[Manifest]
    ) -> _Reckoning:
        spec = mapping(budget, "spec")
        least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
        if most is None and not isinstance(least, str):
            return _Reckoning(len(pods), least or 0) if least is not None else _Reckoning(0, 0)
        expected, unmanaged = await self._scales.expected(context, pods)
        if most is not None:
            healthy = max(0, expected - scaled(most, expected, up=True))
        else:
            healthy = scaled(str(least), expected, up=True)
        return _Reckoning(expected, healthy, unmanaged)

    def _learn(self, context: Context, key: Key, budget: Manifest) -> None:
        """Remembers the selector; a new or changed one means a look at all pods."""
        selector = mapping(budget, "spec").get("selector")
        known = self._selectors.get(key[0], {}).get(key)
        if known is not None and known == selector:
            return
        self._forget(key)
        if not isinstance(selector, dict):
            return
        self._selectors.setdefault(key[0], {})[key] = selector
        self._pods[key] = {
            key_of(pod): None
            for pod in context.all(POD)
            if metadata_of(pod)["namespace"] == key[0]
            and selects(selector, strings(pod, "metadata", "labels"))
        }

    def _forget(self, key: Key) -> None:
        selectors = self._selectors.get(key[0], {})
        selectors.pop(key, None)
        if not selectors:
            self._selectors.pop(key[0], None)
        self._pods.pop(key, None)

    def _pods_of(self, context: Context, key: Key) -> list[Manifest]:
        selector = self._selectors.get(key[0], {}).get(key)
        if selector is None:
            return []
        found = {at: context.get(POD, at) for at in sorted(self._pods[key])}
        pods = {
            at: pod
            for at, pod in found.items()
            if pod is not None and selects(selector, strings(pod, "metadata", "labels"))
        }
        self._pods[key] = dict.fromkeys(pods)
        return list(pods.values())


async def _report(
    context: Context, budget: Manifest, pods: list[Manifest], reckoned: _Reckoning
) -> float | None:
    """Writes the status; the answer is when an evicted pod that stays counts again."""
    now = context.world.now()
    old = mapping(budget, "status")
    disrupted = _still_disrupted(context, budget, pods, now)
    current = sum(
        ready(pod) and not deleting(pod) and key_of(pod)[1] not in disrupted for pod in pods
    )
    allowed = max(0, current - reckoned.healthy) if reckoned.expected > 0 else 0
    status: Manifest = {
        "observedGeneration": metadata_of(budget).get("generation"),
        "disruptionsAllowed": allowed,
        "currentHealthy": current,
        "desiredHealthy": reckoned.healthy,
        "expectedPods": reckoned.expected,
        "conditions": old.get("conditions"),
    }
    if disrupted:
        status["disruptedPods"] = {name: mapping(old, "disruptedPods")[name] for name in disrupted}
    status["conditions"] = allowing(status, rfc3339(now))
    await _write(context, budget, status)
    return min((at + _DELETED_WITHIN - now for at in disrupted.values()), default=None)


def _still_disrupted(
    context: Context, budget: Manifest, pods: list[Manifest], now: float
) -> dict[str, float]:
    """The evicted pods whose deletion has not been seen here yet, and since when that is."""
    known = mapping(budget, "status", "disruptedPods")
    result: dict[str, float] = {}
    for pod in pods:
        name = key_of(pod)[1]
        since = wall(known.get(name))
        if since is None or deleting(pod):
            continue
        if since + _DELETED_WITHIN < now:
            message = (
                f"Pod was expected by PDB {'/'.join(key_of(budget))} to be deleted but it wasn't"
            )
            context.recorder.record(pod, "NotDeleted", message, warning=True, kind=POD)
        else:
            result[name] = since
    return result


async def _fail(context: Context, budget: Manifest, why: str) -> None:
    message = f"Failed to calculate the number of expected pods: {why}"
    _warn(context, budget, "CalculateExpectedPodCountFailed", message)
    status = {**mapping(budget, "status"), "disruptionsAllowed": 0}
    status["conditions"] = allowing(status, rfc3339(context.world.now()), why)
    await _write(context, budget, status)


async def _write(context: Context, budget: Manifest, status: Manifest) -> None:
    old = mapping(budget, "status")
    if same(status, old):
        return
    kind = POD_DISRUPTION_BUDGET
    changed = {**budget, "status": status}
    answer = await context.connection.replace(kind, changed, subresource="status")
    context.wrote(kind, budget, answer)


def _warn(context: Context, budget: Manifest, reason: str, message: str) -> None:
    context.recorder.record(budget, reason, message, warning=True, kind=POD_DISRUPTION_BUDGET)
