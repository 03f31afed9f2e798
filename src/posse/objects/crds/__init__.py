"""The definitions of the kinds that Posse brings along.

They are data: the embedded API server reads them from here, and `python -m posse.objects.crds`
writes them to `deploy/crds/` for any other cluster.
"""

from __future__ import annotations

from typing import Any

from posse.objects.crds import groups, mpijobs, tfjobs

__all__ = ["definitions"]


def definitions() -> list[dict[str, Any]]:
    """Every CustomResourceDefinition, fresh for the caller to keep or change."""
    return [
        groups.pod_group(),
        groups.queue(),
        mpijobs.mpi_job(),
        tfjobs.tf_job(),
        *groups.kube_batch_pod_groups(),
        groups.coscheduling_pod_group(),
    ]
