"""Claims that wait for their first pod, beside Kubernetes' own volume controller."""

from __future__ import annotations

from tests.cluster.test_cluster_volumes import *  # noqa: F403 - its tests are run here once more

del pytestmark  # noqa: F821 - time is real here
