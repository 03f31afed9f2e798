"""Who sits near whom: found by what pods say of one another, when somebody asks.

A cluster whose pods say nothing of one another pays two tests per pod that comes or goes. Pods
that do (host ports, anti-affinity, claims for one pod alone) are kept by what they say. The labels
of all others are sorted by a key only once a selector asks for that key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from posse.engine.columns import Columns, Rows
from posse.engine.facts import Constraints, NodeFacts, PodFacts
from posse.engine.fit.eligibility import untolerated, wanted_by_label
from posse.engine.fit.seating import Seating
from posse.engine.fit.terms import HostPort, PodTerm, Requirement, Selector
from posse.engine.gangs import NOWHERE, Member

K = TypeVar("K")
I = TypeVar("I")  # noqa: E741
V = TypeVar("V")

Mask = NDArray[np.bool_]

_MOST_COUNTED: Final = 64
# So many domains more than twice the rows may be numbered before the dead ones are forgotten.
_SPARE_NUMBERS: Final = 64
_UNLABELLED: Final[Mapping[str, str]] = {}


class Domains:
    """For one node label, the domain of each row as a number; -1 where a node has no such label."""

    def __init__(self, columns: Columns, key: str) -> None:
        self._columns = columns
        self._key = key
        self._number: dict[str, int] = {}
        self._ids: Rows = np.zeros(0, np.intp)
        self._seen: list[NodeFacts | None] = []
        self._clock = -1
        self._single: bool | None = None

    def __len__(self) -> int:
        return len(self._number)

    def ids(self) -> Rows:
        columns = self._columns
        if self._clock != columns.clock:
            rows = columns.touched_since(self._clock)
            self._clock = columns.clock
            missing = len(columns.nodes) - len(self._seen)
            self._seen.extend([None] * missing)
            self._ids = np.pad(self._ids, (0, missing), constant_values=-1)
            for row in rows.tolist():
                node = columns.nodes[row]
                if self._seen[row] is not node:
                    self._seen[row] = node
                    self._ids[row] = self._domain(node)
                    self._single = None
            if len(self._number) > 2 * len(self._seen) + _SPARE_NUMBERS:
                self._renumber()
        return self._ids

    @property
    def single(self) -> bool:
        """Every domain is one node."""
        ids = self.ids()
        if self._single is None:
            self._single = bool(np.bincount(ids[ids >= 0], minlength=1).max() <= 1)
        return self._single

    def _renumber(self) -> None:
        """Most of the domains have no node any more. Each of them was a change of some node since
        the last time: as much as this costs."""
        self._number = {}
        self._ids = np.array([self._domain(node) for node in self._seen], np.intp)

    def _domain(self, node: NodeFacts | None) -> int:
        value = None if node is None else node.labels.get(self._key)
        return -1 if value is None else self._number.setdefault(value, len(self._number))


class Neighbours:
    def __init__(self, columns: Columns, members: Mapping[str, Member]) -> None:
        self._columns = columns
        self._members = members
        # How many of each gang sit; and who sits that is not ours and has devices.
        self.sitting: dict[str, int] = {}
        self.foreign: dict[str, Member] = {}
        # Who is not ours and is to sit where it is counted already.
        self.nominees: dict[str, Member] = {}
        self._domains: dict[str, Domains] = {}
        self._namespaces: dict[str, Mapping[str, str]] = {}
        # Seated pods by what they say.
        self._avoiding: dict[PodTerm, dict[str, Member]] = {}
        self._on_port: dict[tuple[int, str], dict[str, Member]] = {}
        self._claiming: dict[str, dict[str, Member]] = {}
        # The terms of `_avoiding` by a label they ask for; "" for those that ask for none.
        self._terms: dict[tuple[str, str], dict[PodTerm, None]] = {}
        # Nodes that count as domains, by what a spread says of them, as of some change of nodes.
        self._counted: dict[object, tuple[int, Mask]] = {}
        # Seated pods by label key and value, for the keys that were asked for.
        self._labelled: dict[str, dict[str, dict[str, Member]]] = {}
        # Pods that a trial takes for gone, though they have not left their rows.
        self._apart: dict[str, Member] = {}

    # -- events ------------------------------------------------------------------------------

    def seat(self, member: Member) -> None:
        """This pod came to the node of its row."""
        self._columns.moves += 1
        gang = member.facts.gang
        if gang is not None:
            self.sitting[gang] = self.sitting.get(gang, 0) + 1
        elif member.seating.asks_devices:
            self.foreign[member.facts.uid] = member
        if member.facts.nominated:
            self.nominees[member.facts.uid] = member
        self._enter(member)

    def seat_all(self, gang: str, members: list[Member], seatings: Iterable[Seating]) -> None:
        """These pods of one gang, of these shapes, came to the nodes of their rows."""
        if not members:
            return
        self._columns.moves += len(members)
        self.sitting[gang] = self.sitting.get(gang, 0) + len(members)
        if self._labelled or any(seating.related for seating in seatings):
            for member in members:
                self._enter(member)

    def _enter(self, member: Member) -> None:
        """Under what it says, and under the labels that were asked for."""
        if member.seating.related:
            self._note(member)
        for key, values in self._labelled.items():
            value = member.facts.labels.get(key)
            if value is not None:
                values.setdefault(value, {})[member.facts.uid] = member

    def unseat(self, member: Member) -> None:
        self._columns.moves += 1
        gang = member.facts.gang
        if gang is not None:
            self.sitting[gang] -= 1
            if not self.sitting[gang]:
                del self.sitting[gang]
        elif member.seating.asks_devices:
            del self.foreign[member.facts.uid]
        if member.facts.nominated:
            del self.nominees[member.facts.uid]
        if member.seating.related:
            self._strike(member)
        for key, values in self._labelled.items():
            value = member.facts.labels.get(key)
            if value is not None:
                _drop(values, value, member.facts.uid)

    def part(self, member: Member) -> None:
        """For a trial, this pod is not where it is, until `rejoin`."""
        self.unseat(member)
        self._apart[member.facts.uid] = member

    def rejoin(self, member: Member) -> None:
        del self._apart[member.facts.uid]
        self.seat(member)

    def replace(self, old: Member, new: Member) -> None:
        """The same pod on the same node, as it is known now."""
        moves = self._columns.moves
        self.unseat(old)
        self.seat(new)
        same = old.facts.labels == new.facts.labels and old.facts.deleting == new.facts.deleting
        self._columns.moves = moves if same else moves + 1

    def set_namespace(self, name: str, labels: Mapping[str, str]) -> None:
        if self._namespaces.get(name) != labels:
            self._namespaces[name] = labels
            self._columns.moves += 1

    def remove_namespace(self, name: str) -> None:
        if self._namespaces.pop(name, None) is not None:
            self._columns.moves += 1

    def _note(self, member: Member) -> None:
        relations = member.seating.shape.relations
        assert relations is not None
        uid = member.facts.uid
        for term in relations.avoids:
            self._avoiding.setdefault(term, {})[uid] = member
            for label in _labels_of(term):
                self._terms.setdefault(label, {})[term] = None
        for port in relations.ports:
            self._on_port.setdefault((port.port, port.protocol), {})[uid] = member
        for claim in relations.claims:
            self._claiming.setdefault(claim, {})[uid] = member

    def _strike(self, member: Member) -> None:
        relations = member.seating.shape.relations
        assert relations is not None
        uid = member.facts.uid
        for term in relations.avoids:
            _drop(self._avoiding, term, uid)
            if term not in self._avoiding:
                for label in _labels_of(term):
                    _drop(self._terms, label, term)
        for port in relations.ports:
            _drop(self._on_port, (port.port, port.protocol), uid)
        for claim in relations.claims:
            _drop(self._claiming, claim, uid)

    # -- questions ---------------------------------------------------------------------------

    def concern(self, members: Iterable[Member]) -> bool:
        """Whether company can keep any of these pods, of one shape, off a node."""
        for member in members:
            relations = member.seating.shape.relations
            if relations is not None and relations.binding:
                return True
            if not self._avoiding:
                return False
            if next(self.avoiding(member.facts), None) is not None:
                return True
        return False

    def avoiding(self, pod: PodFacts) -> Iterator[PodTerm]:
        """The anti-affinities of seated pods that speak of this one."""
        if not self._avoiding:
            return
        for label in (("", ""), *pod.labels.items()):
            for term in self._terms.get(label, ()):
                if self.matches(term, pod):
                    yield term

    def matches(self, term: PodTerm, pod: PodFacts) -> bool:
        namespace = pod.namespace
        return term.matches(namespace, pod.labels, self._namespaces.get(namespace, _UNLABELLED))

    def owners(self, term: PodTerm) -> Iterable[Member]:
        return self._avoiding.get(term, {}).values()

    def on_port(self, port: HostPort) -> Iterable[Member]:
        return self._on_port.get((port.port, port.protocol), {}).values()

    def claiming(self, claim: str) -> Iterable[Member]:
        return self._claiming.get(claim, {}).values()

    def labelled(self, selector: Selector) -> Iterator[Member]:
        """Seated pods with such labels."""
        asked = next((each for each in selector.requirements if each.operator == "In"), None)
        for member in self._seated() if asked is None else self._with(asked):
            if selector.matches(member.facts.labels):
                yield member

    def domains(self, key: str) -> Domains:
        found = self._domains.get(key)
        if found is None:
            found = self._domains[key] = Domains(self._columns, key)
        return found

    def counted(
        self, keys: tuple[str, ...], constraints: Constraints, by_affinity: bool, by_taints: bool
    ) -> Mask:
        """The rows of nodes that are domains to a spread constraint at all."""
        asked = (keys, constraints, by_affinity, by_taints)
        known = self._counted.get(asked)
        if known is not None and known[0] == self._columns.last_altered:
            return known[1]
        counted: Mask = np.zeros(len(self._columns.nodes), bool)
        for row, node in enumerate(self._columns.nodes):
            counted[row] = (
                node is not None
                and all(key in node.labels for key in keys)
                and (not by_affinity or wanted_by_label(node, constraints))
                and (not by_taints or untolerated(node, constraints) is None)
            )
        if len(self._counted) >= _MOST_COUNTED:
            self._counted.clear()
        self._counted[asked] = self._columns.last_altered, counted
        return counted

    def _with(self, asked: Requirement) -> Iterator[Member]:
        values = self._labelled.get(asked.key)
        if values is None:
            values = self._labelled[asked.key] = {}
            for member in self._seated():
                value = member.facts.labels.get(asked.key)
                if value is not None:
                    values.setdefault(value, {})[member.facts.uid] = member
        for value in asked.values:
            yield from values.get(value, {}).values()

    def _seated(self) -> Iterator[Member]:
        return (
            member
            for uid, member in self._members.items()
            if member.row != NOWHERE and uid not in self._apart
        )

    # -- proof -------------------------------------------------------------------------------

    def validate(self) -> None:
        """Recount from the members and compare. For tests."""
        assert not self._apart, f"a trial left {list(self._apart)} out"
        fresh = Neighbours(self._columns, self._members)
        moves = self._columns.moves
        for member in self._seated():
            fresh.seat(member)
        self._columns.moves = moves
        assert self.sitting == fresh.sitting, f"{self.sitting} is not {fresh.sitting}"
        assert self.foreign == fresh.foreign, f"{self.foreign} is not {fresh.foreign}"
        assert self.nominees == fresh.nominees, f"{self.nominees} is not {fresh.nominees}"
        for mine, theirs in (
            (self._avoiding, fresh._avoiding),
            (self._on_port, fresh._on_port),
            (self._claiming, fresh._claiming),
            (self._terms, fresh._terms),
        ):
            assert mine == theirs, f"{mine} is not {theirs}"
        for key, values in self._labelled.items():
            asked = Requirement(key, "In", ())
            assert list(fresh._with(asked)) == []
            assert values == fresh._labelled[key], f"label {key} is sorted wrongly"


def _labels_of(term: PodTerm) -> list[tuple[str, str]]:
    """Labels of which a pod has one, if the term speaks of it."""
    if term.selector is not None:
        for requirement in term.selector.requirements:
            if requirement.operator == "In":
                return [(requirement.key, value) for value in requirement.values]
    return [("", "")]


def _drop(sorted_by: dict[K, dict[I, V]], key: K, item: I) -> None:
    items = sorted_by.get(key)
    if items is not None:
        items.pop(item, None)
        if not items:
            del sorted_by[key]
