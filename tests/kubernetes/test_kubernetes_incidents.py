"""What broke other gang schedulers, on a real API server."""

from __future__ import annotations

from tests.cluster.test_cluster_retold import *  # noqa: F403 - its tests are run here once more

del pytestmark  # noqa: F821 - time is real here
