"""The order of names as people count: `job-2` before `job-10`."""

from __future__ import annotations

import re

_NUMBER = re.compile("[0-9]+")
# No number in a name is told apart beyond that.
_DIGITS = 20


def alphabetical(name: str) -> str:
    """What to sort by."""
    return _NUMBER.sub(lambda number: number[0].zfill(_DIGITS), name)
