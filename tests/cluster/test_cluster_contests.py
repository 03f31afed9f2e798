"""Jobs of several priorities and queues want the same nodes while things fail: nothing is broken,
nobody is ended without end, and everything goes on.

`POSSE_SEEDS=500 pytest tests/cluster/test_cluster_contests.py` has more of them.
"""

from __future__ import annotations

import os

import pytest

from tests.cluster.contest import story

pytestmark = pytest.mark.looptime(noop_cycles=0)

SEEDS = int(os.environ.get("POSSE_SEEDS", "3"))


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_after_a_contest_every_promise_stands_and_everything_ends(seed: int) -> None:
    _, wrong, said = await story(seed)
    assert wrong == [], "\n".join(said)
