"""From flags to a TFJob: objects, never text."""

from __future__ import annotations

from typing import Any

import pytest

from posse.client.errors import PosseError
from posse.client.submitting.tensorboard import listening
from posse.client.submitting.tf import TFJob, TFRole


def job(**flags: Any) -> TFJob:
    usual: dict[str, Any] = {"name": "j", "image": "img", "command": "python x", "workers": 2}
    return TFJob(**usual | flags)


def spec_of(made: TFJob) -> dict[str, Any]:
    spec: dict[str, Any] = made.manifest()["spec"]
    return spec


def pod_of(made: TFJob, role: str) -> dict[str, Any]:
    pod: dict[str, Any] = spec_of(made)["tfReplicaSpecs"][role]["template"]["spec"]
    return pod


def main_of(made: TFJob, role: str) -> dict[str, Any]:
    container: dict[str, Any] = pod_of(made, role)["containers"][0]
    return container


@pytest.mark.parametrize(
    ("flags", "replicas"),
    [
        ({"workers": 2, "ps": 1}, {"PS": 1, "Worker": 2}),
        ({"workers": 1}, {"Chief": 1}),
        ({"workers": 1, "chief": True}, {"Chief": 1}),
        ({"workers": 1, "evaluator": True}, {"Chief": 1, "Evaluator": 1}),
        ({"workers": 1, "ps": 1}, {"PS": 1, "Worker": 1}),
        (
            {"workers": 2, "chief": True, "evaluator": True},
            {"Chief": 1, "Worker": 2, "Evaluator": 1},
        ),
        ({"workers": 0, "chief": True}, {"Chief": 1}),
    ],
)
def test_how_many_of_each(flags: dict[str, Any], replicas: dict[str, int]) -> None:
    specs = spec_of(job(**flags))["tfReplicaSpecs"]
    assert {role: spec["replicas"] for role, spec in specs.items()} == replicas


def test_one_worker_alone_is_told_of_no_cluster() -> None:
    annotation = "arena.kubeflow.org/disable-tf-config"
    assert job(workers=1).manifest()["metadata"]["annotations"][annotation] == "true"
    assert annotation not in job(workers=2).manifest()["metadata"]["annotations"]


def test_every_role_runs_the_command_in_the_container_tensorflow() -> None:
    made = job(ps=1, chief=True, evaluator=True, command='python "a b".py; rm $X')
    for role in ("Worker", "PS", "Chief", "Evaluator"):
        container = main_of(made, role)
        assert container["name"] == "tensorflow"
        assert container["command"] == ["sh", "-c", 'python "a b".py; rm $X']


def test_images_of_roles() -> None:
    roles = {"Worker": TFRole(image="gpu"), "PS": TFRole(image="cpu")}
    made = job(image="", ps=1, chief=True, evaluator=True, roles=roles)
    images = {role: main_of(made, role)["image"] for role in ("Worker", "PS", "Chief", "Evaluator")}
    assert images == {"Worker": "gpu", "PS": "cpu", "Chief": "gpu", "Evaluator": "gpu"}


