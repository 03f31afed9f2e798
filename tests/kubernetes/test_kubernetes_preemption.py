"""Preemption on a real API server, whose own budgets are asked before anybody ends."""

from __future__ import annotations

from tests.cluster.test_cluster_preemption import *  # noqa: F403 - its tests are run here once more

del pytestmark  # noqa: F821 - time is real here
