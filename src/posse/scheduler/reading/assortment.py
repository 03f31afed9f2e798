"""What storage offers, by the class of claims that may have it: taken in when it comes, put in
order when it is next asked for. Lists bring thousands at once, and nobody asks in between."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Assortment(Generic[K, V]):
    def __init__(self, order: Callable[[V], Any]) -> None:
        self._order = order
        self._class_of: dict[K, str] = {}
        self._by_class: dict[str, dict[K, V]] = {}
        self._sorted: dict[str, Sequence[V]] = {}

    def put(self, key: K, of_class: str, thing: V) -> None:
        self.remove(key)
        self._class_of[key] = of_class
        self._by_class.setdefault(of_class, {})[key] = thing
        self._sorted.pop(of_class, None)

    def remove(self, key: K) -> None:
        of_class = self._class_of.pop(key, None)
        if of_class is None:
            return
        del self._by_class[of_class][key]
        if not self._by_class[of_class]:
            del self._by_class[of_class]
        self._sorted.pop(of_class, None)

    def of(self, of_class: str) -> Sequence[V]:
        found = self._sorted.get(of_class)
        if found is None:
            there = self._by_class.get(of_class, {}).values()
            found = self._sorted[of_class] = sorted(there, key=self._order)
        return found
