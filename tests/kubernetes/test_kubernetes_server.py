"""What only a real API server can show of our kinds and of our manners towards it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from posse.kube.errors import Invalid, NotFound, TooManyRequests
from posse.objects import kinds
from posse.objects.crds import definitions
from posse.objects.kinds import Kind
from tests.cluster.riding import cluster, mpi, pods_of, tf, training, wait_for_status
from tests.kubernetes.plane import ControlPlane, Plane
from tests.kubernetes.preparing import installation

DEFINITIONS = [definition["metadata"]["name"] for definition in definitions()]


@pytest.mark.parametrize("name", DEFINITIONS)
def test_a_definition_is_taken_without_reserve(plane: Plane, name: str) -> None:
    found = json.loads(plane.kubectl("get", "crd", name, "-o", "json").stdout)
    said = {item["type"]: item["status"] for item in found["status"]["conditions"]}
    assert said.pop("Established") == "True"
    assert said.pop("NamesAccepted") == "True"
    # kube-batch's group is Kubernetes' own; that it is used without leave is said on the object.
    assert said.pop("KubernetesAPIApprovalPolicyConformant", "False") == "False"
    assert said == {}, "a schema that is not structural is a condition more"


@pytest.mark.parametrize("name", DEFINITIONS)
def test_kubectl_explains_a_kind(plane: Plane, name: str) -> None:
    plural, _, group = name.partition(".")
    definition = next(d for d in definitions() if d["metadata"]["name"] == name)
    for version in (v["name"] for v in definition["spec"]["versions"] if v["served"]):
        page = plane.kubectl("explain", plural, f"--api-version={group}/{version}").stdout
        assert definition["spec"]["names"]["kind"] in page


def test_applying_the_definitions_again_changes_nothing(plane: Plane) -> None:
    before = _generations(plane)
    for obj in installation():
        if obj["kind"] == "CustomResourceDefinition":
            plane.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(obj))
    assert _generations(plane) == before


def _generations(plane: Plane) -> dict[str, int]:
    listed = json.loads(plane.kubectl("get", "crd", "-o", "json").stdout)["items"]
    return {item["metadata"]["name"]: item["metadata"]["generation"] for item in listed}


@pytest.mark.parametrize(
    ("kind", "spec", "field"),
    [
        (kinds.POD_GROUP, {"minMember": "three"}, "spec.minMember"),
        (kinds.POD_GROUP, {"minTaskMember": {"worker": "x"}}, "spec.minTaskMember"),
        (kinds.QUEUE, {"weight": "heavy"}, "spec.weight"),
        (kinds.MPI_JOB, {}, "spec.mpiReplicaSpecs"),
        (
            kinds.MPI_JOB,
            {"mpiReplicaSpecs": {"Launcher": {"replicas": "one"}}},
            "spec.mpiReplicaSpecs.Launcher.replicas",
        ),
        (kinds.TF_JOB, {"tfReplicaSpecs": 3}, "spec.tfReplicaSpecs"),
    ],
)
async def test_what_cannot_be_is_refused_at_the_door(
    kind: Kind, spec: dict[str, Any], field: str
) -> None:
    async with cluster(1) as running:
        with pytest.raises(Invalid, match=field.replace(".", r"\.")):
            namespace = running.namespace if kind.namespaced else ""
            await running.connection.create(
                kind, {"metadata": {"name": "wrong"}, "spec": spec}, namespace
            )


async def test_a_template_passes_through_untouched() -> None:
    """Fields of a pod that no schema of ours names, and odd forms of those that it might."""
    async with cluster(1) as running:
        manifest = mpi(workers=1, gpus=0).manifest()
        template = manifest["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
        template["someday"] = {"list": [1, {"deep": None}], "text": "x"}
        template["containers"][0]["resources"] = {"limits": {"cpu": 1, "memory": "1Gi"}}
        await running.connection.create(kinds.MPI_JOB, manifest, running.namespace)
        stored = await running.connection.get(kinds.MPI_JOB, "mpi", running.namespace)
        kept = stored["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
        assert kept["someday"] == {"list": [1, {"deep": None}], "text": "x"}
        assert kept["containers"][0]["resources"]["limits"]["cpu"] == 1


async def test_status_has_its_own_door() -> None:
    async with cluster(1) as running:
        connection, place = running.connection, running.namespace
        group = {"metadata": {"name": "g"}, "spec": {"minMember": 2}}
        made = await connection.create(kinds.POD_GROUP, group | {"status": {"phase": "X"}}, place)
        assert made.get("status", {}).get("phase") != "X"
        assert made["metadata"]["generation"] == 1
        patch = {"spec": {"minMember": 9}, "status": {"running": 1}}
        left = await connection.patch(kinds.POD_GROUP, "g", patch, place, subresource="status")
        assert (left["spec"]["minMember"], left["status"]["running"]) == (2, 1)
        assert left["metadata"]["generation"] == 1


async def test_the_priority_of_a_class_reaches_every_pod_of_a_gang(plane: Plane) -> None:
    async with cluster(2) as running:
        name = f"high-{running.namespace}"
        await running.connection.create(
            kinds.PRIORITY_CLASS, {"metadata": {"name": name}, "value": 1234}
        )
        try:
            await training(running).submit(mpi(workers=2, gpus=1, priority=name))
            await wait_for_status(running, "mpi", "RUNNING")
            priorities = {pod.spec.priority for pod in await pods_of(running, "mpi")}
            assert priorities == {1234}
        finally:
            await running.connection.delete(kinds.PRIORITY_CLASS, name)


async def test_an_evicted_worker_comes_back_to_its_seat() -> None:
    async with cluster(2, gpus=1) as running:
        await training(running).submit(tf(workers=2, gpus=1))
        await wait_for_status(running, "tf", "RUNNING")
        before = {pod.metadata.name: pod for pod in await pods_of(running, "tf")}
        victim = before["tf-worker-1"]
        await running.connection.evict(
            victim.metadata.name, running.namespace, uid=victim.metadata.uid
        )

        async def replaced() -> bool:
            now = {pod.metadata.name: pod for pod in await pods_of(running, "tf")}
            back = now.get("tf-worker-1")
            return back is not None and back.metadata.uid != victim.metadata.uid

        await running.until(replaced, "a new worker has come")
        await wait_for_status(running, "tf", "RUNNING")
        after = {pod.metadata.name: pod.spec.node_name for pod in await pods_of(running, "tf")}
        assert after["tf-worker-1"] == victim.spec.node_name


async def test_a_budget_that_is_used_up_holds_an_eviction_back() -> None:
    async with cluster(2, gpus=1) as running:
        await training(running).submit(tf(workers=2, gpus=1))
        await wait_for_status(running, "tf", "RUNNING")
        budgets = Kind("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets")
        labels = (await pods_of(running, "tf"))[0].metadata.labels
        selector = {"training.kubeflow.org/job-name": labels["training.kubeflow.org/job-name"]}
        budget = {
            "metadata": {"name": "all"},
            "spec": {"minAvailable": 2, "selector": {"matchLabels": selector}},
        }
        await running.connection.create(budgets, budget, running.namespace)

        async def counted() -> bool:
            found = await running.connection.get(budgets, "all", running.namespace)
            return bool(found.get("status", {}).get("expectedPods"))

        await running.until(counted, "the budget has counted its pods")
        victim = (await pods_of(running, "tf"))[0]
        with pytest.raises(TooManyRequests):
            await running.connection.evict(
                victim.metadata.name, running.namespace, uid=victim.metadata.uid
            )


async def test_a_job_that_waits_for_a_finalizer_starts_nothing_more() -> None:
    async with cluster(2, gpus=1) as running:
        manifest = tf(workers=2, gpus=1).manifest()
        manifest["metadata"]["finalizers"] = ["example.com/hold"]
        await running.connection.create(kinds.TF_JOB, manifest, running.namespace)
        await wait_for_status(running, "tf", "RUNNING")
        await running.connection.delete(
            kinds.TF_JOB, "tf", running.namespace, propagation="Foreground"
        )

        async def podless() -> bool:
            return not await pods_of(running, "tf")

        await running.until(podless, "the pods are gone")
        await running.linger(5)
        assert await podless()
        free = {"metadata": {"finalizers": None}}
        await running.connection.patch(kinds.TF_JOB, "tf", free, running.namespace)

        async def gone() -> bool:
            try:
                await running.connection.get(kinds.TF_JOB, "tf", running.namespace)
            except NotFound:
                return True
            return False

        await running.until(gone, "the job is gone")


async def test_kubectl_shows_what_people_look_for(plane: Plane) -> None:
    async with cluster(2, gpus=1) as running:
        await training(running).submit(mpi(workers=2, gpus=1))
        await wait_for_status(running, "mpi", "RUNNING")

        async def running_group() -> bool:
            group = await running.connection.get(kinds.POD_GROUP, "mpi", running.namespace)
            return bool(group.get("status", {}).get("phase") == "Running")

        await running.until(running_group, "the group runs")

        async def columns(*words: str) -> list[list[str]]:
            done = await asyncio.to_thread(plane.kubectl, "-n", running.namespace, "get", *words)
            return [line.split() for line in done.stdout.splitlines()]

        head, row = await columns("podgroups.scheduling.volcano.sh")
        assert head[:3] == ["NAME", "STATUS", "MINMEMBER"]
        assert row[:3] == ["mpi", "Running", "2"]
        head, row = await columns("mpijobs")
        assert (head, row[0]) == (["NAME", "STATE", "AGE"], "mpi")
        head, row = await columns("queue", "default")
        assert (head[0], row[0]) == ("NAME", "default")


async def test_kubectl_logs_reach_a_simulated_node(control_plane: ControlPlane) -> None:
    async with cluster(1, gpus=1) as running:
        await training(running).submit(tf(workers=1, gpus=1))
        await wait_for_status(running, "tf", "RUNNING")
        (pod,) = await pods_of(running, "tf")
        done = await asyncio.to_thread(
            control_plane.kubectl, "-n", running.namespace, "logs", pod.metadata.name
        )
        assert "simulated" in done.stdout
