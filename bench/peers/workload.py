"""Gangs as objects: the same pods for every contender, grouped in the way that it reads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import Any

import msgspec

from posse.objects import keys
from posse.objects.kinds import POD_GROUP, Kind

NAMESPACE = "bench"
NATIVE_POD_GROUP = Kind("scheduling.k8s.io", "v1alpha2", "PodGroup", "podgroups")

# Ten thousand pods fit on a thousand nodes, with room to spare.
PODS_PER_NODE = 16
_NODE = {"cpu": "64", "memory": "512Gi", "nvidia.com/gpu": str(PODS_PER_NODE), "pods": "110"}
_POD = {"cpu": "2", "memory": "8Gi", "nvidia.com/gpu": "1"}


class Dialect(Enum):
    """How a pod names its gang."""

    ANNOTATION = "annotation"
    NATIVE = "native"

    @property
    def kind(self) -> Kind:
        return NATIVE_POD_GROUP if self is Dialect.NATIVE else POD_GROUP


class Gangs(msgspec.Struct, frozen=True):
    count: int
    size: int

    @classmethod
    def parse(cls, text: str) -> Gangs:
        """`200x20`: two hundred gangs of twenty pods."""
        found = re.fullmatch(r"([1-9]\d*)x([1-9]\d*)", text)
        if found is None:
            raise ValueError(f"{text!r} is not COUNTxSIZE")
        return cls(int(found[1]), int(found[2]))

    def __str__(self) -> str:
        return f"{self.count:,}x{self.size:,}"

    @property
    def pods(self) -> int:
        return self.count * self.size

    def names(self, prefix: str = "gang") -> Iterator[str]:
        return (f"{prefix}-{number:05}" for number in range(self.count))


def node_name(number: int) -> str:
    return f"node-{number:05}"


def node(number: int) -> dict[str, Any]:
    """A node that is ready and has no kubelet."""
    name = node_name(number)
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {
            "allocatable": _NODE,
            "capacity": _NODE,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    }


def group(name: str, size: int, dialect: Dialect) -> dict[str, Any]:
    spec: dict[str, Any] = {"minMember": size, "queue": "default"}
    if dialect is Dialect.NATIVE:
        spec = {"schedulingPolicy": {"gang": {"minCount": size}}}
    return {
        "apiVersion": dialect.kind.api_version,
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": spec,
    }


def pod(gang: str, index: int, scheduler: str, dialect: Dialect) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": f"{gang}-{index:05}", "namespace": NAMESPACE}
    spec: dict[str, Any] = {
        "schedulerName": scheduler,
        "containers": [
            {"name": "main", "image": "none", "resources": {"requests": _POD, "limits": _POD}}
        ],
    }
    if dialect is Dialect.NATIVE:
        spec["schedulingGroup"] = {"podGroupName": gang}
    else:
        metadata["annotations"] = {keys.GROUP_NAME: gang}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def gang_of(pod_name: str) -> str:
    return pod_name.rpartition("-")[0]
