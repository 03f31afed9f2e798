"""What a real API server shows of our kinds and of our manners towards it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from posse.kube.errors import Invalid
from posse.objects import kinds
from posse.objects.crds import definitions
from posse.objects.kinds import Kind
from tests.cluster.riding import cluster, mpi, pods_of, tf, training, wait_for_status
from tests.cluster.test_cluster_server import *  # noqa: F403 - its tests are run here once more
from tests.kubernetes.plane import ControlPlane, Plane
from tests.kubernetes.preparing import installation

del pytestmark  # noqa: F821 - time is real here

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
