"""Jobs whose pods somebody else made: whoever joins them is as they are."""

from __future__ import annotations

from typing import Any

import pytest

from posse.controllers.jobs.actions import Create, Decision
from posse.controllers.mpi.deciding import decide
from posse.objects.keys import GROUP_NAME
from tests.unit.controllers import builders, tf_builders
from tests.unit.controllers.builders import SETTINGS, member
from tests.unit.controllers.tf_builders import decision, replicas, tf_job

PLUGINS = "scheduling.x-k8s.io/pod-group"


def made(decided: Decision) -> dict[str, dict[str, Any]]:
    """What is to be created, by kind and name; services and the like are left out."""
    return {
        f"{action.kind.kind} {action.manifest['metadata']['name']}": action.manifest
        for action in decided.actions
        if isinstance(action, Create) and action.kind.kind != "Service"
    }


def tf_pod(name: str, **as_made: str) -> dict[str, Any]:
    given = tf_builders.pod(name)
    given["metadata"].pop("annotations")
    return member(given, **as_made)


def tf_decided(*pods: dict[str, Any]) -> dict[str, dict[str, Any]]:
    job = tf_job({"Worker": replicas(3)}, status=tf_builders.started())
    return made(decision(tf_builders.observed(job, *pods)))


def test_a_job_without_a_gang_is_not_made_one_while_its_pods_run() -> None:
    """A member that waited for the others of a group in which they are not would wait for ever."""
    pods = [tf_pod(f"worker-{index}", group="", scheduler="default-scheduler") for index in (0, 2)]
    made_now = tf_decided(*pods)
    assert list(made_now) == ["Pod train-worker-1"]
    joined = made_now["Pod train-worker-1"]
    assert GROUP_NAME not in joined["metadata"]["annotations"]
    assert joined["spec"]["schedulerName"] == "default-scheduler"


def test_the_pods_of_a_job_have_one_scheduler() -> None:
    pods = [tf_pod(f"worker-{index}", scheduler="volcano") for index in (0, 2)]
    joined = tf_decided(*pods)["Pod train-worker-1"]
    assert joined["metadata"]["annotations"][GROUP_NAME] == "train"
    assert joined["spec"]["schedulerName"] == "volcano"


def test_a_gang_goes_on_in_the_dialect_in_which_it_was_made() -> None:
    pods = [tf_pod(f"worker-{index}", group="", scheduler="plugins") for index in (0, 2)]
    for pod in pods:
        pod["metadata"]["labels"] = {PLUGINS: "train"}
    made_now = tf_decided(*pods)
    assert list(made_now) == ["Pod train-worker-1"]
    joined = made_now["Pod train-worker-1"]
    assert joined["metadata"]["labels"][PLUGINS] == "train"
    assert GROUP_NAME not in joined["metadata"]["annotations"]


@pytest.mark.parametrize("going", [[], ["worker-0", "worker-1"]])
def test_with_nobody_there_to_stay_it_is_a_gang_of_our_own(going: list[str]) -> None:
    pods = [tf_pod(name, group="", scheduler="default-scheduler") for name in going]
    for pod in pods:
        pod["metadata"] |= builders.ending()
    made_now = tf_decided(*pods)
    assert "PodGroup train" in made_now
    assert made_now["Pod train-worker-2"]["spec"]["schedulerName"] == "posse"


def test_an_mpi_launcher_joins_its_workers() -> None:
    workers = [builders.worker_pod(index) for index in range(2)]
    for worker in workers:
        worker["metadata"].pop("annotations")
        worker["spec"]["schedulerName"] = "default-scheduler"
    seen = builders.observed(builders.mpi_job(waits=True), *workers)
    made_now = made(decide(seen, SETTINGS))
    assert list(made_now) == ["Job train-launcher"]
    template = made_now["Job train-launcher"]["spec"]["template"]
    assert GROUP_NAME not in template["metadata"]["annotations"]
    assert template["spec"]["schedulerName"] == "default-scheduler"