def test_gpus_go_to_everyone_but_the_servers() -> None:
    made = job(ps=1, chief=True, evaluator=True, gpus=2, devices={"amd.com/gpu": "1"})
    gpus = {"nvidia.com/gpu": "2", "amd.com/gpu": "1"}
    for role in ("Worker", "Chief", "Evaluator"):
        assert main_of(made, role)["resources"] == {"requests": gpus, "limits": gpus}
    assert main_of(made, "PS")["resources"] == {}
    assert {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"} in main_of(made, "PS")["env"]


def test_servers_can_have_gpus_of_their_own() -> None:
    made = job(ps=1, ps_gpus=1, gpus=2)
    assert main_of(made, "PS")["resources"]["limits"] == {"nvidia.com/gpu": "1"}


def test_each_role_asks_for_its_own_resources() -> None:
    made = job(
        ps=1,
        cpu="1",
        roles={
            "Worker": TFRole(cpu="4", cpu_limit="8", memory="16Gi"),
            "PS": TFRole(memory="2Gi", memory_limit="4Gi"),
        },
    )
    assert main_of(made, "Worker")["resources"] == {
        "requests": {"cpu": "4", "memory": "16Gi"},
        "limits": {"cpu": "8", "memory": "16Gi"},
    }
    assert main_of(made, "PS")["resources"] == {
        "requests": {"cpu": "1", "memory": "2Gi"},
        "limits": {"cpu": "1", "memory": "4Gi"},
    }


@pytest.mark.parametrize(
    ("role", "given", "port"),
    [("Worker", 0, 22222), ("PS", 0, 22223), ("Worker", 5000, 5000), ("PS", 5001, 5001)],
)
def test_ports(role: str, given: int, port: int) -> None:
    made = job(ps=1, roles={role: TFRole(port=given)})
    assert main_of(made, role)["ports"] == [{"name": "tfjob-port", "containerPort": port}]


def test_a_roles_selector_takes_the_place_of_the_jobs() -> None:
    made = job(ps=1, selectors={"zone": "a"}, roles={"PS": TFRole(selectors={"disk": "ssd"})})
    assert pod_of(made, "Worker")["nodeSelector"] == {"zone": "a"}
    assert pod_of(made, "PS")["nodeSelector"] == {"disk": "ssd"}


@pytest.mark.parametrize(
    ("policy", "constraint", "where"),
    [
        ("spread", "required", "podAntiAffinity"),
        ("spread", "preferred", "podAntiAffinity"),
        ("binpack", "required", "podAffinity"),
        ("binpack", "preferred", "podAffinity"),
    ],
)
def test_affinity_is_among_the_pods_of_a_role(policy: str, constraint: str, where: str) -> None:
    role = TFRole(affinity_policy=policy, affinity_constraint=constraint)
    made = job(ps=1, roles={"Worker": role})
    affinity = pod_of(made, "Worker")["affinity"]
    (rule,) = affinity[where][f"{constraint}DuringSchedulingIgnoredDuringExecution"]
    term = rule["podAffinityTerm"] if constraint == "preferred" else rule
    assert term["topologyKey"] == "kubernetes.io/hostname"
    assert term["labelSelector"]["matchLabels"]["training.kubeflow.org/replica-type"] == "worker"
    assert "affinity" not in pod_of(made, "PS")


def test_shared_memory_is_a_volume_at_dev_shm() -> None:
    spec = pod_of(job(share_memory="512Mi"), "Worker")
    (volume,) = [one for one in spec["volumes"] if one["name"] == "dshm"]
    assert volume["emptyDir"] == {"medium": "Memory", "sizeLimit": "512Mi"}
    assert {"name": "dshm", "mountPath": "/dev/shm"} in spec["containers"][0]["volumeMounts"]


def test_policies_of_the_run() -> None:
    made = job(
        clean_task_policy="All",
        success_policy="AllWorkers",
        running_timeout="1h30m",
        ttl_after_finished="90s",
        starting_timeout="5m",
        retry=3,
        queue="vision",
        priority="high",
    )
    spec = spec_of(made)
    assert spec["successPolicy"] == "AllWorkers"
    assert spec["tfReplicaSpecs"]["Worker"]["restartPolicy"] == "OnFailure"
    assert spec["runPolicy"] == {
        "cleanPodPolicy": "All",
        "backoffLimit": 3,
        "activeDeadlineSeconds": 5400,
        "ttlSecondsAfterFinished": 90,
        "schedulingPolicy": {
            "queue": "vision",
            "priorityClass": "high",
            "scheduleTimeoutSeconds": 300,
        },
    }


def test_policies_that_nobody_named() -> None:
    spec = spec_of(job())
    assert spec["successPolicy"] == ""
    assert spec["runPolicy"] == {"cleanPodPolicy": "Running", "backoffLimit": 0}
    assert spec["tfReplicaSpecs"]["Worker"]["restartPolicy"] == "Never"


@pytest.mark.parametrize("wish", ["Worker,PS,Chief,Evaluator", "w,p,c,e", " worker, P ,C,e"])
def test_the_sequence_of_roles(wish: str) -> None:
    annotations = job(role_sequence=wish).manifest()["metadata"]["annotations"]
    assert annotations["job-role-sequence"] == "Worker,PS,Chief,Evaluator"


def test_code_comes_from_git_for_every_role() -> None:
    made = job(ps=1, sync_mode="git", sync_source="https://example.com/team/code-of-mine.git")
    for role in ("Worker", "PS"):
        step = pod_of(made, role)["initContainers"][0]
        assert step["command"] == [
            "git", "clone", "--depth=1", "--",
            "https://example.com/team/code-of-mine.git", "/code/code-of-mine",
        ]  # fmt: skip
        mounts = {m["name"]: m["mountPath"] for m in main_of(made, role)["volumeMounts"]}
        assert mounts["code-sync"] == "/root/code"


def test_without_a_gang_the_job_says_so() -> None:
    assert job(gang=False).manifest()["metadata"]["annotations"]["posse.dev/gang"] == "false"


def test_tensorboard_reads_where_the_job_writes() -> None:
    made = job(tensorboard=True, log_directory="/shared/default/j/logs")
    logs = {"name": "training-logs", "hostPath": {"path": "/shared/default/j/logs"}}
    logs["hostPath"] |= {"type": "DirectoryOrCreate"}  # type: ignore[operator]
    _, deployment = made.companions()
    board = deployment["spec"]["template"]["spec"]
    assert logs in board["volumes"]
    assert logs in pod_of(made, "Worker")["volumes"]
    mount = {"name": "training-logs", "mountPath": "/training_logs"}
    assert mount in board["containers"][0]["volumeMounts"]
    assert mount in main_of(made, "Worker")["volumeMounts"]


def test_on_this_machine_tensorboard_listens_where_its_service_points() -> None:
    _, deployment = job(tensorboard=True).companions()
    moved = listening(deployment, "127.0.0.1", 31029)
    container = moved["spec"]["template"]["spec"]["containers"][0]
    assert container["command"] == [
        "tensorboard", "--logdir=/training_logs", "--host=127.0.0.1", "--port=31029",
    ]  # fmt: skip
    assert container["ports"] == [{"name": "http", "containerPort": 31029, "hostPort": 31029}]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"gpus": -1}, "--gpus must be 0 or more, not -1"),
        ({"workers": 0}, "--workers must be 1 or more, not 0"),
        ({"workers": -1, "chief": True}, "--workers must be 0 or more, not -1"),
        ({"ps": -1}, "--ps must be 0 or more, not -1"),
        ({"ps_gpus": -1}, "--ps-gpus must be 0 or more, not -1"),
        ({"command": ""}, "not found command args"),
        ({"image": ""}, "--image or --worker-image must be set"),
        ({"image": "", "ps": 1, "roles": {"Worker": TFRole(image="x")}}, "--image or --ps-image"),
        ({"roles": {"Worker": TFRole(cpu="lots")}}, "--worker-cpu"),
        ({"roles": {"PS": TFRole(memory_limit="-1Gi")}}, "--ps-memory-limit must not be negative"),
        ({"roles": {"Chief": TFRole(port=70000)}}, "--chief-port must be from 1 to 65535"),
        (
            {"roles": {"PS": TFRole(affinity_policy="near")}, "ps": 1},
            "--ps-affinity-policy must be",
        ),
        ({"clean_task_policy": "Some"}, "--clean-task-policy must be Running, None or All"),
        ({"success_policy": "Most"}, "--success-policy must be ChiefWorker or AllWorkers"),
        ({"running_timeout": "soon"}, "--running-timeout: 'soon' is not a duration"),
        ({"ttl_after_finished": "-5s"}, "--ttl-after-finished must not be negative"),
        ({"share_memory": "much"}, "--share-memory"),
        ({"role_sequence": "Worker,Boss"}, "--role-sequence takes Worker, PS, Chief and Evaluator"),
    ],
)
def test_what_could_never_run_is_refused(flags: dict[str, Any], message: str) -> None:
    with pytest.raises(PosseError, match=message.replace("(", r"\(")):
        job(**flags).manifest()
