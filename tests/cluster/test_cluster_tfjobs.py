"""TFJobs through every layer: what people rely on, by the names that upstream's own tests have."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from posse.client.submitting.tf import TFJob
from posse.kube.errors import Invalid, NotFound
from posse.objects import kinds
from posse.objects.kinds import Kind
from posse.objects.pods import Pod
from tests.cluster.backends import Riding
from tests.cluster.riding import cluster, pods_of, seated, training, wait_for_status

pytestmark = pytest.mark.looptime

SEEDS = Path(__file__).parents[3] / "shared" / "seeds"
TEN_MINUTES = 600.0


def replicas(
    count: int = 1,
    *,
    policy: str = "",
    lasts: str = "",
    code: int = 0,
    gpus: int = 0,
    annotations: dict[str, str] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """`lasts`: how long its process runs, before it ends with `code`; for ever if not given."""
    notes = dict(annotations or {})
    if lasts:
        notes |= {"posse.dev/simulated-duration": lasts, "posse.dev/simulated-exit-code": str(code)}
    container: dict[str, Any] = {"name": "tensorflow", "image": "train"}
    if gpus:
        container["resources"] = {"limits": {"nvidia.com/gpu": gpus}}
    made: dict[str, Any] = {
        "replicas": count,
        "template": {
            "metadata": {"annotations": notes},
            "spec": {"containers": [container]} | spec,
        },
    }
    return made | ({"restartPolicy": policy} if policy else {})


def tf_job(
    roles: dict[str, Any], name: str = "train", version: str = "v1", **spec: Any
) -> dict[str, Any]:
    return {
        "apiVersion": f"kubeflow.org/{version}",
        "kind": "TFJob",
        "metadata": {"name": name},
        "spec": {"tfReplicaSpecs": roles} | spec,
    }


def kind_of(manifest: dict[str, Any]) -> Kind:
    group, _, version = manifest["apiVersion"].partition("/")
    plural = f"{manifest['kind'].lower()}s"
    return Kind(group, version, manifest["kind"], plural)


async def apply(running: Riding, *manifests: dict[str, Any]) -> None:
    """As `kubectl create -f` would, in the version in which it is written."""
    for manifest in manifests:
        await running.connection.create(kind_of(manifest), manifest, running.namespace)


async def job_of(running: Riding, name: str = "train") -> dict[str, Any]:
    return await running.connection.get(kinds.TF_JOB, name, running.namespace)


async def conditions(running: Riding, name: str = "train") -> dict[str, str]:
    status = (await job_of(running, name)).get("status") or {}
    return {item["type"]: item["status"] for item in status.get("conditions", [])}


async def phases(running: Riding, name: str = "train") -> dict[str, str]:
    return {
        pod.metadata.name.removeprefix(f"{name}-"): pod.status.phase
        for pod in await pods_of(running, name)
    }


async def until_condition(
    running: Riding, type_: str, name: str = "train", within: float = 120.0
) -> None:
    async def holds() -> bool:
        return (await conditions(running, name)).get(type_) == "True"

    await running.until(holds, f"{name} is {type_}", within)


async def until_pods(running: Riding, count: int, name: str = "train") -> None:
    async def holds() -> bool:
        return len(await pods_of(running, name)) == count

    await running.until(holds, f"{name} has {count} pods")


def uids(pods: list[Pod]) -> dict[str, str]:
    return {pod.metadata.name: pod.metadata.uid for pod in pods}


def restarts(pods: list[Pod]) -> dict[str, int]:
    return {
        p.metadata.name: sum(c.restart_count for c in p.status.container_statuses) for p in pods
    }


# What upstream tests, by its names.


async def test_simple_tfjob() -> None:
    async with cluster() as running:
        await apply(running, tf_job({"Worker": replicas(1, lasts="30s")}))
        await until_condition(running, "Running")
        (pod,) = await pods_of(running, "train")
        raw = await running.connection.get(kinds.POD, pod.metadata.name, running.namespace)
        assert "env" not in raw["spec"]["containers"][0], "one process needs no TF_CONFIG"
        await until_condition(running, "Succeeded")


async def test_distributed_training() -> None:
    async with cluster() as running:
        roles = {"Chief": replicas(1, lasts="1m"), "PS": replicas(2), "Worker": replicas(4)}
        await apply(running, tf_job(roles))
        await until_condition(running, "Running")
        assert sorted(await phases(running)) == [
            "chief-0", "ps-0", "ps-1", "worker-0", "worker-1", "worker-2", "worker-3",
        ]  # fmt: skip
        services = await running.connection.list(kinds.SERVICE, running.namespace)
        assert len([s for s in services.items if s["metadata"]["name"].startswith("train-")]) == 7
        await until_condition(running, "Succeeded")


async def test_estimator_runconfig() -> None:
    """Each process reads from TF_CONFIG alone where it stands among the others."""
    async with cluster() as running:
        roles = {
            "Chief": replicas(1),
            "PS": replicas(1),
            "Worker": replicas(2),
            "Evaluator": replicas(1),
        }
        await apply(running, tf_job(roles))
        await until_pods(running, 5)
        cluster_spec = {
            "chief": [f"train-chief-0.{running.namespace}.svc:2222"],
            "evaluator": [f"train-evaluator-0.{running.namespace}.svc:2222"],
            "ps": [f"train-ps-0.{running.namespace}.svc:2222"],
            "worker": [
                f"train-worker-0.{running.namespace}.svc:2222",
                f"train-worker-1.{running.namespace}.svc:2222",
            ],
        }
        for name, task in (
            ("train-chief-0", {"type": "chief", "index": 0}),
            ("train-worker-1", {"type": "worker", "index": 1}),
            ("train-evaluator-0", {"type": "evaluator", "index": 0}),
        ):
            pod = await running.connection.get(kinds.POD, name, running.namespace)
            (told,) = pod["spec"]["containers"][0]["env"]
            assert json.loads(told["value"]) == {
                "cluster": cluster_spec,
                "task": task,
                "environment": "cloud",
            }


@pytest.mark.parametrize(
    ("spec", "where"),
    [
        ({}, "spec.tfReplicaSpecs: Required value"),
        (
            {"tfReplicaSpecs": {"Worker": {"replicas": "two"}}},
            "spec.tfReplicaSpecs.Worker.replicas",
        ),
        ({"tfReplicaSpecs": {"Worker": {"replicas": -1}}}, "spec.tfReplicaSpecs.Worker.replicas"),
        (
            {"tfReplicaSpecs": {"Worker": {"restartPolicy": "Perhaps"}}},
            "spec.tfReplicaSpecs.Worker.restartPolicy",
        ),
    ],
)
async def test_invalid_tfjob_is_refused_by_the_api(spec: dict[str, Any], where: str) -> None:
    async with cluster(1) as running:
        manifest = tf_job({}) | {"spec": spec}
        with pytest.raises(Invalid, match=re.escape(where)):
            await apply(running, manifest)


async def test_invalid_tfjob_that_the_api_takes_says_what_is_wrong() -> None:
    async with cluster(1) as running:
        wrong = tf_job({"Worker": replicas(1)})
        wrong["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["name"] = "x"
        await apply(running, wrong)
        await until_condition(running, "Failed")
        (condition,) = (await job_of(running))["status"]["conditions"]
        assert "must have at least one container with name tensorflow" in condition["message"]
        assert await pods_of(running, "train") == []


async def test_pod_names_validation() -> None:
    async with cluster(1) as running:
        await apply(running, tf_job({"ps": replicas(1), "WORKER": replicas(2)}, name="names"))
        await until_pods(running, 3, "names")
        assert sorted(await phases(running, "names")) == ["ps-0", "worker-0", "worker-1"]
        long = "n" * 60
        await apply(running, tf_job({"Worker": replicas(1)}, name=long))
        await until_condition(running, "Failed", long)


@pytest.mark.parametrize(
    ("policy", "left"),
    [
        ("All", {}),
        (
            "Running",
            {
                "chief-0": "Succeeded",
                **{f"worker-{i}": "Succeeded" for i in range(4)},
            },
        ),
        (
            "None",
            {
                "chief-0": "Succeeded",
                "ps-0": "Running",
                "ps-1": "Running",
                **{f"worker-{i}": "Succeeded" for i in range(4)},
            },
        ),
    ],
)
async def test_cleanpod_policy(policy: str, left: dict[str, str]) -> None:
    async with cluster() as running:
        roles = {
            "Chief": replicas(1, lasts="40s"),
            "PS": replicas(2),
            "Worker": replicas(4, lasts="20s"),
        }
        await apply(running, tf_job(roles, runPolicy={"cleanPodPolicy": policy}))
        await until_condition(running, "Succeeded")
        await running.linger(60)
        assert await phases(running) == left


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
async def test_older_versions_clean_up_what_runs(version: str) -> None:
    async with cluster() as running:
        roles = {"PS": replicas(1), "Worker": replicas(1, lasts="20s")}
        await apply(running, tf_job(roles, version=version))
        await until_condition(running, "Succeeded")
        await running.linger(60)
        assert await phases(running) == {"worker-0": "Succeeded"}


@pytest.mark.parametrize(
    ("policy", "code", "comes_back"),
    [
        ("Always", 0, True),
        ("Always", 1, True),
        ("OnFailure", 1, True),
        ("OnFailure", 0, False),
        ("Never", 1, False),
        ("Never", 0, False),
        ("ExitCode", 1, False),
        ("ExitCode", 130, True),
    ],
)
async def test_replica_restart_policy(policy: str, code: int, comes_back: bool) -> None:
    async with cluster() as running:
        roles = {
            "Chief": replicas(1),
            "PS": replicas(1, policy=policy, lasts="30s", code=code),
        }
        await apply(running, tf_job(roles))
        await until_condition(running, "Running")
        before = await pods_of(running, "train")
        await asyncio.sleep(90)
        after = await pods_of(running, "train")
        in_place = restarts(after).get("train-ps-0", 0) > 0
        replaced = uids(after).get("train-ps-0") != uids(before)["train-ps-0"]
        assert (in_place or replaced) is comes_back
        fails = not comes_back and code != 0
        assert ("Failed" in await conditions(running)) is fails


async def test_shutdown_policy() -> None:
    """The chief's end is the job's, whoever still runs."""
    async with cluster() as running:
        roles = {"Master": replicas(1, lasts="30s"), "Worker": replicas(2)}
        await apply(running, tf_job(roles))
        await until_condition(running, "Succeeded")
        assert (await phases(running))["worker-0"] == "Running"


async def test_gang_that_asks_for_more_than_fits_until_it_is_edited_down() -> None:
    async with cluster(2, gpus=2) as running:
        roles = {"Worker": replicas(5, gpus=1)}
        policy = {"schedulingPolicy": {"minAvailable": 5}}
        await apply(running, tf_job(roles, runPolicy=policy))
        await until_pods(running, 5)
        await running.linger(TEN_MINUTES)
        assert await conditions(running) == {"Created": "True"}
        assert await seated(running, "train") == 0
        patch = {"spec": {"runPolicy": {"schedulingPolicy": {"minAvailable": 4}}}}
        await running.connection.patch(kinds.TF_JOB, "train", patch, running.namespace)
        await until_condition(running, "Running")
        assert await seated(running, "train") == 4


async def test_suspend_on_create() -> None:
    async with cluster() as running:
        job = tf_job({"PS": replicas(1), "Worker": replicas(1)}, runPolicy={"suspend": True})
        await apply(running, job)
        await until_condition(running, "Suspended")
        await running.linger(60)
        assert await conditions(running) == {"Created": "True", "Suspended": "True"}
        assert await pods_of(running, "train") == []
        with pytest.raises(NotFound):
            await running.connection.get(kinds.POD_GROUP, "train", running.namespace)


async def test_suspend_then_resume() -> None:
    async with cluster() as running:
        await apply(running, tf_job({"PS": replicas(1), "Worker": replicas(1)}))
        await until_condition(running, "Running")
        await _suspend(running, True)
        await until_pods(running, 0)
        assert (await conditions(running))["Running"] == "False"
        assert (await training(running).get("train")).status == "QUEUING"
        await _suspend(running, False)
        await until_condition(running, "Running")
        assert (await conditions(running))["Suspended"] == "False"


async def _suspend(running: Riding, suspend: bool) -> None:
    patch = {"spec": {"runPolicy": {"suspend": suspend}}}
    await running.connection.patch(kinds.TF_JOB, "train", patch, running.namespace)


async def test_scale_up_and_down() -> None:
    async with cluster() as running:
        job = tf_job({"PS": replicas(1), "Worker": replicas(1)}, enableDynamicWorker=True)
        await apply(running, job)
        await until_condition(running, "Running")
        first = uids(await pods_of(running, "train"))
        for count in (3, 2):
            patch = {"spec": {"tfReplicaSpecs": {"Worker": {"replicas": count}}}}
            await running.connection.patch(kinds.TF_JOB, "train", patch, running.namespace)
            await until_pods(running, count + 1)
            await wait_for_status(running, "train", "RUNNING")
        now = uids(await pods_of(running, "train"))
        assert {name: now[name] for name in first} == first, "whoever stays is not disturbed"
        assert (await job_of(running))["status"]["replicaStatuses"]["Worker"] == {"active": 2}


async def test_ttl() -> None:
    async with cluster() as running:
        job = tf_job(
            {"Worker": replicas(1, lasts="10s")}, runPolicy={"ttlSecondsAfterFinished": 60}
        )
        await apply(running, job)
        await until_condition(running, "Succeeded")
        await asyncio.sleep(50)
        await job_of(running)
        await asyncio.sleep(20)
        with pytest.raises(NotFound):
            await job_of(running)


async def test_deadline() -> None:
    async with cluster() as running:
        job = tf_job({"Worker": replicas(2)}, runPolicy={"activeDeadlineSeconds": 30})
        await apply(running, job)
        await until_condition(running, "Running")
        await until_condition(running, "Failed", within=40)
        await until_pods(running, 0)


async def test_backoff_counts_pods_that_were_replaced() -> None:
    async with cluster() as running:
        roles = {"Worker": replicas(1, policy="ExitCode", lasts="5s", code=137)}
        await apply(running, tf_job(roles, runPolicy={"backoffLimit": 2}))
        await until_condition(running, "Failed", within=300)
        created = [
            event["message"]
            for event in (await running.connection.list(kinds.EVENT, running.namespace)).items
            if event["reason"] == "SuccessfulCreatePod"
            for _ in range(event.get("count") or 1)
        ]
        assert created == ["Created pod: train-worker-0"] * 3, "the first, and two more"


async def test_backoff_counts_restarts_in_place() -> None:
    async with cluster() as running:
        roles = {"Worker": replicas(1, policy="OnFailure", lasts="5s", code=1)}
        await apply(running, tf_job(roles, runPolicy={"backoffLimit": 2}))
        await until_condition(running, "Failed", within=300)


# Gangs.


async def test_a_gang_waits_whole_and_runs_whole() -> None:
    async with cluster(2, gpus=2) as running:
        await apply(running, tf_job({"PS": replicas(1), "Worker": replicas(5, gpus=1)}, name="big"))
        await until_pods(running, 6, "big")
        await running.linger(TEN_MINUTES)
        assert await seated(running, "big") == 0
        sentence = (await training(running).why("big")).sentence
        assert "5 GPUs" in sentence and "4" in sentence
        await apply(running, tf_job({"PS": replicas(1), "Worker": replicas(4, gpus=1)}))
        await until_condition(running, "Running")
        assert await seated(running, "train") == 5


async def test_a_replica_that_died_gets_its_seat_back_before_anybody_else() -> None:
    async with cluster(2, gpus=1) as running:
        roles = {"Worker": replicas(2, policy="ExitCode", gpus=1)}
        await apply(running, tf_job(roles))
        await until_condition(running, "Running")
        await apply(running, tf_job({"Worker": replicas(1, gpus=1)}, name="thief"))
        await until_pods(running, 1, "thief")
        (pod,) = [p for p in await pods_of(running, "train") if p.metadata.name.endswith("-1")]
        await running.connection.delete(kinds.POD, pod.metadata.name, running.namespace, grace=0)
        await running.linger(60)
        assert await seated(running, "train") == 2
        assert await seated(running, "thief") == 0


async def test_the_group_goes_when_the_job_has_ended() -> None:
    async with cluster() as running:
        await apply(running, tf_job({"Worker": replicas(2, lasts="20s")}))
        await until_condition(running, "Running")
        group = await running.connection.get(kinds.POD_GROUP, "train", running.namespace)
        assert group["spec"]["minMember"] == 2
        await until_condition(running, "Succeeded")
        await asyncio.sleep(5)
        with pytest.raises(NotFound):
            await running.connection.get(kinds.POD_GROUP, "train", running.namespace)


def old_manifest(scheduler: str = "") -> dict[str, Any]:
    """A TFJob as documents of 2019 have it: v1beta1, the restart policy inside the template."""
    spec: dict[str, Any] = {"restartPolicy": "OnFailure"} | (
        {"schedulerName": scheduler} if scheduler else {}
    )
    roles = {"Worker": replicas(1, gpus=1, **spec), "PS": replicas(1, **spec)}
    return tf_job(roles, name="tfjob-gang-scheduling", version="v1beta1")


def with_own_group(dialect: Kind, name: str, *, marked: bool) -> list[dict[str, Any]]:
    """A PodGroup that the user makes, and a job whose pods name it or whose name it bears."""
    notes = {"scheduling.k8s.io/group-name": name} if marked else {}
    spec: dict[str, Any] = {"schedulerName": "kube-batch"} if marked else {}
    roles = {
        "PS": replicas(2, policy="Never", annotations=notes, **spec),
        "Worker": replicas(4, policy="Never", annotations=notes, gpus=1, **spec),
    }
    group = {
        "apiVersion": dialect.api_version,
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"minMember": 6},
    }
    return [group, tf_job(roles, name="dist-mnist-for-e2e-test")]


OLD: list[tuple[str, list[dict[str, Any]]]] = [
    ("v1beta1 for kube-batch", [old_manifest("kube-batch")]),
    ("v1beta1 for whoever schedules", [old_manifest()]),
    (
        "a group of kube-batch that the pods name",
        with_own_group(kinds.INCUBATOR_POD_GROUP, "tfjob-group", marked=True),
    ),
    (
        "a group of kube-batch's later API",
        with_own_group(kinds.SIGS_POD_GROUP, "tfjob-group", marked=True),
    ),
    (
        "a group of kube-batch under the job's name",
        with_own_group(kinds.INCUBATOR_POD_GROUP, "dist-mnist-for-e2e-test", marked=False),
    ),
    (
        "a group of Volcano under the job's name",
        with_own_group(kinds.POD_GROUP, "dist-mnist-for-e2e-test", marked=False),
    ),
]


def _from_documents() -> list[tuple[str, list[dict[str, Any]]]]:
    """Every TFJob of the documents, where they are at hand, with the groups beside them."""
    found: list[tuple[str, list[dict[str, Any]]]] = []
    for document in sorted(SEEDS.glob("00[234]_*.txt")) if SEEDS.is_dir() else []:
        text = document.read_text(encoding="utf-8")
        for block in re.findall(r"```[ a-z]*\n(.*?)```", text, re.DOTALL):
            if "TFJob" in block:
                manifests = [doc for doc in yaml.safe_load_all(block) if doc]
                found.append((f"{document.name[:3]}-{len(found)}", manifests))
    return found


@pytest.mark.skipif(not SEEDS.is_dir(), reason="the documents' own manifests are not at hand")
def test_the_documents_hold_four_jobs() -> None:
    assert len(_from_documents()) == 4


@pytest.mark.parametrize(
    "manifests",
    [manifests for _, manifests in [*OLD, *_from_documents()]],
    ids=[name for name, _ in [*OLD, *_from_documents()]],
)
async def test_old_manifests_run_as_gangs(manifests: list[dict[str, Any]]) -> None:
    job = manifests[-1]
    name = job["metadata"]["name"]
    members = sum(one["replicas"] for one in job["spec"]["tfReplicaSpecs"].values())
    async with cluster(1, gpus=8) as running:
        await apply(running, *manifests)
        await wait_for_status(running, name, "RUNNING")
        assert await seated(running, name) == members

        async def one_group() -> bool:
            groups = [
                (item["spec"]["minMember"], item.get("status", {}).get("phase"))
                for kind in kinds.POD_GROUPS
                for item in (await running.connection.list(kind, running.namespace)).items
            ]
            return groups == [(members, "Running")]

        await running.until(one_group, "one group, the user's own where there is one, runs")


@pytest.mark.parametrize("dialect", kinds.POD_GROUPS, ids=lambda kind: kind.group)
async def test_a_users_own_group_is_all_or_nothing(dialect: Kind) -> None:
    async with cluster(1, gpus=3) as running:
        await apply(running, *with_own_group(dialect, "tfjob-group", marked=True))
        name = "dist-mnist-for-e2e-test"
        await until_pods(running, 6, name)
        await running.linger(TEN_MINUTES)
        assert await seated(running, name) == 0
        assert "4 GPUs" in (await training(running).why(name)).sentence
        group = await running.connection.get(dialect, "tfjob-group", running.namespace)
        patch = {"spec": {"minMember": 5}}
        await running.connection.patch(dialect, group["metadata"]["name"], patch, running.namespace)

        async def five() -> bool:
            return await seated(running, name) == 5

        await running.until(five, "as many as the user now asks for have a node")


# Through the client.


def submission(**flags: Any) -> TFJob:
    return TFJob(**{"name": "train", "image": "tf", "command": "python train.py"} | flags)


async def test_submit_get_list_logs_and_delete() -> None:
    async with cluster() as running:
        await training(running).submit(submission(workers=2, ps=1, gpus=1, tensorboard=True))
        await wait_for_status(running, "train", "RUNNING")
        job = await training(running).get("train")
        assert job.trainer == "tfjob"
        assert [(i.name, i.chief, i.gpus) for i in job.instances] == [
            ("train-ps-0", False, 0),
            ("train-worker-0", True, 1),
            ("train-worker-1", False, 1),
        ]
        assert (job.requested_gpus, job.allocated_gpus) == (2, 2)
        assert [one.name for one in await training(running).jobs()] == ["train"]
        assert re.fullmatch(r"http://[\d.]+:3\d{4}", job.tensorboard)
        chunks = [chunk async for chunk in training(running).logs("train")]
        assert isinstance(b"".join(chunks), bytes)
        await training(running).delete("train")

        async def nothing_left() -> bool:
            return not [
                item["metadata"]["name"]
                for kind in (kinds.POD, kinds.SERVICE, kinds.POD_GROUP, kinds.DEPLOYMENT)
                for item in (await running.connection.list(kind, running.namespace)).items
                if item["metadata"]["name"].startswith("train")
            ]

        await running.until(nothing_left, "nothing is left of the job")


async def test_one_worker_alone_is_its_own_chief() -> None:
    async with cluster() as running:
        await training(running).submit(submission(workers=1, gpus=1))
        await wait_for_status(running, "train", "RUNNING")
        job = await training(running).get("train")
        assert [(i.name, i.chief) for i in job.instances] == [("train-chief-0", True)]


async def test_a_name_is_free_again_after_a_delete() -> None:
    async with cluster() as running:
        await training(running).submit(submission(workers=3, ps=1, tensorboard=True))
        await wait_for_status(running, "train", "RUNNING")
        await training(running).delete("train")
        await training(running).submit(submission(workers=2, ps=1, tensorboard=True))
        await until_pods(running, 3)
        await wait_for_status(running, "train", "RUNNING")


async def test_controllers_that_are_killed_take_up_where_they_were() -> None:
    async with cluster() as running:
        roles = {"PS": replicas(1), "Worker": replicas(3, policy="ExitCode", lasts="40s", code=137)}
        await apply(running, tf_job(roles, runPolicy={"backoffLimit": 100}))
        for _ in range(12):
            await running.stop("controllers")
            running.start("controllers")
            await asyncio.sleep(17)
        await running.stop("controllers")
        running.start("controllers")
        await wait_for_status(running, "train", "RUNNING")
        assert sorted(await phases(running)) == ["ps-0", "worker-0", "worker-1", "worker-2"]
