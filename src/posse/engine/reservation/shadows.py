"""Room that is kept back from those who come later, amount by amount, not seat by seat.

A shadow is cast for a turn: who comes before its owner, is gone again before the owner starts, or
is the owner, does not see it. It takes nothing from anybody who sits, and no hold is lost by it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from posse.engine.columns import Columns, Ints, Rows


@dataclass(frozen=True, slots=True, eq=False)
class Shadow:
    """On each of these distinct rows so much of each column."""

    rows: Rows
    amounts: Ints

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Shadow)
            and np.array_equal(self.rows, other.rows)
            and np.array_equal(self.amounts, other.amounts)
        )


class Shadows:
    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._shadows: dict[str, Shadow] = {}
        # How often any of them has become less.
        self.lessened = 0
        # Whose shadows lie on the columns now.
        self.cast: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self._shadows)

    def __contains__(self, owner: str) -> bool:
        return owner in self._shadows

    def set(self, owner: str, shadow: Shadow | None) -> None:
        """What is kept back for the owner from now on; room it no longer keeps is free for good."""
        old = self._shadows.get(owner)
        if old == shadow:
            return
        lying = owner in self.cast
        if lying:
            self.show(tuple(name for name in self.cast if name != owner))
        if shadow is None:
            self._shadows.pop(owner, None)
        else:
            self._shadows[owner] = shadow
        if old is not None and len(less := _less(old, shadow)):
            self._columns.mark_freed(less)
            self.lessened += 1
        if lying and shadow is not None:
            self.show((*self.cast, owner))

    def show(self, owners: tuple[str, ...]) -> None:
        """Cast the shadows of these, and no others."""
        if owners == self.cast:
            return
        for owner in self.cast:
            if owner not in owners:
                shadow = self._shadows[owner]
                self._columns.shade(shadow.rows, -shadow.amounts)
        for owner in owners:
            if owner not in self.cast:
                shadow = self._shadows[owner]
                self._columns.shade(shadow.rows, shadow.amounts)
        self.cast = owners


def _less(old: Shadow, new: Shadow | None) -> Rows:
    """The rows on which the new one leaves more than the old."""
    if new is None:
        return old.rows
    width = new.amounts.shape[1]
    after = dict(zip(new.rows.tolist(), new.amounts, strict=True))
    none = np.zeros(width, np.int64)
    return np.array(
        [
            row
            for row, before in zip(old.rows.tolist(), old.amounts, strict=True)
            if (after.get(row, none)[: len(before)] < before[:width]).any()
        ],
        np.intp,
    )
