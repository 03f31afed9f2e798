"""Nodes: what they offer, and whether they take anything."""

from __future__ import annotations

from collections.abc import Mapping

from posse.engine.facts import NodeFacts, Taint
from posse.engine.fit.eligibility import LEAVING
from posse.objects.nodes import Node
from posse.scheduler.reading.amounts import read_units
from posse.scheduler.reading.quarantine import Unreadable


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
    leaving = any(taint.key in LEAVING for taint in node.spec.taints)
    facts = NodeFacts(
        name=node.metadata.name,
        allocatable=allocatable,
        labels=node.metadata.labels,
        taints=tuple(Taint(t.key, t.value, t.effect) for t in node.spec.taints),
        ready=node.ready,
        schedulable=node.schedulable
        and trusted
        and not leaving
        and not why
        and not node.metadata.deleting,
    )
    return facts, why
