"""The labels by which kubeflow's tools, and people, find the pods of a job."""

from __future__ import annotations

from posse.objects.keys import (
    JOB_NAME_LABEL,
    JOB_ROLE_LABEL,
    OPERATOR_NAME_LABEL,
    REPLICA_INDEX_LABEL,
    REPLICA_TYPE_LABEL,
)


def job_labels(operator: str, job: str) -> dict[str, str]:
    """On everything that belongs to a job; also the selector of its Service."""
    return {OPERATOR_NAME_LABEL: operator, JOB_NAME_LABEL: job}


def member_labels(
    operator: str, job: str, replica: str, index: int, *, role: str = ""
) -> dict[str, str]:
    """On the pod of one member; without a role, also the selector of its own Service."""
    labels = job_labels(operator, job) | {
        REPLICA_TYPE_LABEL: replica,
        REPLICA_INDEX_LABEL: str(index),
    }
    return labels | {JOB_ROLE_LABEL: role} if role else labels


def operator_selector(operator: str) -> str:
    """What a controller's caches hold: the objects of its own jobs."""
    return f"{OPERATOR_NAME_LABEL}={operator}"
