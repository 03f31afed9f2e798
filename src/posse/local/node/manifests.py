"""Node objects as an agent announces them."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from posse.objects import quantity
from posse.objects.keys import SIMULATED_LABEL
from posse.objects.kinds import NODE
from posse.version import __version__

Manifest = dict[str, Any]

HOSTNAME_LABEL = "kubernetes.io/hostname"
DEFAULT_CPUS = "32"
DEFAULT_MEMORY = "128Gi"
DEFAULT_PODS = "110"
ADDRESS = "127.0.0.1"

# type, status, reason, message: what a healthy kubelet says of itself.
HEALTHY: tuple[tuple[str, str, str, str], ...] = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "there is enough memory"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "there is no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "there are enough process ids"),
    ("Ready", "True", "KubeletReady", "the node agent is posting ready status"),
)


class NodeError(ValueError):
    """A node that cannot be announced; the text says which and why."""


def simulated_nodes(
    count: int,
    gpus: int = 0,
    cpus: str | int = DEFAULT_CPUS,
    memory: str | int = DEFAULT_MEMORY,
) -> list[Manifest]:
    """`count` equal nodes named node-0, node-1, ... that run nothing."""
    capacity: dict[str, Any] = {"cpu": str(cpus), "memory": str(memory)}
    if gpus:
        capacity["nvidia.com/gpu"] = str(gpus)
    return [
        simulated(
            {
                "metadata": {"name": f"node-{index}"},
                "status": {"capacity": dict(capacity)},
            }
        )
        for index in range(count)
    ]


def simulated(manifest: Mapping[str, Any]) -> Manifest:
    """A Node manifest made whole: what somebody wrote stays, what an agent would say is added."""
    node = deepcopy(dict(manifest))
    metadata = _mapping(node, "metadata", "a node")
    name = metadata.get("name")
    if not isinstance(name, str) or not name:
        raise NodeError("a node manifest has no metadata.name")
    if node.get("kind", NODE.kind) != NODE.kind:
        raise NodeError(f"{name} is a {node['kind']}, not a Node")
    metadata["labels"] = {
        HOSTNAME_LABEL: name,
        "kubernetes.io/os": "linux",
        **_mapping(metadata, "labels", name),
        SIMULATED_LABEL: "true",
    }
    for server_side in ("uid", "resourceVersion", "creationTimestamp", "managedFields"):
        metadata.pop(server_side, None)
    status = _mapping(node, "status", name)
    capacity = _amounts(status, "capacity", name)
    allocatable = _amounts(status, "allocatable", name)
    capacity = {
        "cpu": DEFAULT_CPUS,
        "memory": DEFAULT_MEMORY,
        "pods": DEFAULT_PODS,
        **allocatable,
        **capacity,
    }
    node["status"] = {"capacity": capacity, "allocatable": {**capacity, **allocatable}}
    return {"apiVersion": NODE.api_version, "kind": NODE.kind, **node}


def reported_status(manifest: Manifest, *, port: int, now: str) -> Manifest:
    """The status that a healthy agent posts for this node, with `port` for its kubelet's API."""
    name = manifest["metadata"]["name"]
    return {
        **manifest["status"],
        "addresses": [
            {"type": "InternalIP", "address": ADDRESS},
            {"type": "Hostname", "address": name},
        ],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        "nodeInfo": manifest["status"].get("nodeInfo")
        or {
            "architecture": "amd64",
            "bootID": "",
            "containerRuntimeVersion": f"simulated://{__version__}",
            "kernelVersion": "",
            "kubeProxyVersion": "",
            "kubeletVersion": f"v{__version__}",
            "machineID": name,
            "operatingSystem": "linux",
            "osImage": "simulated",
            "systemUUID": "",
        },
        "conditions": [
            {
                "type": kind,
                "status": status,
                "reason": reason,
                "message": message,
                "lastHeartbeatTime": now,
                "lastTransitionTime": now,
            }
            for kind, status, reason, message in HEALTHY
        ],
    }


def allocatable_of(manifest: Manifest) -> dict[str, int]:
    """What pods may use of the node, in base units."""
    name = manifest["metadata"]["name"]
    amounts = manifest["status"]["allocatable"]
    return {
        resource: quantity.base_units(resource, amounts[resource], f"{name}: {resource}")
        for resource in sorted(amounts)
    }


def _mapping(parent: Manifest, field: str, whose: str) -> Manifest:
    value = parent.get(field)
    if value is None:
        value = {}
    if not isinstance(value, dict):
        raise NodeError(f"{whose}: {field} is not a mapping")
    parent[field] = value
    return value


def _amounts(status: Manifest, field: str, name: str) -> dict[str, Any]:
    amounts = _mapping(status, field, name)
    for resource, amount in amounts.items():
        try:
            if quantity.base_units(resource, amount, f"status.{field}[{resource}]") < 0:
                raise NodeError(f"{name}: status.{field}[{resource}] is negative")
        except quantity.QuantityError as error:
            raise NodeError(f"{name}: {error}") from error
    # As the API server writes them, so that what it shows can be compared with what is meant.
    return {resource: quantity.canonical(str(amount)) for resource, amount in amounts.items()}
