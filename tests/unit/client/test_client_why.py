"""Why a job is where it is: before it has pods, while it waits, and after it was placed."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from posse.client.jobs import read_job
from posse.client.trainers import TRAINERS
from posse.client.why import explain, explain_group, first_to_die
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
        (
            [
                pod(
                    0,
                    node="n0",
                    initContainerStatuses=[
                        container("fetch", **waits("CrashLoopBackOff"), lastState=ended(4, LATER))
                    ],
                )
            ],
            [],
            "train-worker-0 on n0: init container fetch: exit code 4",
        ),
        (
            [pod(0, node="n0", phase="Running"), pod(1, node="n1", phase="Running")],
            [],
            "train is starting: 2 of 2 pods are running but not ready yet (train-worker-0 on n0).",
        ),
        (
            [pod(0, node="n0", phase="Running", conditions=[{"type": "Ready", "status": "True"}])],
            [],
            "train is starting: its pod has a node; no others are created yet.",
        ),
        ([pod(0)], [], "no scheduler has said anything of it yet"),
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


RUNNING = {"type": "Running", "status": "True"}
UP: dict[str, Any] = {"state": {"running": {}}}
LOOPS = {**waits("CrashLoopBackOff"), "lastState": ended(9, LATER), "restartCount": 3}


@pytest.mark.parametrize(
    ("statuses", "says"),
    [
        ([UP, UP], "train is not waiting: its 2 pods are running."),
        (
            [UP, LOOPS],
            "train is not waiting, but 1 of its 2 pods is down and started again, 3 times so far:"
            " train-worker-1 was the first to die: exit code 9.",
        ),
        ([LOOPS], "its pod is down and started again"),
        (
            [{**UP, "lastState": ended(137, LATER, "OOMKilled"), "restartCount": 1}],
            "its pod is running; before that, train-worker-0 was the first to die: OOMKilled,",
        ),
    ],
)
def test_a_job_that_runs_may_not_be_well(statuses: list[dict[str, Any]], says: str) -> None:
    pods = [
        pod(at, node="n0", phase="Running", containerStatuses=[container(**status)])
        for at, status in enumerate(statuses)
    ]
    assert says in sentence(pods, None, None, RUNNING)
    made = msgspec.convert({"metadata": {"name": "train"}}, PodGroup)
    assert says in explain_group(made, pods, []).sentence


def test_a_group_that_nobody_calls_a_job_has_an_answer_too() -> None:
    waiting = group("NotEnoughResources", "needs 8 GPUs")
    waiting.metadata.name = "mine"
    assert explain_group(waiting, [pod(0)], []).sentence == "mine waits: needs 8 GPUs"
    over = [pod(0, phase="Failed", containerStatuses=[container(state=ended(1, LATER))])]
    assert explain_group(waiting, over, []).sentence == (
        "mine is not waiting: all its pods have ended;"
        " train-worker-0 was the first to die: exit code 1."
    )


def test_nobody_died() -> None:
    assert first_to_die([pod(0), pod(1, node="n0", phase="Running")]) is None
