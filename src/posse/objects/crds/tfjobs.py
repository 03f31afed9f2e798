"""TFJob of kubeflow.org in v1, v1beta2 and v1beta1.

Every version knows every field, the flat ones of the older versions too. They differ in what a
job without a `cleanPodPolicy` gets: what a version has always done stands in its schema, so it is
written into the job that was sent in that version, and in no other.
"""

from __future__ import annotations

from typing import Any

from posse.objects.crds.building import AGE, Schema, choice, column, count, definition, flag, record
from posse.objects.crds.trainingjobs import (
    clean_pod_policy,
    replica_specs,
    run_policy,
    scheduling_policy,
    status,
)
from posse.objects.kinds import TF_JOB

OLDER = ("v1beta2", "v1beta1")


def tf_job() -> dict[str, Any]:
    return definition(
        TF_JOB,
        "Processes of one TensorFlow program, which find each other through TF_CONFIG.",
        spec=_spec({}),
        status=status(),
        columns=[column("State", ".status.conditions[-1:].type"), AGE],
        older={version: _spec({"default": "Running"}) for version in OLDER},
    )


def _spec(cleaning: Schema) -> Schema:
    return record(
        "The processes by role, and how they are run.",
        ("tfReplicaSpecs",),
        runPolicy=run_policy("failed pods are"),
        successPolicy=choice(
            "Whether the chief or first worker decides on success, or all workers together.",
            "",
            "AllWorkers",
        ),
        enableDynamicWorker=flag("Whether workers may come and go while the job runs."),
        tfReplicaSpecs=replica_specs(
            "The pods by role: PS, Worker, Chief or Master, Evaluator, in upper or lower case."
        ),
        cleanPodPolicy=clean_pod_policy() | cleaning,
        ttlSecondsAfterFinished=count("As in runPolicy, which counts where both are given."),
        activeDeadlineSeconds=count(
            "As in runPolicy, which counts where both are given.", wide=True
        ),
        backoffLimit=count("As in runPolicy, which counts where both are given."),
        schedulingPolicy=scheduling_policy(),
    )
