"""What must be so, because a server has said so."""

from __future__ import annotations

from typing import Any

import msgspec


class Broken(AssertionError):
    """A promise that was not kept."""


class Known(msgspec.Struct, frozen=True):
    """The last state of an object that was acknowledged, or shown to a reader."""

    value: str
    version: int
    uid: str


class Ledger:
    """The objects of one client, who alone writes them. None: it is acknowledged to be absent.

    There is one revision counter in the cluster: whatever is written after something was seen has
    a higher revision, through every crash. A revision that comes back means a forgotten write.
    """

    def __init__(self) -> None:
        self.objects: dict[str, Known | None] = {}
        self.acknowledged = 0
        self.uncertain = 0
        self._highest = 0

    def wrote(self, name: str, value: str, answer: dict[str, Any]) -> None:
        version = int(answer["metadata"]["resourceVersion"])
        if version <= self._highest:
            raise Broken(f"{name}: written as {version}, but {self._highest} had been seen before")
        self._highest = version
        self.objects[name] = Known(value, version, answer["metadata"]["uid"])
        self.acknowledged += 1

    def removed(self, name: str) -> None:
        self.objects[name] = None
        self.acknowledged += 1

    def read(self, name: str, found: Known | None, attempted: str | None = "") -> None:
        """What was found must be what is known, or the `attempted` write with the lost answer.

        `attempted` is the value it would have written, None for a removal, "" for no write.
        """
        known = self.objects.get(name)
        value = None if found is None else found.value
        if found != known and (attempted == "" or value != attempted):
            raise Broken(f"{name}: found {found}, acknowledged {known}, attempted {attempted!r}")
        if found is not None:
            self._highest = max(self._highest, found.version)
        self.objects[name] = found
