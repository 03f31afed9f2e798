"""The last word on a bound pod: the node takes it, or fails it and says what it lacks.

A scheduler may be wrong: two of them, or one with an old view, can bind more than a node has. The
node alone sees every pod that it holds, so it decides, in the order in which pods were bound. What
is looked at, in which order, and in which words it is told, is as a kubelet does it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from posse.objects.affinities import Affinity
from posse.objects.meta import from_raw
from posse.objects.node_selectors import selects_node
from posse.objects.nodes import Node, Taint
from posse.objects.pods import PodSpec, Toleration
from posse.objects.raw import mapping, text
from posse.objects.requests import pod_requests

_FIRST = ("pods", "cpu", "memory", "ephemeral-storage")
_ANY_ADDRESS = "0.0.0.0"
_OS = "kubernetes.io/os"
AFFINITY = "NodeAffinity"


class Rejection(msgspec.Struct, frozen=True):
    reason: str
    message: str


class HostPort(msgspec.Struct, frozen=True):
    """A port of the node itself, on one of its addresses or on all of them."""

    protocol: str
    port: int
    address: str

    def clashes(self, other: HostPort) -> bool:
        if (self.protocol, self.port) != (other.protocol, other.port):
            return False
        return self.address == other.address or _ANY_ADDRESS in (self.address, other.address)


class Ledger:
    """What one node has, and which of its pods use how much of it."""

    def __init__(self, allocatable: Mapping[str, int]) -> None:
        self.allocatable = dict(allocatable)
        self.used: dict[str, int] = {}
        self._pods: dict[str, dict[str, int]] = {}
        self._ports: dict[str, Sequence[HostPort]] = {}

    def __contains__(self, uid: str) -> bool:
        return uid in self._pods

    def take(self, uid: str, requests: Mapping[str, int], ports: Sequence[HostPort] = ()) -> None:
        """Count the pod, whether it fits or not: it is there."""
        if uid in self._pods:
            return
        self._pods[uid] = dict(requests)
        for resource, amount in requests.items():
            self.used[resource] = self.used.get(resource, 0) + amount
        if ports:
            self._ports[uid] = ports

    def release(self, uid: str) -> None:
        for resource, amount in self._pods.pop(uid, {}).items():
            self.used[resource] -= amount
        self._ports.pop(uid, None)

    def shortage(self, requests: Mapping[str, int]) -> Rejection | None:
        """The first resource that does not fit, in the order in which a kubelet looks."""
        rest = sorted(resource for resource in requests if resource not in _FIRST)
        for resource in (*_FIRST, *rest):
            asked = requests.get(resource, 0)
            used, capacity = self.used.get(resource, 0), self.allocatable.get(resource, 0)
            if asked > 0 and used + asked > capacity:
                return Rejection(
                    f"OutOf{resource}",
                    f"Node didn't have enough resource: {resource}, "
                    f"requested: {asked}, used: {used}, capacity: {capacity}",
                )
        return None

    def clash(self, ports: Sequence[HostPort]) -> Rejection | None:
        taken = [port for held in self._ports.values() for port in held]
        if any(port.clashes(other) for port in ports for other in taken):
            why = "node(s) didn't have free ports for the requested pod ports"
            return _failed("NodePorts", why)
        return None


def requests_of(spec: PodSpec) -> dict[str, int]:
    """What the pod asks, itself included as one of `pods`."""
    return {**pod_requests(spec), "pods": 1}


def ports_of(spec: PodSpec) -> list[HostPort]:
    """The node's ports that the pod uses for as long as it runs."""
    sidecars = [one for one in spec.init_containers if one.restart_policy == "Always"]
    return [
        HostPort(port.protocol or "TCP", port.host_port, port.host_ip or _ANY_ADDRESS)
        for container in (*sidecars, *spec.containers)
        for port in container.ports
        if port.host_port > 0
    ]


def misplaced(pod: Mapping[str, Any], node: Node) -> Rejection | None:
    """A pod for another operating system."""
    runs = node.metadata.labels.get(_OS, "linux")
    if mapping(pod, "metadata", "labels").get(_OS, runs) != runs:
        return Rejection(
            "PodOSSelectorNodeLabelDoesNotMatch",
            f"Failed to admit pod as the `{_OS}` label doesn't match node label",
        )
    if (text(mapping(pod, "spec", "os"), "name") or runs) != runs:
        message = "Failed to admit pod as the OS field doesn't match node OS"
        return Rejection("PodOSNotSupported", message)
    return None


def unwanted(spec: PodSpec, node: Node) -> Rejection | None:
    """A node that is none of those which the pod names."""
    labels = node.metadata.labels
    chosen = all(labels.get(key) == value for key, value in spec.node_selector.items())
    affinity = None if spec.affinity is None else from_raw(spec.affinity, Affinity).node_affinity
    if chosen and affinity is not None and affinity.required is not None:
        chosen = selects_node(affinity.required, node.metadata.name, labels)
    if chosen:
        return None
    return _failed(AFFINITY, "node(s) didn't match Pod's node affinity/selector")


def driven_off(spec: PodSpec, taints: Sequence[Taint]) -> Rejection | None:
    """Only a NoExecute taint keeps a pod out that somebody has bound here."""
    for taint in taints:
        if taint.effect == "NoExecute" and not any(tolerates(t, taint) for t in spec.tolerations):
            why = "node(s) had taints that the pod didn't tolerate"
            return _failed("TaintToleration", why)
    return None


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return bool(toleration.key) and toleration.value == taint.value


def judged(
    pod: Mapping[str, Any], spec: PodSpec, node: Node | None, ledger: Ledger
) -> Rejection | None:
    """Why the pod is not admitted: the first reason of those a kubelet finds.

    Of a node that is not known yet nothing but its room can be said.
    """
    short = ledger.shortage(requests_of(spec))
    clash = ledger.clash(ports_of(spec))
    if node is None:
        return short or clash
    return (
        misplaced(pod, node)
        or short
        or unwanted(spec, node)
        or clash
        or driven_off(spec, node.spec.taints)
    )


def _failed(predicate: str, why: str) -> Rejection:
    return Rejection(predicate, f"Predicate {predicate} failed: {why}")
