"""What the outside tells the view: plain values, in base units, already understood.

Nothing here knows Kubernetes' objects. Whoever reads pods and groups turns them into these facts
once; equal facts compare equal, so an event that changes nothing costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

# Amounts per resource in base units (cpu in thousandths), sorted by name, zeros left out.
Requests = tuple[tuple[str, int], ...]

PODS: Final = "pods"
# More of anything than a node can have; the sums of a whole cluster still fit a column.
LARGEST: Final = 1 << 50
DEFAULT_QUEUE: Final = "default"


def requests_of(amounts: Mapping[str, int]) -> Requests:
    """The canonical form of a pod's requests: it always takes one of the node's pod slots."""
    asked = {name: amount for name, amount in amounts.items() if amount > 0}
    asked[PODS] = 1
    return tuple(sorted(asked.items()))


class Taint(Struct, frozen=True):
    key: str
    value: str = ""
    effect: str = "NoSchedule"


class Toleration(Struct, frozen=True):
    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: Taint) -> bool:
        """As Kubernetes matches them: an empty effect or key (with Exists) stands for all."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        if self.operator == "Exists":
            return True
        return self.operator in ("Equal", "") and bool(self.key) and self.value == taint.value


class Constraints(Struct, frozen=True):
    """Which nodes a pod may use at all, whatever room they have."""

    node_selector: tuple[tuple[str, str], ...] = ()
    tolerations: tuple[Toleration, ...] = ()


class Shape(Struct, frozen=True):
    """What makes two pods the same to the engine: they can trade places."""

    requests: Requests
    constraints: Constraints = Constraints()


class NodeFacts(Struct, frozen=True):
    name: str
    allocatable: dict[str, int]
    labels: dict[str, str] = {}
    taints: tuple[Taint, ...] = ()
    ready: bool = True
    schedulable: bool = True


class Expected(Struct, frozen=True):
    """Members announced before their pods exist: `count` of them in all, arrived or not."""

    role: str
    count: int
    shape: Shape


class GroupFacts(Struct, frozen=True):
    key: str
    uid: str
    queue: str = DEFAULT_QUEUE
    priority: int = 0
    created: float = 0.0
    min_member: int = 1
    # It has run whole once: from then on its seats are its own.
    started: bool = False
    expects: tuple[Expected, ...] = ()
    # (role, node) of seats held for announced members, as written before its first bind.
    holds: tuple[tuple[str, str], ...] = ()
    # Somebody recreates its pods, so letting go of some is not the end of them.
    recreated: bool = False


class PodFacts(Struct, frozen=True):
    """A pod that has not ended. `gang` is a GroupFacts.key; None: not ours, it only takes room."""

    uid: str
    name: str
    shape: Shape
    gang: str | None = None
    role: str = ""
    node: str | None = None
    created: float = 0.0
    deleting: bool = False


class QueueFacts(Struct, frozen=True):
    name: str
    open: bool = True
    weight: int = 1
