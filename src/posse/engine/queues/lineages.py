"""The tree that queues make: who is part of whom, and what is wrong with that.

A queue that nobody described is there too, without limits, while something is charged to it;
`default` always is. A queue named `root`, where there is one, is the parent of all that name none.
One that names a parent which does not exist, or that is its own ancestor, has no place: it hangs
from the top until it is mended, and says why.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from posse.engine.columns import Rows
from posse.engine.decisions import Verdict
from posse.engine.facts import DEFAULT_QUEUE, QueueFacts

ROOT: Final = "root"
TOP: Final = ""


@dataclass(slots=True, eq=False)
class Queue:
    """One place in the tree. `chain` are the rows of the queue and its ancestors, itself first.

    `path` are the same as plain numbers; `above` and `within` without the first, and without the
    last; `limited` those of them that have an upper limit.
    """

    facts: QueueFacts
    row: int
    described: bool
    name: str = field(init=False)
    parent: Queue | None = None
    children: list[Queue] = field(default_factory=list)
    chain: Rows = field(default_factory=lambda: np.zeros(0, np.intp))
    above: Rows = field(default_factory=lambda: np.zeros(0, np.intp))
    within: Rows = field(default_factory=lambda: np.zeros(0, np.intp))
    path: list[int] = field(default_factory=list)
    limited: list[int] = field(default_factory=list)
    # Something is guaranteed to it or to an ancestor.
    assured: bool = False
    # Why nothing may start in it: it has no place in the tree, or could not be read.
    problem: str = ""
    # The rows and the weight of its children together.
    rows_below: Rows = field(default_factory=lambda: np.zeros(0, np.intp))
    weight_below: int = 0
    # By namespace, as far as anybody asked: why its gangs may not start in it, if they may not.
    # Any change of the queues makes another tree.
    refusals: dict[str, Verdict | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.name = self.facts.name

    @property
    def weight(self) -> int:
        return max(1, self.facts.weight)

    @property
    def real(self) -> bool:
        return self.described or self.name == DEFAULT_QUEUE

    @property
    def takes_work(self) -> bool:
        return self.real and self.facts.open and not self.problem

    def lineage(self) -> Iterator[Queue]:
        """The queue and its ancestors, itself first."""
        at: Queue | None = self
        while at is not None:
            yield at
            at = at.parent


def arrange(facts: Mapping[str, QueueFacts], names: Iterable[str]) -> list[Queue]:
    """The queues of these names, below the top, which comes first: level by level, by name."""
    queues = {
        name: Queue(facts.get(name) or QueueFacts(name), 0, name in facts)
        for name in sorted({*names, DEFAULT_QUEUE})
    }
    top = Queue(QueueFacts(TOP), 0, False)
    for queue in queues.values():
        queue.problem = queue.facts.problem
        queue.parent = _parent_of(queue, queues, top)
    # All are found before any is taken apart: each of those in a circle says so.
    circles = [(queue, circle) for queue in queues.values() if (circle := _circle(queue))]
    for queue, circle in circles:
        queue.problem = queue.problem or f"is its own ancestor ({circle})"
        queue.parent = top
    for queue in queues.values():
        assert queue.parent is not None
        queue.parent.children.append(queue)
    ordered = [top]
    for at in ordered:
        ordered += at.children
    for row, queue in enumerate(ordered):
        queue.row = row
        queue.path = [each.row for each in queue.lineage()]
        queue.chain = np.array(queue.path, np.intp)
        queue.above, queue.within = queue.chain[1:], queue.chain[:-1]
        queue.limited = [each.row for each in queue.lineage() if each.facts.capability]
        queue.assured = any(each.facts.guarantee for each in queue.lineage())
    for queue in ordered:
        queue.rows_below = np.array([child.row for child in queue.children], np.intp)
        queue.weight_below = sum(child.weight for child in queue.children if child.real)
    return ordered


def branches(one: Queue, other: Queue) -> tuple[list[Queue], list[Queue]]:
    """Each of the two and who is above it, up to where they meet."""
    mine, theirs = list(one.lineage()), list(other.lineage())
    while mine and theirs and mine[-1] is theirs[-1]:
        del mine[-1], theirs[-1]
    return mine, theirs


def _parent_of(queue: Queue, queues: Mapping[str, Queue], top: Queue) -> Queue:
    name = queue.facts.parent or ROOT
    if queue.name == ROOT:
        return top
    parent = queues.get(name)
    if name == ROOT:
        return top if parent is None or not parent.described else parent
    if parent is None or not (parent.described or name == DEFAULT_QUEUE):
        queue.problem = queue.problem or f"is part of queue {name}, which does not exist"
        return top
    return parent


def _circle(queue: Queue) -> str:
    """The way from the queue back to itself, if it is its own ancestor."""
    seen: list[str] = []
    at: Queue | None = queue
    while at is not None and at.name not in seen:
        seen.append(at.name)
        at = at.parent
    return ", ".join([*seen, queue.name]) if at is queue else ""
