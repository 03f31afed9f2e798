"""In which version a TFJob was written, and what cannot be a TFJob in any."""

from __future__ import annotations

from typing import Any

import pytest

from posse.controllers.runtime import Manifest
from posse.objects.jobs.replicas.spec import read
from posse.objects.jobs.tf.form import TF_FORM
from posse.objects.jobs.tf.versions import written_version
from tests.unit.controllers.tf_builders import (
    decision,
    observed,
    pod,
    replicas,
    started,
    states,
    template,
    tf_job,
)


def wrote(version: str, **more: Any) -> Manifest:
    return {"apiVersion": f"kubeflow.org/{version}", "manager": "kubectl"} | more


@pytest.mark.parametrize(
    ("metadata", "spec", "version"),
    [
        ({}, {}, "v1"),
        ({}, {"runPolicy": {"backoffLimit": 0}}, "v1"),
        ({}, {"cleanPodPolicy": "All"}, "v1beta1"),
        ({}, {"ttlSecondsAfterFinished": 0}, "v1beta1"),
        ({}, {"activeDeadlineSeconds": 60}, "v1beta2"),
        ({}, {"backoffLimit": 0, "cleanPodPolicy": "All"}, "v1beta2"),
        ({}, {"cleanPodPolicy": "Running", "runPolicy": {"suspend": False}}, "v1beta1"),
        ({"annotations": {"posse.dev/written-as": "kubeflow.org/v1beta2"}}, {}, "v1beta2"),
        ({"annotations": {"posse.dev/written-as": "nonsense"}}, {}, "v1"),
        ({"managedFields": [wrote("v1beta1", time="2026-01-01T00:00:00Z")]}, {}, "v1beta1"),
        (
            {
                "managedFields": [
                    wrote("v1", time="2026-01-02T00:00:00Z"),
                    wrote("v1beta2", time="2026-01-01T00:00:00Z"),
                ]
            },
            {},
            "v1beta2",
        ),
        ({"managedFields": [wrote("v1beta1", subresource="status")]}, {}, "v1"),
        ({"managedFields": "nonsense", "annotations": None}, {}, "v1"),
    ],
)
def test_the_version_in_which_a_job_was_written(
    metadata: Manifest, spec: Manifest, version: str
) -> None:
    assert written_version(tf_job(metadata=metadata, **spec)) == version


@pytest.mark.parametrize(
    ("spec", "policy"),
    [
        ({}, "None"),
        ({"cleanPodPolicy": "Running"}, "Running"),
        ({"activeDeadlineSeconds": 5}, "Running"),
        ({"cleanPodPolicy": "All", "runPolicy": {"cleanPodPolicy": "None"}}, "None"),
    ],
)
def test_which_pods_go_when_nothing_is_said(spec: Manifest, policy: str) -> None:
    assert read(TF_FORM, tf_job(**spec)).clean_pod_policy == policy


def test_flat_fields_count_in_every_version() -> None:
    job = read(
        TF_FORM,
        tf_job(
            ttlSecondsAfterFinished=1,
            activeDeadlineSeconds=2,
            backoffLimit=3,
            schedulingPolicy={"minAvailable": 4},
            metadata={"annotations": {"posse.dev/written-as": "kubeflow.org/v1"}},
        ),
    )
    run = job.run
    assert (run.ttl_seconds_after_finished, run.active_deadline_seconds) == (1, 2)
    assert (run.backoff_limit, job.scheduling.min_available) == (3, 4)


@pytest.mark.parametrize("key", ["ps", "PS", "Ps", "pS"])
def test_roles_are_known_in_any_letters(key: str) -> None:
    job = read(TF_FORM, tf_job({key: replicas(2), "WORKER": replicas(None)}))
    assert [(one.type, one.count) for one in job.replicas] == [("PS", 2), ("Worker", 1)]


def unnamed(image: str = "x") -> Manifest:
    return {"spec": {"containers": [{"name": "main", "image": image}]}}


