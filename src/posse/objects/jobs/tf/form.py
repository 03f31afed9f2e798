"""TFJob, declared."""

from __future__ import annotations

from collections.abc import Iterable

from posse.objects.errors import FieldError
from posse.objects.jobs.replicas.declaring import JobForm, Port, Role
from posse.objects.jobs.replicas.spec import Job
from posse.objects.jobs.tf.versions import clean_pod_policy, written_version
from posse.objects.jobs.wrongs import one_of
from posse.objects.kinds import TF_JOB

ALL_WORKERS = "AllWorkers"
WORKER = "Worker"


def success_policy(job: Job) -> str:
    return str(job.spec.get("successPolicy") or "")


def _problems(job: Job) -> Iterable[FieldError]:
    yield from one_of("spec.successPolicy", success_policy(job), ("", ALL_WORKERS))


TF_FORM = JobForm(
    kind=TF_JOB,
    operator="tfjob-controller",
    manager="kubeflow.org/training-operator",
    specs="tfReplicaSpecs",
    container="tensorflow",
    port=Port("tfjob-port", 2222),
    roles=(
        Role("Chief", leads=True),
        Role("Master", leads=True),
        Role("PS"),
        Role(WORKER),
        Role("Evaluator"),
    ),
    works=WORKER,
    version_of=written_version,
    clean_pod_policy=clean_pod_policy,
    problems=_problems,
)
