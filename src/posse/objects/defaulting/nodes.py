"""Nodes: what may be used is what there is, unless the agent says less."""

from __future__ import annotations

from posse.objects.defaulting.filling import fill, part, tidy_quantities
from posse.objects.raw import Raw, listing

_DESCRIBED = (
    "machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion",
    "kubeletVersion", "kubeProxyVersion", "operatingSystem", "architecture",
)  # fmt: skip


def default_node(node: Raw) -> None:
    spec = part(node, "spec")
    if spec.get("podCIDR") and not spec.get("podCIDRs"):
        spec["podCIDRs"] = [spec["podCIDR"]]
    elif (ranges := listing(spec, "podCIDRs")) and not spec.get("podCIDR"):
        spec["podCIDR"] = ranges[0]
    status = part(node, "status")
    tidy_quantities(status.get("capacity"))
    tidy_quantities(status.get("allocatable"))
    if status.get("allocatable") is None and isinstance(status.get("capacity"), dict):
        status["allocatable"] = dict(status["capacity"])
    fill(part(part(status, "daemonEndpoints"), "kubeletEndpoint"), "Port", 0)
    described = part(status, "nodeInfo")
    for name in _DESCRIBED:
        fill(described, name, "")
