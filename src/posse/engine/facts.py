"""What the outside tells the view: plain values, in base units, already understood.

Nothing here knows Kubernetes' objects. Whoever reads pods and groups turns them into these facts
once; equal facts compare equal, so an event that changes nothing costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from msgspec import Struct

from posse.engine.fit.terms import Choice, Preference, Relations, Selector

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


class Toleration(Struct, frozen=True, cache_hash=True):
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
        if self.operator in ("Lt", "Gt"):
            bound, value = _integer(self.value), _integer(taint.value)
            if bound is None or value is None:
                return False
            return value < bound if self.operator == "Lt" else value > bound
        return self.operator in ("Equal", "") and bool(self.key) and self.value == taint.value


def _integer(text: str) -> int | None:
    """A number as Kubernetes writes it: no sign but a minus, no leading zeros, 64 bits."""
    if not text.isascii() or not text.removeprefix("-").isdecimal() or len(text) > 20:
        return None
    number = int(text)
    return number if str(number) == text and -(1 << 63) <= number < 1 << 63 else None


class Constraints(Struct, frozen=True, cache_hash=True):
    """Which nodes a pod may use at all, whatever room they have."""

    node_selector: tuple[tuple[str, str], ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    # Each must be met: required node affinity, and where the pod's volumes can be reached.
    choices: tuple[Choice, ...] = ()
    # Not required, but better.
    prefers: tuple[Preference, ...] = ()


class Shape(Struct, frozen=True, cache_hash=True):
    """What makes two pods the same to the engine: they can trade places.

    Where either speaks of other pods, or others of it, their labels count too.
    """

    requests: Requests
    constraints: Constraints = Constraints()
    relations: Relations | None = None


class NodeFacts(Struct, frozen=True):
    name: str
    allocatable: dict[str, int]
    labels: dict[str, str] = {}
    taints: tuple[Taint, ...] = ()
    ready: bool = True
    # Nobody has cordoned it: a cordon can be tolerated.
    schedulable: bool = True
    # What the node is, where that keeps everything new off it, whatever it tolerates; "" where not.
    closed: str = ""

    @property
    def open(self) -> bool:
        """Whether it takes pods of people who tolerate no more than its taints."""
        return self.ready and self.schedulable and not self.closed


class Expected(Struct, frozen=True):
    """Members announced before their pods exist: `count` of them in all, arrived or not."""

    role: str
    count: int
    shape: Shape


class Purpose(Enum):
    """What a gang's kept seats are for. The values are written on the PodGroup."""

    # A member that died: its replacement finds its place.
    REPAIR = "repair"
    # The room that evictions were made for.
    PREEMPTION = "preemption"
    # Room that is gathered for a gang which waited for too long.
    RESERVATION = "reservation"


class Keeps(Struct, frozen=True):
    """Seats kept for members that wait or are to come, until a date (seconds; None: no end)."""

    purpose: Purpose
    # (role, node), sorted; a node once per seat.
    seats: tuple[tuple[str, str], ...]
    until: float | None = None
    # What they ask for, of the roles that nobody is left of who could tell.
    asks: tuple[tuple[str, Shape], ...] = ()


class Topology(Struct, frozen=True):
    """How near to each other the members sit: in one domain of a tier or of a node label.

    A tier is a number (1 is the nearest) or a name; a key is the label of that domain's nodes.
    Not required means: as near as there is room.
    """

    required: bool = True
    tier: int | None = None
    tier_name: str = ""
    key: str = ""


class GroupFacts(Struct, frozen=True):
    """Times are in the seconds of the cycle's `now`."""

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
    # Should it have lost all its members at once, they come back: nobody called them off.
    returns: bool = False
    # (role, minimum): so many of that role are part of any whole gang.
    role_minimums: tuple[tuple[str, int], ...] = ()
    # The gang as a whole asks at least this, whatever its pods add up to.
    min_resources: Requests = ()
    topology: Topology | None = None
    # How near the members of a part of it sit, by what is in front of the slash in its name.
    nearer: tuple[tuple[str, Topology], ...] = ()
    # (the same, so many of a part start together or nobody does, so many such parts it needs).
    squads: tuple[tuple[str, int, int], ...] = ()
    # (part, so many of it ended well): nobody misses them.
    ended: tuple[tuple[str, int], ...] = ()
    # It may end others to be placed; others may end it.
    preempts: bool = True
    preemptable: bool = True
    # Its members may be ended one by one, even below its minimum; or only all together, those
    # beyond its minimum too.
    severable: bool = False
    indivisible: bool = False
    # Others may be ended for members beyond its minimum, too.
    grows: bool = False
    # Its members wait for nobody: each is served as a pod of its own would be.
    loose: bool = False
    # When its minimum first had its nodes; None while it never had.
    began: float | None = None
    # How long it runs at most, from then on; None: nobody said.
    runs_for: float | None = None
    # It is nobody's victim before it ran this long; None: as the policy says.
    min_runtime: float | None = None
    # No more than this much work is lost when it ends early; None: all since it began.
    checkpoint_interval: float | None = None
    # How often it was ended for others, and how often others started before it.
    evictions: int = 0
    overtaken: int = 0
    # What an earlier life kept for it, and how many ran when that last looked; 0: nobody knows.
    keeps: Keeps | None = None
    ran_with: int = 0
    # How long it may take from its nodes to running whole; None: as the policy says.
    start_timeout: float | None = None

    @property
    def namespace(self) -> str:
        """Keys are `namespace/name`; some say in front what the name is of, up to a colon."""
        return self.key.rpartition(":")[2].partition("/")[0]


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
    # How many seconds it was given to end, since it is being deleted.
    grace: float = 0.0
    # It has begun to run: bound is not enough.
    running: bool = False
    # Why it does not run yet, if its node says: `ImagePullBackOff (no such image)`.
    trouble: str = ""
    # What other pods' affinities see of it.
    labels: Mapping[str, str] = {}
    # Beside its fellows: who of them is seated first, and spared longest.
    priority: int = 0
    # It may be ended for others.
    preemptable: bool = True
    # The part of the gang that it belongs to; "": none.
    part: str = ""
    # It is not on its node yet: another scheduler makes room for it there.
    nominated: bool = False

    @property
    def namespace(self) -> str:
        return self.name.partition("/")[0]


class BudgetFacts(Struct, frozen=True):
    """How many of the pods of one namespace that match may be ended now. No selector: of none."""

    namespace: str
    name: str
    selector: Selector | None
    allowed: int

    @property
    def key(self) -> tuple[str, str]:
        return self.namespace, self.name


class NamespaceFacts(Struct, frozen=True):
    """What the affinities of pods see of a namespace."""

    name: str
    labels: dict[str, str] = {}


class QueueFacts(Struct, frozen=True):
    """A resource that `deserved` or `capability` does not name is unlimited, not zero."""

    name: str
    open: bool = True
    weight: int = 1
    # "" stands for the root, whose children are all queues that name no other.
    parent: str = ""
    priority: int = 0
    # Whether others may have back what it uses beyond its share.
    reclaimable: bool = True
    guarantee: Requests = ()
    deserved: Requests = ()
    capability: Requests = ()
    # Whether who comes first must have started before the next one does.
    fifo: bool = False
    # The namespaces whose gangs may use it; None: those that may use its parent.
    namespaces: tuple[str, ...] | None = None
    # Why nothing new may start in it: it says something that nobody can read.
    problem: str = ""
