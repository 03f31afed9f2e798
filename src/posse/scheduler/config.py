"""What one scheduler is told when it starts."""

from __future__ import annotations

from pathlib import Path

import msgspec

from posse.engine.policy import Policy

LEASE_NAME = "posse-scheduler"
COMPONENT = "posse-scheduler"


class SchedulerConfig(msgspec.Struct, frozen=True, kw_only=True):
    namespace: str = "kube-system"
    """Where the lease lies."""

    identity: str = ""
    """Who holds the lease. A supervisor that starts at most one scheduler gives a stable name, and
    a restarted scheduler takes over at once; without one, each process is somebody new."""

    claims: tuple[str, ...] = ("posse",)
    """The schedulerNames whose pods are ours; other pods count as usage alone."""

    claim_all: bool = False
    """There is no other scheduler: every pod is ours, whatever name it asks for."""

    policy: Policy = Policy()

    policy_file: Path | None = None
    """Whose policy takes the place of `policy`, and is followed while the scheduler runs."""

    capture: Path | None = None
    """The directory in which what is decided, and on what, is recorded."""

    debounce: float = 0.003
    """Seconds from the first event to the cycle that answers it."""

    pace: float = 0.01
    """Seconds from the beginning of one cycle to that of the next, at least."""

    gangs_in_flight: int = 8
    """Gangs whose binds may be under way at once: as many can be half-bound by a crash."""

    binds_in_flight: int = 48
    """Requests that the binds of all gangs together may have open."""

    claim_patience: float = 600.0
    """Seconds that the claims of a gang may take to get their volumes where it is to start."""

    settle: float = 0.2
    """Seconds that a verdict must stand before it is written down: a gang whose pods are still
    arriving, or that is about to be bound, says nothing."""

    restate: float = 5.0
    """Seconds between two writings of one verdict whose numbers alone have changed."""

    tally: float = 2.0
    """Seconds from a change to the status of the queues that tells of it."""

    lease_duration: float = 15.0
    renew_every: float = 3.0
