"""How long to wait before trying again."""

from __future__ import annotations

from posse.world import World


class Backoff:
    """Doubling pauses with jitter, from `first` up to `most` seconds; success starts over."""

    def __init__(self, world: World, *, first: float = 0.05, most: float = 5.0) -> None:
        self._world = world
        self._first = first
        self._most = most
        self._next = first

    def pause(self) -> float:
        pause = self._next
        self._next = min(self._most, pause * 2)
        return self._world.jitter(pause)

    def reset(self) -> None:
        self._next = self._first
