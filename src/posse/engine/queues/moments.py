"""What is worked out once while nothing changes, however often it is asked for."""

from __future__ import annotations

from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Moment(dict[K, V]):
    """What is known of one moment; at another one, nothing is."""

    _now: object = None

    def known(self, now: object) -> Moment[K, V]:
        if self._now != now:
            self._now = now
            self.clear()
        return self
