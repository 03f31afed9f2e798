"""What the pods of a TFJob are told, called and marked with."""

from __future__ import annotations

import json
from typing import Any

import pytest

from posse.controllers.jobs.grouping import GangSettings
from posse.controllers.jobs.settings import Settings
from posse.controllers.runtime import Manifest
from tests.unit.controllers.tf_builders import (
    SETTINGS,
    decision,
    made,
    observed,
    replicas,
    template,
    tf_job,
)


def pod_of(job: Manifest, name: str, settings: Settings = SETTINGS) -> Manifest:
    return made(decision(observed(job), settings), "Pod", name)


def variables(pod: Manifest) -> dict[str, str]:
    container = pod["spec"]["containers"][0]
    return {one["name"]: one["value"] for one in container.get("env", [])}


def tf_config(job: Manifest, name: str, settings: Settings = SETTINGS) -> str:
    return variables(pod_of(job, name, settings))["TF_CONFIG"]


def test_the_text_is_exactly_what_programs_are_used_to() -> None:
    job = tf_job({"Worker": replicas(1), "PS": replicas(1)})
    assert tf_config(job, "train-worker-0") == (
        '{"cluster":{"ps":["train-ps-0.ns.svc:2222"],"worker":["train-worker-0.ns.svc:2222"]},'
        '"task":{"type":"worker","index":0},"environment":"cloud"}'
    )


def test_every_role_is_in_the_cluster_in_alphabetical_order() -> None:
    roles = {
        "Worker": replicas(2),
        "Evaluator": replicas(1),
        "Chief": replicas(1),
        "PS": replicas(1),
    }
    config = json.loads(tf_config(tf_job(roles), "train-worker-1"))
    assert list(config["cluster"]) == ["chief", "evaluator", "ps", "worker"]
    assert config["cluster"]["worker"] == [
        "train-worker-0.ns.svc:2222",
        "train-worker-1.ns.svc:2222",
    ]
    assert config["task"] == {"type": "worker", "index": 1}


@pytest.mark.parametrize(
    ("spec", "there"),
    [
        ({}, True),
        ({"runPolicy": {"cleanPodPolicy": "All"}}, True),
        ({"cleanPodPolicy": "Running"}, False),
        ({"backoffLimit": 0}, False),
    ],
    ids=["v1", "v1 by its run policy", "v1beta1 by its fields", "v1beta2 by its fields"],
)
def test_the_evaluator_joined_the_cluster_with_v1(spec: Manifest, there: bool) -> None:
    job = tf_job({"Worker": replicas(1), "Evaluator": replicas(1)}, **spec)
    config = json.loads(tf_config(job, "train-worker-0"))
    assert ("evaluator" in config["cluster"]) is there


def test_the_cluster_domain_ends_every_address() -> None:
    settings = Settings(cluster_domain="cluster.local")
    config = json.loads(tf_config(tf_job(), "train-ps-0", settings))
    assert config["cluster"]["ps"] == ["train-ps-0.ns.svc.cluster.local:2222"]


@pytest.mark.parametrize("role", ["Chief", "Worker", "master", "PS"])
def test_a_single_process_is_told_nothing(role: str) -> None:
    job = tf_job({role: replicas(None)})
    assert "TF_CONFIG" not in variables(pod_of(job, f"train-{role.lower()}-0"))


def test_a_job_can_ask_to_be_told_nothing() -> None:
    asked = {"annotations": {"arena.kubeflow.org/disable-tf-config": "true"}}
    assert "TF_CONFIG" not in variables(pod_of(tf_job(metadata=asked), "train-ps-0"))


@pytest.mark.parametrize(
    ("name", "cluster"),
    [
        (
            "train-worker-1",
            '{"worker":{"1":"train-worker-1.ns.svc:2222"},"ps":["train-ps-0.ns.svc:2222"]}',
        ),
        ("train-ps-0", '{"worker":{},"ps":["train-ps-0.ns.svc:2222"]}'),
    ],
)
def test_workers_that_come_and_go_know_only_the_servers(name: str, cluster: str) -> None:
    text = tf_config(tf_job(enableDynamicWorker=True), name)
    assert text.startswith(f'{{"cluster":{cluster},"task":')
    assert "environment" not in text


def test_a_named_port_is_the_one_to_call() -> None:
    port = {"name": "tfjob-port", "containerPort": 22222}
    roles = {"Worker": replicas(2, container={"ports": [port]}), "PS": replicas(1)}
    config = json.loads(tf_config(tf_job(roles), "train-ps-0"))
    assert config["cluster"]["worker"][0] == "train-worker-0.ns.svc:22222"
    assert config["cluster"]["ps"] == ["train-ps-0.ns.svc:2222"]


@pytest.mark.parametrize(
    ("containers", "ports"),
    [
        ([{"name": "tensorflow"}], [[2222]]),
        ([{"name": "tensorflow", "ports": [{"name": "tfjob-port", "containerPort": 5}]}], [[5]]),
        ([{"name": "tensorflow", "ports": [{"name": "debug", "containerPort": 9}]}], [[9, 2222]]),
        ([{"name": "log"}, {"name": "tensorflow"}], [[], [2222]]),
    ],
    ids=["none", "its own", "another", "second container"],
)
def test_the_port_is_opened_where_it_is_not(containers: list[Manifest], ports: list[Any]) -> None:
    spec = {"spec": {"containers": [{"image": "x"} | one for one in containers]}}
    pod = pod_of(tf_job({"Worker": replicas(2, template=spec)}), "train-worker-0")
    found = [[p["containerPort"] for p in c.get("ports", [])] for c in pod["spec"]["containers"]]
    assert found == ports


