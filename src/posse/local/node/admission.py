"""The last word on a bound pod: the node takes it, or fails it and says what it lacks.

A scheduler may be wrong: two of them, or one with an old view, can bind more than a node has. The
node alone sees every pod that it holds, so it decides, in the order in which pods were bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from posse.objects.nodes import Taint
from posse.objects.pods import PodSpec, Toleration
from posse.objects.requests import pod_requests

_FIRST = ("pods", "cpu", "memory", "ephemeral-storage")


class Rejection(msgspec.Struct, frozen=True):
    reason: str
    message: str


class Ledger:
    """What one node has, and which of its pods use how much of it."""

    def __init__(self, allocatable: Mapping[str, int]) -> None:
        self.allocatable = dict(allocatable)
        self.used: dict[str, int] = {}
        self._pods: dict[str, dict[str, int]] = {}

    def __contains__(self, uid: str) -> bool:
        return uid in self._pods

    def take(self, uid: str, requests: Mapping[str, int]) -> None:
        """Count the pod, whether it fits or not: it is there."""
        if uid in self._pods:
            return
        self._pods[uid] = dict(requests)
        for resource, amount in requests.items():
            self.used[resource] = self.used.get(resource, 0) + amount

    def release(self, uid: str) -> None:
        for resource, amount in self._pods.pop(uid, {}).items():
            self.used[resource] -= amount

    def shortage(self, requests: Mapping[str, int]) -> Rejection | None:
        """The first resource that does not fit, in the order in which a kubelet looks."""
        rest = sorted(resource for resource in requests if resource not in _FIRST)
        for resource in (*_FIRST, *rest):
            asked = requests.get(resource, 0)
            used, capacity = self.used.get(resource, 0), self.allocatable.get(resource, 0)
            if asked > 0 and used + asked > capacity:
                return Rejection(
                    f"OutOf{resource}",
                    f"Pod was rejected: Node didn't have enough resource: {resource}, "
                    f"requested: {asked}, used: {used}, capacity: {capacity}",
                )
        return None


def requests_of(spec: PodSpec) -> dict[str, int]:
    """What the pod asks, itself included as one of `pods`."""
    return {**pod_requests(spec), "pods": 1}


def refusal(spec: PodSpec, labels: Mapping[str, str], taints: Sequence[Taint]) -> Rejection | None:
    """Why this node must not run the pod, whatever room it has."""
    if any(labels.get(key) != value for key, value in spec.node_selector.items()):
        return Rejection(
            "NodeAffinity",
            "Pod was rejected: Predicate NodeAffinity failed: "
            "node(s) didn't match Pod's node affinity/selector",
        )
    for taint in taints:
        if taint.effect == "NoExecute" and not any(tolerates(t, taint) for t in spec.tolerations):
            return Rejection(
                "TaintToleration",
                "Pod was rejected: Predicate TaintToleration failed: "
                f"node(s) had untolerated taint {{{taint.key}: {taint.value}}}",
            )
    return None


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return bool(toleration.key) and toleration.value == taint.value
