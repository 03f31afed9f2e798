"""Why a job is where it is: before it has pods, while it waits, and after it was placed."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from posse.client.jobs import read_job
from posse.client.trainers import TRAINERS
from posse.client.why import explain, first_to_die
from posse.objects.groups import PodGroup
from posse.objects.pods import Pod

MPI = next(trainer for trainer in TRAINERS if trainer.kind.kind == "MPIJob")
LATER = "2026-01-01T00:10:00Z"


def pod(number: int, *, node: str = "", phase: str = "Pending", **status: Any) -> Pod:
    return msgspec.convert(
        {
            "metadata": {
                "name": f"train-worker-{number}",
                "namespace": "ns",
                "uid": f"pod-{number}",
                "creationTimestamp": "2026-01-01T00:00:00Z",
            },
            "spec": {"nodeName": node, "containers": []},
            "status": {"phase": phase, **status},
        },
        Pod,
    )


def group(reason: str, message: str, kind: str = "Unschedulable", status: str = "True") -> PodGroup:
    condition = {"type": kind, "status": status, "reason": reason, "message": message}
    return msgspec.convert({"status": {"conditions": [condition]}}, PodGroup)


def event(reason: str, message: str, about: str = "job", at: str = LATER) -> dict[str, Any]:
    return {
        "metadata": {"name": reason.lower()},
        "type": "Warning",
        "reason": reason,
        "message": message,
        "lastTimestamp": at,
        "involvedObject": {"uid": about},
    }


def container(name: str = "main", **states: Any) -> dict[str, Any]:
    return {"name": name, **states}


def waits(reason: str, message: str = "") -> dict[str, Any]:
    return {"state": {"waiting": {"reason": reason, "message": message}}}


def ended(code: int, at: str, reason: str = "Error") -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "reason": reason, "finishedAt": at}}


def sentence(
    pods: list[Pod],
    group: PodGroup | None = None,
    events: list[dict[str, Any]] | None = None,
    *conditions: dict[str, Any],
) -> str:
    job = {
        "metadata": {"name": "train", "namespace": "ns", "uid": "job"},
        "spec": {"mpiReplicaSpecs": {}},
        "status": {"conditions": list(conditions)},
    }
    return explain(read_job(MPI, job, pods, 0.0), job, pods, group, events or []).sentence


QUOTA = 'pods "train-worker-0" is forbidden: exceeded quota: team'


@pytest.mark.parametrize(
    ("pods", "group_", "events", "says"),
    [
        ([], None, [], "train waits: its pods are not created yet."),
        (
            [],
            None,
            [event("FailedCreate", QUOTA)],
            f"train waits: none of its pods exists, one cannot be created: {QUOTA}",
        ),
        (
            [pod(0)],
            group("NotEnoughTasks", "1 of 2 pods exist"),
            [event("FailedCreate", QUOTA)],
            f"train waits: 1 of its pods exists, another cannot be created: {QUOTA}",
        ),
        (
            [pod(0)],
            group("NotEnoughTasks", "1 of 2 pods exist"),
            [event("FailedCreate", QUOTA, at="2025-01-01T00:00:00Z")],
            "train waits: 1 of 2 pods exist",
        ),
        (
            [pod(0)],
            group("NotEnoughResources", "needs 8 GPUs"),
            [event("FailedCreate", QUOTA)],
            "train waits: needs 8 GPUs",
        ),
        (
            [pod(0)],
            group("Reserved", "waits behind ns/big, for which the free room is kept"),
            [],
            "train waits behind ns/big, for which the free room is kept",
        ),
        (
            [pod(0)],
            group("Unschedulable", "needs 8 GPUs", "PodGroupScheduled", "False"),
            [],
            "train waits: needs 8 GPUs",
        ),
    ],
)
def test_before_it_is_placed(
    pods: list[Pod], group_: PodGroup | None, events: list[dict[str, Any]], says: str
) -> None:
    assert sentence(pods, group_, events) == says


@pytest.mark.parametrize(
    ("pods", "events", "says"),
    [
        (
            [pod(0, node="n0", containerStatuses=[container(**waits("ContainerCreating"))])],
            [],
            "train-worker-0 on n0: Pending",
        ),
        (
            [
                pod(0, node="n0", containerStatuses=[container(**waits("ContainerCreating"))]),
                pod(
                    1,
                    node="n1",
                    containerStatuses=[container(**waits("ImagePullBackOff", "no such image x"))],
                ),
            ],
            [],
            "train-worker-1 on n1: ImagePullBackOff: no such image x",
        ),
        (
            [
                pod(
                    0,
                    node="n0",
                    initContainerStatuses=[
                        container("fetch", **waits("CreateContainerConfigError", "no secret s"))
                    ],
                    containerStatuses=[container(**waits("PodInitializing"))],
                )
            ],
            [],
            "train-worker-0 on n0: init container fetch: CreateContainerConfigError: no secret s",
        ),
        (
            [pod(0, node="n0", containerStatuses=[container(**waits("ContainerCreating"))])],
            [event("FailedMount", 'claim "data" not found', about="pod-0")],
            'train-worker-0 on n0: FailedMount: claim "data" not found',
        ),
    ],
)
def test_after_it_is_placed(pods: list[Pod], events: list[dict[str, Any]], says: str) -> None:
    assert says in sentence(pods, None, events)


def test_a_failed_job_names_the_first_that_died() -> None:
    pods = [
        pod(0, node="n0", phase="Failed", containerStatuses=[container(state=ended(1, LATER))]),
        pod(
            1,
            node="n1",
            phase="Failed",
            containerStatuses=[container(state=ended(137, "2026-01-01T00:05:00Z", "OOMKilled"))],
        ),
        pod(2, node="n2", phase="Succeeded", containerStatuses=[container(state=ended(0, ""))]),
    ]
    failed = {"type": "Failed", "status": "True", "message": "MPIJob ns/train has failed"}
    assert sentence(pods, None, None, failed) == (
        "train is not waiting: it failed: MPIJob ns/train has failed;"
        " train-worker-1 was the first to die: OOMKilled, exit code 137."
    )


def test_of_who_could_not_be_started_the_runtime_has_the_words() -> None:
    how = ended(128, LATER, "StartError")
    how["terminated"]["message"] = "exec /no/such:\n no such file or directory"
    dead = pod(0, node="n0", phase="Failed", containerStatuses=[container(state=how)])
    casualty = first_to_die([dead])
    assert casualty is not None
    assert casualty.words() == (
        "train-worker-0 was the first to die: StartError, exit code 128:"
        " exec /no/such: no such file or directory"
    )


def test_who_was_started_again_died_in_the_run_before() -> None:
    again = container(state={"running": {}}, lastState=ended(2, LATER))
    casualty = first_to_die([pod(0, node="n0", phase="Running", containerStatuses=[again])])
    assert casualty is not None and casualty.restarted
    assert casualty.words() == "train-worker-0 was the first to die: exit code 2"


def test_nobody_died() -> None:
    assert first_to_die([pod(0), pod(1, node="n0", phase="Running")]) is None
