"""From flags to an MPIJob: objects, never text."""

from __future__ import annotations

from typing import Any

import pytest

from posse.client.errors import PosseError
from posse.client.submitting.mpi import MPIJob


def job(**flags: Any) -> MPIJob:
    return MPIJob(**{"name": "j", "image": "img", "command": "mpirun x", **flags})


def spec_of(made: MPIJob, role: str) -> dict[str, Any]:
    template = made.manifest()["spec"]["mpiReplicaSpecs"][role]["template"]
    spec: dict[str, Any] = template["spec"]
    return spec


def test_gpus_go_to_the_workers_alone() -> None:
    made = job(workers=3, gpus=2)
    worker, launcher = (spec_of(made, role)["containers"][0] for role in ("Worker", "Launcher"))
    gpus = {"nvidia.com/gpu": "2"}
    assert worker["resources"] == {"requests": gpus, "limits": gpus}
    assert launcher["resources"] == {}
    assert {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"} in launcher["env"]
    assert {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"} not in worker["env"]


def test_only_the_launcher_runs_the_command() -> None:
    made = job(command='mpirun python "a b".py; rm $X')
    assert spec_of(made, "Launcher")["containers"][0]["command"] == [
        "sh",
        "-c",
        'mpirun python "a b".py; rm $X',
    ]
    assert "command" not in spec_of(made, "Worker")["containers"][0]


def test_the_launcher_waits_for_its_workers() -> None:
    assert job().manifest()["spec"]["launcherCreationPolicy"] == "WaitForWorkersReady"


def test_environment_values_stay_what_they_are() -> None:
    made = job(env={"A": "x,y=z: {{ yaml }}"})
    assert {"name": "A", "value": "x,y=z: {{ yaml }}"} in spec_of(made, "Worker")["containers"][0][
        "env"
    ]


def test_without_a_gang_the_job_and_its_pods_say_so() -> None:
    manifest = job(gang=False, workers=2).manifest()
    assert manifest["metadata"]["annotations"]["posse.dev/gang"] == "false"


@pytest.mark.parametrize("gang", [None, True])
def test_a_gang_is_the_default(gang: bool | None) -> None:
    assert "posse.dev/gang" not in job(gang=gang).manifest()["metadata"]["annotations"]


def test_queue_and_priority_reach_the_scheduling_policy() -> None:
    manifest = job(queue="vision", priority="high").manifest()
    assert manifest["spec"]["runPolicy"]["schedulingPolicy"] == {
        "queue": "vision",
        "priorityClass": "high",
    }


def test_code_comes_from_git_before_the_command_runs() -> None:
    made = job(
        sync_mode="git",
        sync_source="https://example.com/team/benchmarks.git",
        env={"GIT_SYNC_BRANCH": "b; rm -rf /"},
    )
    spec = spec_of(made, "Launcher")
    step = spec["initContainers"][0]
    assert step["name"] == "init-code"
    assert step["command"] == [
        "git", "clone", "--depth=1", "--branch", "b; rm -rf /", "--",
        "https://example.com/team/benchmarks.git", "/code/benchmarks",
    ]  # fmt: skip
    mounts = {m["name"]: m["mountPath"] for m in spec["containers"][0]["volumeMounts"]}
    assert mounts["code-sync"] == "/root/code"


def test_tensorboard_is_a_deployment_and_a_service() -> None:
    made = job(tensorboard=True).companions()
    assert [(o["kind"], o["metadata"]["name"]) for o in made] == [
        ("Service", "j-tensorboard"),
        ("Deployment", "j-tensorboard"),
    ]


def test_tensorboard_reads_the_claim_the_logs_are_on() -> None:
    made = job(tensorboard=True, data={"logs": "/training_logs", "other": "/data"}).companions()
    pod = made[1]["spec"]["template"]["spec"]
    assert [v["persistentVolumeClaim"]["claimName"] for v in pod["volumes"]] == ["logs"]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"gpus": -1}, "--gpus must be 0 or more, not -1"),
        ({"workers": 0}, "--workers must be 1 or more, not 0"),
        ({"command": ""}, "not found command args"),
        ({"cpu": "lots"}, "--cpu"),
        ({"memory": "1Gib"}, "--memory"),
        ({"sync_mode": "svn"}, "--sync-mode must be git or rsync"),
        ({"sync_mode": "git"}, "needs --sync-source"),
        ({"clean_task_policy": "Some"}, "--clean-task-policy must be All, Running or None"),
    ],
)
def test_what_could_never_run_is_refused(flags: dict[str, Any], message: str) -> None:
    with pytest.raises(PosseError, match=message):
        job(**flags).manifest()
