"""Nodes: what they offer, and whether they take anything."""

from __future__ import annotations

from collections.abc import Mapping

from posse.engine.facts import NodeFacts, Taint
from posse.objects.nodes import Node
from posse.scheduler.reading.amounts import read_units
from posse.scheduler.reading.quarantine import Unreadable

# An autoscaler is about to delete the node. A pod that tolerates the taint may stay until then,
# but a gang that begins there would lose a member at once.
_LEAVING = ("ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted")


def read_node(
    node: Node, *, trusted: bool = True, attachable: Mapping[str, int] | None = None
) -> tuple[NodeFacts, str]:
    """Facts, and what could not be read of them ("" when all could).

    A node that is not wholly understood stays in the view, so that whatever runs there keeps its
    seat, but takes nothing new; nor does one that is not `trusted`. `attachable`: what its storage
    drivers say of it elsewhere.
    """
    allocatable: dict[str, int] = {}
    why = ""
    for resource, amount in sorted(node.status.allocatable.items()):
        try:
            allocatable[resource] = read_units(resource, amount, f"status.allocatable[{resource}]")
        except Unreadable as error:
            why = why or str(error)
    allocatable |= attachable or {}
    facts = NodeFacts(
        name=node.metadata.name,
        allocatable=allocatable,
        labels=node.metadata.labels,
        taints=tuple(Taint(t.key, t.value, t.effect) for t in node.spec.taints),
        ready=node.ready,
        schedulable=node.schedulable,
        closed="being removed" if _leaves(node) else "quarantined" if why or not trusted else "",
    )
    return facts, why


def _leaves(node: Node) -> bool:
    return node.metadata.deleting or any(taint.key in _LEAVING for taint in node.spec.taints)
