"""The choices an administrator may make about scheduling."""

from __future__ import annotations

from msgspec import Struct


class Policy(Struct, frozen=True):
    # Decide as ever, and carry nothing out. The engine does not heed it; who carries out does.
    frozen: bool = False
    # Seconds a half-bound gang that never ran may take to be completed before it is let go.
    release_after: float = 30.0
    # Steps the search for a gang of several roles may take before it says `no placement found`.
    search_steps: int = 2_000
