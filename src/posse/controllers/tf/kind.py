"""TFJob, declared."""

from __future__ import annotations

from posse.controllers.jobs.replicas.controller import controller_of
from posse.controllers.jobs.replicas.declaring import JobKind, Port, Role
from posse.controllers.jobs.settings import Settings
from posse.controllers.runtime import Controller
from posse.controllers.tf.cluster import tf_config
from posse.controllers.tf.success import problems, succeeded, tolerates
from posse.controllers.tf.versions import clean_pod_policy, written_version
from posse.objects.kinds import TF_JOB

TFJOB = JobKind(
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
        Role("Worker"),
        Role("Evaluator"),
    ),
    works="Worker",
    version_of=written_version,
    clean_pod_policy=clean_pod_policy,
    environment=tf_config,
    succeeded=succeeded,
    tolerates=tolerates,
    problems=problems,
)


def tf_controller(settings: Settings) -> Controller:
    return controller_of(TFJOB, settings)
