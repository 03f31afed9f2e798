"""The choices an administrator may make about scheduling. Durations are seconds."""

from __future__ import annotations

from msgspec import Struct

from posse.engine.facts import Requests


class Policy(Struct, frozen=True):
    # Decide as ever, and carry nothing out. The engine does not heed it; who carries out does.
    frozen: bool = False
    # The schedulers' names that are answered to; empty: as the program was told. Heeded by who
    # reads the pods.
    claims: tuple[str, ...] = ()
    # Seconds a half-bound gang that never ran may take to be completed before it is let go.
    release_after: float = 30.0
    # Steps the search for a gang of several roles may take before it says `no placement found`.
    search_steps: int = 2_000
    # Node labels that make topology domains, the nearest first: tier 1, 2, 3.
    tiers: tuple[str, ...] = ("posse.dev/rack", "posse.dev/block", "topology.kubernetes.io/zone")
    # Spread members over nodes instead of packing them onto few.
    spread: bool = False
    # Whether a gang may end others of its queue, and of other queues.
    preemption: bool = True
    reclaim: bool = True
    # Nobody is a victim before it ran this long, or once it was one so often.
    min_runtime: float = 0.0
    most_evictions: int = 3
    # How long room freed by evictions is kept for whom it was freed.
    preemption_hold: float = 300.0
    # Whether a blocked gang gets a reservation, and others start around it.
    backfill: bool = True
    # What a gang whose start nobody can foretell bears before room is gathered for it.
    reserve_after: float = 300.0
    most_overtakes: int = 20
    # How long a lost member's seat is kept for its replacement before the gang is let go.
    repair_hold: float = 600.0
    # How long a gang may take from its nodes to running whole before it is let go; 0: for ever.
    start_timeout: float = 1800.0
    # How much each resource counts in a queue's dominant share, in thousandths; 1,000 if unnamed.
    share_weights: Requests = ()
