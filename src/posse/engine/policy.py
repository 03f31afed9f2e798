"""The choices an administrator may make about scheduling."""

from __future__ import annotations

from msgspec import Struct


class Policy(Struct, frozen=True):
    # Decide as ever, and carry nothing out. The engine does not heed it; who carries out does.
    frozen: bool = False
    # Seconds a half-bound gang that never ran may take to be completed before it is let go.
    release_after: float = 30.0
    # Seconds the seats of members that a running gang lost are kept while their successors are
    # still to come; after that others may have them.
    keep_vacant: float = 60.0
    # Steps the search for a gang of several roles may take before it says `no placement found`.
    search_steps: int = 2_000
