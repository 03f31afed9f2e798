"""What the engine answers: seats to bind, seats to hold, gangs to let go, and why others wait."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from posse.engine.facts import Keeps


class Seat(Struct, frozen=True, gc=False):
    """This pod goes to this node."""

    uid: str
    pod: str
    node: str


class HeldSeat(Struct, frozen=True, gc=False):
    """Room kept on this node for a member of this role that has no pod yet."""

    role: str
    node: str


class Start(Struct, frozen=True):
    """Bind these seats together.

    With them the gang is whole, or as whole as its minimum asks; it may be a first start, the
    completion of a half-bound gang, a replacement, or members beyond the minimum. `holds` are all
    seats the gang holds from now on: they must be written before the first bind. A Start without
    seats says only that the holds moved.
    """

    gang: str
    seats: tuple[Seat, ...]
    holds: tuple[HeldSeat, ...] = ()


class Release(Struct, frozen=True):
    """Give up these (uid, name) pods: the gang is half-bound and cannot be completed."""

    gang: str
    pods: tuple[tuple[str, str], ...]
    why: str


class Victim(Struct, frozen=True):
    """Pods of one gang that end so that another may start: all of them, or surplus members."""

    gang: str
    pods: tuple[tuple[str, str], ...]
    whole: bool
    why: str


class Evict(Struct, frozen=True):
    """End the victims: with their room `gang` fits whole, on the seats kept for it from now on.

    What is kept is written before the first victim ends; all of them end, or none does.
    """

    gang: str
    victims: tuple[Victim, ...]
    keeps: Keeps


class Keep(Struct, frozen=True):
    """What is kept for the gang has changed; None: nothing any more. Written off the bind path."""

    gang: str
    keeps: Keeps | None
    # How often others started before it, where that is to be written too.
    overtaken: int | None = None


class Reason(Enum):
    """Why a gang waits. Autoscalers add nodes for the first one only."""

    UNSCHEDULABLE = "Unschedulable"
    INCOMPLETE = "GangIncomplete"
    QUEUE_CLOSED = "QueueClosed"
    QUEUE_MISSING = "QueueMissing"
    QUEUE_FORBIDDEN = "QueueForbidden"
    QUEUE_BROKEN = "QueueMalformed"
    QUOTA = "QueueQuotaExceeded"
    RESERVED = "Reserved"
    # It has its nodes, and does not come to run.
    OVERDUE = "StartTimeout"


class Cause(Enum):
    """What kind of story an UNSCHEDULABLE verdict tells: the first four need other nodes."""

    BARRED = "NoNodeMayTakeIt"
    TOO_LARGE = "PodLargerThanAnyNode"
    TOO_MANY = "MoreThanTheClusterHas"
    TOO_FAR = "NoDomainIsLargeEnough"
    BUSY = "RoomInUse"
    FRAGMENTED = "RoomInPieces"
    APART = "NoDomainHasRoom"
    NOT_TOGETHER = "RolesDoNotFitTogether"
    # What pods ask of one another: host ports, affinity, spread, claims for one pod alone.
    COMPANY = "CompanyDoesNotSuit"
    # Of an INCOMPLETE one: there are enough pods, but not of every role.
    ROLE_MISSING = "NotEnoughPodsOfTask"


# Of these no waiting helps.
NEVER = (Cause.BARRED, Cause.TOO_LARGE, Cause.TOO_MANY, Cause.TOO_FAR)


class Shortage(Struct, frozen=True):
    """One resource the gang is short of, in base units: asked in all, free now, and in total.

    `free` and `total` count the nodes that the gang may use.
    """

    resource: str
    asked: int
    free: int
    total: int


class Verdict(Struct, frozen=True):
    """Why a gang waits, in one sentence that reads well after `<name> waits: `."""

    reason: Reason
    sentence: str
    cause: Cause | None = None
    short: tuple[Shortage, ...] = ()
    # The gang runs at its minimum; only members beyond it wait.
    surplus: bool = False
    # Its place in the line of its queue, from 1, while it is among the first; 0: behind them, or in
    # no line at all.
    position: int = 0
    # When it starts if everybody ends as they said; None: nobody can know.
    starts_at: float | None = None


class Wait(Struct, frozen=True):
    gang: str
    verdict: Verdict


Decision = Start | Release | Evict | Keep | Wait