def test_labels_say_who_is_who() -> None:
    job = tf_job()
    common = {
        "training.kubeflow.org/operator-name": "tfjob-controller",
        "training.kubeflow.org/job-name": "train",
    }
    for name, role, index, chief in (
        ("train-ps-0", "ps", "0", False),
        ("train-worker-0", "worker", "0", True),
        ("train-worker-1", "worker", "1", False),
    ):
        expected = common | {
            "training.kubeflow.org/replica-type": role,
            "training.kubeflow.org/replica-index": index,
        }
        if chief:
            expected["training.kubeflow.org/job-role"] = "master"
        assert pod_of(job, name)["metadata"]["labels"] == expected


@pytest.mark.parametrize("leader", ["Chief", "Master"])
def test_a_chief_speaks_for_the_job_before_any_worker(leader: str) -> None:
    job = tf_job({leader: replicas(1), "Worker": replicas(1)})
    role = "training.kubeflow.org/job-role"
    assert pod_of(job, f"train-{leader.lower()}-0")["metadata"]["labels"][role] == "master"
    assert role not in pod_of(job, "train-worker-0")["metadata"]["labels"]


def test_each_replica_has_a_headless_service_of_its_own() -> None:
    service = made(decision(observed(tf_job())), "Service", "train-worker-1")
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["ports"] == [{"name": "tfjob-port", "port": 2222}]
    assert service["spec"]["selector"] == {
        "training.kubeflow.org/operator-name": "tfjob-controller",
        "training.kubeflow.org/job-name": "train",
        "training.kubeflow.org/replica-type": "worker",
        "training.kubeflow.org/replica-index": "1",
    }


@pytest.mark.parametrize(
    ("policy", "inside", "expected"),
    [
        ("", "", "Never"),
        ("", "OnFailure", "OnFailure"),
        ("Never", "OnFailure", "Never"),
        ("OnFailure", "", "OnFailure"),
        ("Always", "", "Always"),
        ("ExitCode", "", "Never"),
    ],
)
def test_the_restart_policy_of_the_pods(policy: str, inside: str, expected: str) -> None:
    fields = {"restartPolicy": inside} if inside else {}
    job = tf_job({"Worker": replicas(2, policy, **fields)})
    assert pod_of(job, "train-worker-0")["spec"]["restartPolicy"] == expected


def test_the_rest_of_a_template_passes_through() -> None:
    given = template(
        nodeSelector={"gpu": "a100"},
        someFutureField={"x": 1},
        container={"env": [{"name": "A", "value": "1"}], "args": ["train.py"]},
        metadata={"labels": {"team": "vision"}, "annotations": {"note": "kept"}},
    )
    pod = pod_of(tf_job({"Worker": replicas(2, template=given)}), "train-worker-0")
    assert pod["spec"]["nodeSelector"] == {"gpu": "a100"}
    assert pod["spec"]["someFutureField"] == {"x": 1}
    assert list(variables(pod)) == ["A", "TF_CONFIG"]
    assert pod["metadata"]["labels"]["team"] == "vision"
    assert pod["metadata"]["annotations"]["note"] == "kept"
    assert given == template(
        nodeSelector={"gpu": "a100"},
        someFutureField={"x": 1},
        container={"env": [{"name": "A", "value": "1"}], "args": ["train.py"]},
        metadata={"labels": {"team": "vision"}, "annotations": {"note": "kept"}},
    ), "the cached template is shared, and stays as it was"


def test_members_of_the_gang_are_marked() -> None:
    pod = pod_of(tf_job(), "train-ps-0")
    assert pod["metadata"]["annotations"] == {
        "scheduling.k8s.io/group-name": "train",
        "volcano.sh/task-spec": "ps",
    }
    assert pod["spec"]["schedulerName"] == "posse"


def test_a_scheduler_that_is_named_stays() -> None:
    job = tf_job({"Worker": replicas(2, schedulerName="kube-batch"), "PS": replicas(1)})
    assert pod_of(job, "train-worker-0")["spec"]["schedulerName"] == "kube-batch"
    assert pod_of(job, "train-ps-0")["spec"]["schedulerName"] == "posse"


def test_without_gang_scheduling_nothing_is_marked() -> None:
    settings = Settings(gang=GangSettings(enabled=False))
    pod = pod_of(tf_job(), "train-ps-0", settings)
    assert "scheduling.k8s.io/group-name" not in pod["metadata"]["annotations"]
    assert "schedulerName" not in pod["spec"]


def test_pods_are_made_in_the_order_that_the_job_wishes() -> None:
    roles = {"PS": replicas(1), "Worker": replicas(1), "Chief": replicas(1)}
    wish = {"annotations": {"job-role-sequence": "Worker,PS"}}

    def order(job: Manifest) -> list[str]:
        actions = decision(observed(job)).actions
        found = [getattr(action, "manifest", {}) for action in actions]
        return [one["metadata"]["name"] for one in found if one.get("kind") == "Pod"]

    assert order(tf_job(roles)) == ["train-chief-0", "train-ps-0", "train-worker-0"]
    assert order(tf_job(roles, metadata=wish)) == ["train-worker-0", "train-ps-0", "train-chief-0"]
