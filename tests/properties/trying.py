"""On how many random examples a property is tried: so many in every run of the tests, and as many
times more as `make prove TIMES=50` says."""

from __future__ import annotations

import os

from hypothesis import settings

_TIMES = int(os.environ.get("POSSE_PROVE_TIMES", "1"))


def examples(number: int = 100) -> settings:
    # What a shared machine takes for one of them says nothing.
    return settings(max_examples=number * _TIMES, deadline=None)
