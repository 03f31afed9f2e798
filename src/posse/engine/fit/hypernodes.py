"""Domains that somebody has drawn by hand: each names its nodes, or the domains it is made of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from msgspec import Struct

from posse.engine.facts import NodeFacts
from posse.engine.fit.terms import Selector


class Membership(Struct, frozen=True):
    """Some nodes, or (`domains`) some other domains: of one name, of a pattern, of some labels."""

    domains: bool = False
    name: str = ""
    # Found anywhere in the name, unless it is anchored.
    pattern: str = ""
    labels: Selector | None = None


class HyperNodeFacts(Struct, frozen=True):
    name: str
    # 1 is the nearest, as a rule: whatever is smaller is nearer.
    tier: int
    tier_name: str = ""
    members: tuple[Membership, ...] = ()


class _Roll:
    """The nodes of one pattern or selector: a node is asked once, and again when it changes."""

    def __init__(self, membership: Membership) -> None:
        self.names: dict[str, None] = {}
        self._pattern = re.compile(membership.pattern) if membership.pattern else None
        self._labels = membership.labels

    def ask(self, changed: Iterable[NodeFacts], gone: Iterable[str]) -> None:
        for name in gone:
            self.names.pop(name, None)
        for node in changed:
            if self._takes(node):
                self.names[node.name] = None
            else:
                self.names.pop(node.name, None)

    def _takes(self, node: NodeFacts) -> bool:
        if self._pattern is not None:
            return self._pattern.search(node.name) is not None
        return self._labels is not None and self._labels.matches(node.labels)


class HyperNodes:
    def __init__(self) -> None:
        self.facts: dict[str, HyperNodeFacts] = {}
        self._nodes: dict[str, NodeFacts] = {}
        self._rolls: dict[Membership, _Roll] = {}

    def __bool__(self) -> bool:
        return bool(self.facts)

    def domains(self, nodes: Mapping[str, NodeFacts]) -> dict[str, list[str]]:
        """The names of each domain's nodes, those of the domains in it among them."""
        self._call(nodes)
        inside = {name: self._directly_inside(name) for name in self.facts}
        return {name: sorted(self._nodes_of(name, inside)) for name in sorted(self.facts)}

    def _call(self, nodes: Mapping[str, NodeFacts]) -> None:
        before, self._nodes = self._nodes, dict(nodes)
        changed = [node for name, node in nodes.items() if before.get(name) is not node]
        gone = [name for name in before if name not in nodes]
        rolls = self._rolls
        self._rolls = {}
        for facts in self.facts.values():
            for membership in facts.members:
                if membership.domains or membership.name:
                    continue
                roll = rolls.get(membership)
                if roll is None:
                    roll = _Roll(membership)
                    roll.ask(nodes.values(), ())
                elif membership not in self._rolls:
                    roll.ask(changed, gone)
                self._rolls[membership] = rolls[membership] = roll

    def _nodes_of(self, name: str, inside: Mapping[str, set[str]]) -> set[str]:
        """Its own and those of all domains inside, however deep, each of which is looked at once:
        domains that contain one another have the same nodes."""
        nodes: set[str] = set()
        reached, found = [name], {name}
        for domain in reached:
            for membership in self.facts[domain].members:
                if not membership.domains:
                    nodes.update(self._selected(membership))
            further = inside[domain] - found
            found |= further
            reached += further
        return nodes

    def _directly_inside(self, name: str) -> set[str]:
        members = self.facts[name].members
        return {inner for each in members if each.domains for inner in self._inner(each)}

    def _selected(self, membership: Membership) -> dict[str, None]:
        if membership.name:
            return {membership.name: None} if membership.name in self._nodes else {}
        return self._rolls[membership].names

    def _inner(self, membership: Membership) -> list[str]:
        if membership.name:
            return [membership.name] if membership.name in self.facts else []
        if not membership.pattern:
            return []
        pattern = re.compile(membership.pattern)
        return [name for name in self.facts if pattern.search(name)]
