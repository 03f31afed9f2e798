"""Stories of TFJobs on a real API server: those that take no minutes to tell."""

from __future__ import annotations

from tests.cluster.test_cluster_tfjobs import (  # noqa: F401 - run here once more
    test_a_name_is_free_again_after_a_delete,
    test_a_users_own_group_is_all_or_nothing,
    test_estimator_runconfig,
    test_invalid_tfjob_is_refused_by_the_api,
    test_invalid_tfjob_that_the_api_takes_says_what_is_wrong,
    test_old_manifests_run_as_gangs,
    test_one_worker_alone_is_its_own_chief,
    test_pod_names_validation,
)
from tests.cluster.test_cluster_tfjobs import test_submit_get_list_logs_and_delete as _with_logs
from tests.kubernetes.plane import ControlPlane


async def test_submit_get_list_logs_and_delete(control_plane: ControlPlane) -> None:
    """Where the API server trusts the certificates of our nodes."""
    await _with_logs()
