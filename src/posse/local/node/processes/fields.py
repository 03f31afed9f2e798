"""The downward API: what a pod may be told of itself."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from posse.objects import quantity

Manifest = dict[str, Any]

_SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")


class Facts(msgspec.Struct, frozen=True):
    """What only the node knows of the pod."""

    pod_ip: str
    host_ip: str
    allocatable: dict[str, str]  # what a container without a limit could use


def field_value(pod: Manifest, path: str, facts: Facts) -> str:
    """ValueError where there is no such field."""
    metadata, spec = pod["metadata"], pod["spec"]
    if match := _SUBSCRIPT.fullmatch(path):
        return str((metadata.get(match[1]) or {}).get(match[2], ""))
    match path:
        case "metadata.name" | "metadata.namespace" | "metadata.uid":
            return str(metadata.get(path.partition(".")[2], ""))
        case "metadata.labels" | "metadata.annotations":
            return _listed(metadata.get(path.partition(".")[2]) or {})
        case "spec.nodeName":
            return str(spec.get("nodeName", ""))
        case "spec.serviceAccountName":
            return str(spec.get("serviceAccountName") or "default")
        case "status.podIP" | "status.podIPs":
            return facts.pod_ip
        case "status.hostIP" | "status.hostIPs":
            return facts.host_ip
        case _:
            raise ValueError(f"unsupported fieldPath: {path}")


def resource_value(
    pod: Manifest, reference: Mapping[str, Any], container: str, facts: Facts
) -> str:
    """`limits.cpu` and its like, divided by the divisor and rounded up."""
    whose = str(reference.get("containerName") or container)
    which, _, resource = str(reference.get("resource", "")).partition(".")
    if which not in ("limits", "requests") or not resource:
        raise ValueError(f"unsupported container resource: {reference.get('resource')}")
    asked = _resources(pod, whose)
    amount = (asked.get(which) or {}).get(resource)
    if amount is None and which == "requests":
        amount = (asked.get("limits") or {}).get(resource) or "0"
    if amount is None:
        amount = facts.allocatable.get(resource, "0")
    divisor = str(reference.get("divisor") or "1")
    if divisor in ("0", ""):
        divisor = "1"
    field = f"{which}.{resource}"
    base = quantity.base_units(resource, str(amount), field)
    # A divisor counts in the unit of its resource: `1m` of a cpu is one base unit, `1` a thousand.
    return str(-(-base // max(1, quantity.base_units(resource, divisor, "divisor"))))


def _resources(pod: Manifest, name: str) -> Manifest:
    spec = pod["spec"]
    for container in [*(spec.get("initContainers") or []), *(spec.get("containers") or [])]:
        if container.get("name") == name:
            return container.get("resources") or {}
    raise ValueError(f"container {name} not found")


def _listed(values: Mapping[str, str]) -> str:
    """As files of a downwardAPI volume show labels: one `key="value"` a line."""
    return "\n".join(f"{key}={_quoted(str(values[key]))}" for key in sorted(values))


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + escaped.replace("\n", "\\n").replace("\t", "\\t") + '"'
