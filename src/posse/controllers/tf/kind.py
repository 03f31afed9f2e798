"""TFJob: its form, and what its controller does with it."""

from __future__ import annotations

from posse.controllers.jobs.replicas.controller import controller_of
from posse.controllers.jobs.replicas.declaring import JobKind
from posse.controllers.jobs.settings import Settings
from posse.controllers.runtime import Controller
from posse.controllers.tf.cluster import tf_config
from posse.controllers.tf.success import succeeded, tolerates
from posse.objects.jobs.tf.form import TF_FORM

TFJOB = JobKind(form=TF_FORM, environment=tf_config, succeeded=succeeded, tolerates=tolerates)


def tf_controller(settings: Settings) -> Controller:
    return controller_of(TFJOB, settings)