@pytest.mark.parametrize(
    ("job", "sentence"),
    [
        (tf_job(metadata={"name": "Train"}), 'metadata.name: Invalid value: "Train"'),
        (tf_job(metadata={"name": "1train"}), 'metadata.name: Invalid value: "1train"'),
        (tf_job(metadata={"name": "t" * 55}), "its pods and services cannot be named"),
        (tf_job({}), "spec.tfReplicaSpecs: Required value"),
        (tf_job({"Boss": replicas(1)}), 'Unsupported value: "Boss"'),
        (tf_job({"PS": replicas(1), "ps": replicas(1)}), "this role is there already"),
        (
            tf_job({"Chief": replicas(1), "Master": replicas(1)}),
            "must not have more than 1 Chief or Master role",
        ),
        (
            tf_job({"Worker": replicas(1, template=unnamed())}),
            "must have at least one container with name tensorflow",
        ),
        (
            tf_job({"Worker": replicas(1, container={"image": ""})}),
            "spec.tfReplicaSpecs[Worker].template.spec.containers[0].image: Required value",
        ),
        (
            tf_job({"Worker": replicas(1, template={"spec": {"containers": []}})}),
            "must define at least one container",
        ),
        (tf_job({"Worker": {"replicas": 1}}), "must define at least one container"),
        (tf_job({"Worker": replicas(-1)}), "must be greater than or equal to 0"),
        (tf_job({"Worker": replicas(10**9)}), "must be less than or equal to 100000"),
        (tf_job({"Worker": replicas(1, "Sometimes")}), 'Unsupported value: "Sometimes"'),
        (tf_job(successPolicy="Most"), 'spec.successPolicy: Unsupported value: "Most"'),
        (tf_job(run={"cleanPodPolicy": "Some"}), 'Unsupported value: "Some"'),
        (tf_job(run={"backoffLimit": -1}), "must be greater than or equal to 0"),
        (
            tf_job({"Worker": replicas(1, container={"resources": {"limits": {"cpu": "lots"}}})}),
            "lots",
        ),
        (tf_job({"Worker": 3}), "spec: Invalid value"),  # type: ignore[dict-item]
        (tf_job({"Worker": replicas(1) | {"replicas": "two"}}), "spec: Invalid value"),
        (tf_job({"Worker": replicas(1, template={"spec": 5})}), "must define at least one"),
        (tf_job({"Worker": replicas(1, template=template(volumes="none"))}), "Invalid value"),
    ],
)
def test_what_can_never_run_is_refused(job: Manifest, sentence: str) -> None:
    decided = decision(observed(job))
    assert states(decided) == {"Failed": "True InvalidTFJobSpec"}
    assert decided.actions == ()
    assert sentence in (decided.status or {})["conditions"][0]["message"]
    assert [(said.reason, said.warning) for said in decided.says] == [
        ("TFJobFailedValidation", True)
    ]


def test_the_longest_name_that_fits_is_allowed() -> None:
    name = "t" * (63 - len("-worker-99"))
    assert read(TF_FORM, tf_job(metadata={"name": name})).name == name
    sound = tf_job({"Worker": replicas(100)}, metadata={"name": name})
    assert states(decision(observed(sound))) == {"Created": "True TFJobCreated"}
    longer = tf_job({"Worker": replicas(101)}, metadata={"name": name})
    assert states(decision(observed(longer))) == {"Failed": "True InvalidTFJobSpec"}


def test_a_refusal_is_said_once() -> None:
    job = tf_job(successPolicy="Most")
    first = decision(observed(job))
    assert decision(observed(job | {"status": first.status})).status is None
    assert decision(observed(job | {"status": first.status})).says == ()


def test_a_mended_spec_is_forgiven() -> None:
    refused = decision(observed(tf_job(successPolicy="Most"))).status
    decided = decision(observed(tf_job(status=refused)))
    assert states(decided) == {"Created": "True TFJobCreated"}


def test_a_running_job_outlives_a_spec_that_was_spoiled() -> None:
    decided = decision(observed(tf_job(successPolicy="Most", status=started()), pod("ps-0")))
    assert (decided.actions, decided.status) == ((), None)


@pytest.mark.parametrize(
    ("manager", "ours"),
    [
        (None, True),
        ("", True),
        ("kubeflow.org/training-operator", True),
        ("kueue.x-k8s.io/multikueue", False),
        ("example.com/somebody", False),
    ],
)
def test_a_job_that_another_manages_is_left_alone(manager: str | None, ours: bool) -> None:
    decided = decision(observed(tf_job(run={"managedBy": manager})))
    assert bool(decided.actions) is ours
