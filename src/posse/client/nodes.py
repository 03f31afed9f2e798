"""The nodes of the cluster and how many of their GPUs are taken."""

from __future__ import annotations

import msgspec

from posse.client.jobs import GPU
from posse.objects.nodes import Node
from posse.objects.pods import Pod
from posse.objects.quantity import base_units
from posse.objects.requests import pod_requests

_ROLE_LABEL = "node-role.kubernetes.io/"


class NodeUse(msgspec.Struct, frozen=True):
    name: str
    address: str
    role: str
    status: str
    gpus: int
    allocated: int


def read_nodes(nodes: list[Node], pods: list[Pod]) -> list[NodeUse]:
    taken: dict[str, int] = {}
    for pod in pods:
        if pod.spec.node_name and not pod.terminal:
            node = pod.spec.node_name
            taken[node] = taken.get(node, 0) + pod_requests(pod.spec).get(GPU, 0)
    return [_read(node, taken.get(node.metadata.name, 0)) for node in sorted(nodes, key=_name)]


def _name(node: Node) -> tuple[int, str]:
    return (len(node.metadata.name), node.metadata.name)


def _read(node: Node, taken: int) -> NodeUse:
    address = next((a.address for a in node.status.addresses if a.type == "InternalIP"), "N/A")
    roles = [
        label.removeprefix(_ROLE_LABEL)
        for label in sorted(node.metadata.labels)
        if label.startswith(_ROLE_LABEL)
    ]
    ready = any(c.type == "Ready" and c.status == "True" for c in node.status.conditions)
    status = "Ready" if ready else "NotReady"
    if node.spec.unschedulable:
        status += ",SchedulingDisabled"
    amount = node.status.allocatable.get(GPU, 0)
    return NodeUse(
        name=node.metadata.name,
        address=address,
        role=",".join(roles) or "<none>",
        status=status,
        gpus=base_units(GPU, str(amount), f"{node.metadata.name} {GPU}"),
        allocated=taken,
    )
