"""Which nodes a pod may use at all: asked once per set of constraints, then per changed node."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from posse.engine.columns import Columns, Rows
from posse.engine.facts import Constraints, NodeFacts, Taint

_CORDON: Final = Taint("node.kubernetes.io/unschedulable")
_REPELLING: Final = ("NoSchedule", "NoExecute")
_DISCOURAGING: Final = "PreferNoSchedule"
# What one such taint weighs, or a cordon that is tolerated: more than any preference for the node.
_DISCOURAGED: Final = 100_000


class Bar(IntEnum):
    """What keeps a pod off a node; the first that applies is the one told."""

    NONE = 0
    UNKNOWN = 1
    SELECTOR = 2
    AFFINITY = 3
    VOLUME = 4
    NOT_READY = 5
    CLOSED = 6
    CORDON = 7
    TAINT = 8
    # Its queue is confined to other nodes.
    QUEUE = 9


# As numpy compares it fastest.
_NONE: Final = int(Bar.NONE)


def bar(node: NodeFacts | None, constraints: Constraints) -> Bar:
    if node is None:
        return Bar.UNKNOWN
    for key, value in constraints.node_selector:
        if node.labels.get(key) != value:
            return Bar.SELECTOR
    for choice in constraints.choices:
        if not choice.matches(node.name, node.labels):
            if choice.queue:
                return Bar.QUEUE
            return Bar.VOLUME if choice.volume else Bar.AFFINITY
    if not node.ready:
        return Bar.NOT_READY
    if node.closed:
        return Bar.CLOSED
    if not node.schedulable and not _tolerated(_CORDON, constraints):
        return Bar.CORDON
    if node.taints and untolerated(node, constraints) is not None:
        return Bar.TAINT
    return Bar.NONE


def liking(node: NodeFacts | None, constraints: Constraints) -> int:
    """How much the pod prefers this node to others, or the node would rather be without it: the
    more, the better."""
    if node is None or (node.schedulable and not (constraints.prefers or node.taints)):
        return 0
    liked = sum(
        preference.weight
        for preference in constraints.prefers
        if preference.term.matches(node.name, node.labels)
    )
    discouraged = sum(
        1
        for taint in node.taints
        if taint.effect == _DISCOURAGING and not _tolerated(taint, constraints)
    )
    if not node.schedulable and _tolerated(_CORDON, constraints):
        discouraged += 1
    return liked - _DISCOURAGED * discouraged


def wanted_by_label(node: NodeFacts, constraints: Constraints) -> bool:
    """Whether selector and affinity, without volumes, admit the node."""
    return all(node.labels.get(key) == value for key, value in constraints.node_selector) and all(
        choice.volume or choice.matches(node.name, node.labels) for choice in constraints.choices
    )


def untolerated(node: NodeFacts, constraints: Constraints) -> Taint | None:
    for taint in node.taints:
        if taint.effect in _REPELLING and not _tolerated(taint, constraints):
            return taint
    return None


def _tolerated(taint: Taint, constraints: Constraints) -> bool:
    return any(toleration.tolerates(taint) for toleration in constraints.tolerations)


class Eligibility:
    """The bars of one set of constraints, row by row; 0 where the node may be used."""

    def __init__(self, columns: Columns, constraints: Constraints) -> None:
        self.constraints = constraints
        self._columns = columns
        self._bars: NDArray[np.int8] = np.zeros(0, np.int8)
        self._likings: NDArray[np.int64] = np.zeros(0, np.int64)
        self._seen: list[NodeFacts | None] = []
        self._clock = self._altered = -1
        # It may not be all the same which of the nodes it is; and some may not be used at all.
        self.partial = self.selective = False

    def bars(self) -> NDArray[np.int8]:
        self.refresh()
        return self._bars[: len(self._seen)]

    def refresh(self) -> None:
        """Look at the nodes that changed since; one that says the same is not asked again."""
        columns = self._columns
        nodes = columns.nodes
        if self._altered == columns.last_altered and len(self._seen) == len(nodes):
            return
        if len(self._bars) < len(nodes):
            grown = np.full(2 * len(nodes), Bar.UNKNOWN, np.int8)
            grown[: len(self._bars)] = self._bars
            self._bars = grown
            self._likings = np.pad(self._likings, (0, len(grown) - len(self._likings)))
        self._seen.extend([None] * (len(nodes) - len(self._seen)))
        seen, touched = self._seen, columns.touched_since(self._clock).tolist()
        rows = [row for row in touched if seen[row] is not nodes[row]]
        self._seen = list(nodes)
        self._bars[rows] = _NONE
        self._likings[rows] = 0
        asks = self.constraints
        if not (asks.node_selector or asks.choices or asks.prefers):
            # Most pods may sit anywhere, and most nodes are open to all.
            rows = [
                row
                for row in rows
                if (node := nodes[row]) is None
                or node.taints
                or not (node.ready and node.schedulable)
                or node.closed
            ]
        bars = [bar(nodes[row], asks) for row in rows]
        liked = [liking(nodes[row], asks) for row in rows]
        self._bars[rows] = bars
        self._likings[rows] = liked
        self.partial = self.partial or any(liked)
        self.selective = self.selective or any(bars)
        self._clock, self._altered = columns.clock, columns.last_altered

    def at(self, rows: Rows) -> NDArray[np.bool_]:
        """Whether each of these rows, all refreshed before, may be used."""
        usable: NDArray[np.bool_] = self._bars[rows] == _NONE
        return usable

    def likings(self, rows: Rows) -> NDArray[np.int64]:
        """How much each of these rows, all refreshed before, is preferred."""
        return self._likings[rows]
