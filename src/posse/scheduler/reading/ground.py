"""Keeps the view's nodes in step with their cache, and says which of them can be trusted."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from posse.engine.facts import Constraints, NodeFacts
from posse.engine.fit.eligibility import Bar, bar
from posse.engine.view import View
from posse.objects.kinds import NODE
from posse.objects.meta import Key
from posse.objects.nodes import Node
from posse.scheduler.reading.nodes import read_node
from posse.scheduler.reading.quarantine import Quarantine


class Ground:
    """`attachable` says how many volumes a node takes, as its storage drivers say elsewhere."""

    def __init__(
        self,
        view: View,
        quarantine: Quarantine,
        nodes: dict[str, Node],
        attachable: Callable[[str], Mapping[str, int]],
    ) -> None:
        self._view = view
        self._quarantine = quarantine
        self._nodes = nodes
        self._attachable = attachable
        # Pods whose requests nobody can tell, by the node that they are on.
        self._spoilers: dict[str, dict[str, None]] = {}
        self._undecodable: dict[Key, str] = {}
        self._facts: dict[str, NodeFacts] = {}

    def put(self, node: Node) -> None:
        self._nodes[node.metadata.name] = node
        self._set(node)

    def remove(self, node: Node) -> None:
        name = node.metadata.name
        self._nodes.pop(name, None)
        self._facts.pop(name, None)
        self._quarantine.discharge(node.metadata.uid)
        self._view.remove_node(name)

    def labels_of(self, node: str) -> Mapping[str, str]:
        found = self._nodes.get(node)
        return {} if found is None else found.metadata.labels

    def takes(self, node: str, constraints: Constraints) -> bool:
        """Whether the node may still be given to such a pod, by the rule that decisions go by."""
        return bar(self._facts.get(node), constraints) is Bar.NONE

    def undecodable(self, nodes: Mapping[Key, str]) -> None:
        """The pods that are no pods to us, each with its node ("" for none), as they are now."""
        before, self._undecodable = self._undecodable, dict(nodes)
        for node in dict.fromkeys((*before.values(), *nodes.values())):
            self._look_again(node)

    def spoil(self, node: str, uid: str, spoils: bool) -> None:
        """Nothing new goes to a node while a pod there takes nobody knows how much."""
        there = self._spoilers.get(node, {})
        if not node or (uid in there) == spoils:
            return
        if spoils:
            self._spoilers.setdefault(node, {})[uid] = None
        else:
            del there[uid]
            if not there:
                del self._spoilers[node]
        self._look_again(node)

    def limits_changed(self, node: str | None) -> None:
        """What a node attaches has changed; None: what all of them do."""
        for each in self._nodes if node is None else (node,):
            self._look_again(each)

    def _look_again(self, node: str) -> None:
        if found := self._nodes.get(node):
            self._set(found)

    def _set(self, node: Node) -> None:
        name = node.metadata.name
        trusted = name not in self._spoilers and name not in self._undecodable.values()
        facts, why = read_node(node, trusted=trusted, attachable=self._attachable(name))
        if why:
            self._quarantine.admit(NODE, node, node.metadata.uid, why)
        else:
            self._quarantine.discharge(node.metadata.uid)
        self._facts[facts.name] = facts
        self._view.set_node(facts)
