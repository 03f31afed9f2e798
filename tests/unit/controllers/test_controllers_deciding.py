"""What there is of an MPIJob -> what is to be done. Each row is one situation."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from posse.controllers.jobs.actions import Create, Decision, Merge
from posse.controllers.jobs.grouping import GangSettings
from posse.controllers.jobs.settings import Settings
from posse.controllers.mpi.deciding import decide
from posse.controllers.mpi.observing import Observed
from posse.objects.times import rfc3339
from tests.unit.controllers.builders import (
    NOW,
    SETTINGS,
    condition,
    ending,
    finished,
    launcher,
    launcher_pod,
    mpi_job,
    observed,
    owned,
    started,
    template,
    worker_pod,
)

# The node had too little of something before it came.
TURNED_AWAY = worker_pod(
    0,
    "Failed",
    reason="Evicted",
    message="Pod was rejected: The node had condition: [DiskPressure]. ",
)
WORKERS = (worker_pod(0), worker_pod(1))
FOREIGN = {"metadata": {"name": "train-worker-0", "namespace": "ns", "uid": "x"}}


def deeds(decision: Decision) -> list[str]:
    """The decision as a person reads it, without Keep and Provide, which are always there."""
    told = []
    for action in decision.actions:
        match type(action).__name__:
            case "Keep" | "Provide":
                continue
            case verb:
                obj: Any = action.manifest if isinstance(action, Create) else action.present  # type: ignore[union-attr]
                told.append(f"{verb.lower()} {action.kind.kind} {obj['metadata']['name']}")
    return told


def states(decision: Decision) -> dict[str, str]:
    found = (decision.status or {}).get("conditions", [])
    return {item["type"]: f"{item['status']} {item['reason']}" for item in found}


def group(**fields: Any) -> dict[str, Any]:
    return owned("train", spec={"minMember": 3} | fields.pop("spec", {}), **fields)


def made(decision: Decision, kind: str, name: str | None = None) -> dict[str, Any]:
    for action in decision.actions:
        manifest = getattr(action, "manifest", None)
        if manifest and action.kind.kind == kind and name in (None, manifest["metadata"]["name"]):
            return dict(manifest)
    raise AssertionError(f"no {kind} {name}")


EVERYTHING = [
    "create PodGroup train",
    "create Pod train-worker-0",
    "create Pod train-worker-1",
    "create Job train-launcher",
]

SITUATIONS: list[tuple[str, Observed, list[str]]] = [
    ("a new job gets everything", observed(mpi_job()), EVERYTHING),
    (
        "a launcher that waits is not made yet",
        observed(mpi_job(waits=True)),
        EVERYTHING[:-1],
    ),
    (
        "a launcher that waits is made when every worker is ready",
        observed(mpi_job(waits=True), *WORKERS),
        ["create PodGroup train", "create Job train-launcher"],
    ),
    (
        "one worker is not ready: the launcher waits on",
        observed(mpi_job(waits=True), worker_pod(0), worker_pod(1, ready=False)),
        ["create PodGroup train"],
    ),
    (
        "a worker on its way out is not ready",
        observed(mpi_job(waits=True), worker_pod(0), worker_pod(1, metadata=ending())),
        ["create PodGroup train"],
    ),
    (
        "a job without workers has a launcher alone",
        observed(mpi_job(workers=None)),
        ["create PodGroup train", "create Job train-launcher"],
    ),
    (
        "a crash between two pods: only the missing one is made",
        observed(mpi_job(status=started()), worker_pod(0), pod_group=group()),
        ["merge PodGroup train", "create Pod train-worker-1", "create Job train-launcher"],
    ),
    (
        "a worker was deleted while the job runs: it comes back",
        observed(mpi_job(), worker_pod(1), launcher=launcher()),
        ["create PodGroup train", "create Pod train-worker-0"],
    ),
    (
        "a worker is still ending: nothing is made in its place yet",
        observed(mpi_job(), worker_pod(0, metadata=ending()), worker_pod(1), launcher=launcher()),
        ["create PodGroup train"],
    ),
    (
        "scaled down: the highest indices go",
        observed(mpi_job(workers=1), *WORKERS, worker_pod(2), launcher=launcher()),
        ["create PodGroup train", "delete Pod train-worker-1", "delete Pod train-worker-2"],
    ),
    (
        "a node turned a worker away: it is replaced, having lost nothing",
        observed(
            mpi_job(),
            worker_pod(0, "Failed", reason="OutOfnvidia.com/gpu"),
            worker_pod(1),
            launcher=launcher(),
        ),
        ["create PodGroup train", "delete Pod train-worker-0"],
    ),
    (
        "a node under pressure turned a worker away: it ran as little",
        observed(mpi_job(), TURNED_AWAY, worker_pod(1), launcher=launcher()),
        ["create PodGroup train", "delete Pod train-worker-0"],
    ),
    (
        "a worker that failed by itself stays for its logs",
        observed(mpi_job(), worker_pod(0, "Failed"), worker_pod(1), launcher=launcher()),
        ["create PodGroup train"],
    ),
    (
        "an earlier job's pod under our name: the others are made meanwhile",
        observed(mpi_job(), owned("train-worker-0", uid="job-0", metadata=ending())),
        [
            "create PodGroup train",
            "blocked Pod train-worker-0",
            "create Pod train-worker-1",
            "create Job train-launcher",
        ],
    ),
    (
        "somebody else's pod under our name is never touched",
        observed(mpi_job(workers=1), FOREIGN, launcher=launcher()),
        ["create PodGroup train", "blocked Pod train-worker-0"],
    ),
    (
        "somebody else's Job under the launcher's name is never touched",
        observed(
            mpi_job(), *WORKERS, launcher={"metadata": {"name": "train-launcher", "uid": "x"}}
        ),
        ["create PodGroup train", "blocked Job train-launcher"],
    ),
    (
        "an earlier job's PodGroup: no pod may join it",
        observed(mpi_job(), pod_group=owned("train", uid="job-0")),
        ["blocked PodGroup train"],
    ),
    (
        "our own PodGroup is on its way out: no pod may join it",
        observed(mpi_job(), pod_group=group(metadata=ending())),
        ["blocked PodGroup train"],
    ),
    (
        "a PodGroup that the user made is used",
        observed(mpi_job(), pod_group={"metadata": {"name": "train"}, "spec": {"minMember": 9}}),
        EVERYTHING[1:],
    ),
    (
        "a group named by a template is the user's own",
        observed(
            mpi_job(
                worker=template()
                | {"metadata": {"annotations": {"scheduling.k8s.io/group-name": "mine"}}}
            )
        ),
        EVERYTHING[1:],
    ),
    (
        "gang scheduling turned off for this job",
        observed(mpi_job(metadata={"annotations": {"posse.dev/gang": "false"}})),
        EVERYTHING[1:],
    ),
    (
        "suspended from the start: only the launcher's place is kept",
        observed(mpi_job(run={"suspend": True})),
        ["create Job train-launcher"],
    ),
    (
        "suspended from the start, the launcher would wait anyway",
        observed(mpi_job(waits=True, run={"suspend": True})),
        [],
    ),
    (
        "suspended while running: pods and group go, the launcher rests",
        observed(mpi_job(run={"suspend": True}), *WORKERS, launcher=launcher(), pod_group=group()),
        [
            "delete Pod train-worker-0",
            "delete Pod train-worker-1",
            "delete PodGroup train",
            "merge Job train-launcher",
        ],
    ),
    (
        "suspended and at rest",
        observed(mpi_job(run={"suspend": True}), launcher=launcher(suspend=True)),
        [],
    ),
    (
        "resumed, the launcher waits for its workers again",
        observed(mpi_job(waits=True), launcher=launcher(suspend=True)),
        EVERYTHING[:-1],
    ),
    (
        "managed by another controller",
        observed(mpi_job(run={"managedBy": "kueue.x-k8s.io/multikueue"}), *WORKERS),
        [],
    ),
    (
        "managed by us under the operator's name",
        observed(mpi_job(run={"managedBy": "kubeflow.org/mpi-operator"})),
        EVERYTHING,
    ),
    ("being deleted", observed(mpi_job(metadata=ending())), []),
    (
        "the launcher has just ended: the status comes first",
        observed(mpi_job(), *WORKERS, launcher=launcher("Complete"), pod_group=group()),
        [],
    ),
    (
        "finished, cleanPodPolicy None by default: only the group goes",
        observed(
            mpi_job(status=finished()), *WORKERS, launcher=launcher("Complete"), pod_group=group()
        ),
        ["delete PodGroup train"],
    ),
    (
        "finished, cleanPodPolicy Running: pending ones go too, ended ones stay",
        observed(
            mpi_job(workers=3, run={"cleanPodPolicy": "Running"}, status=finished()),
            worker_pod(0),
            worker_pod(1, "Pending"),
            worker_pod(2, "Succeeded"),
            launcher=launcher("Complete"),
        ),
        ["delete Pod train-worker-0", "delete Pod train-worker-1"],
    ),
    (
        "finished, cleanPodPolicy All",
        observed(
            mpi_job(run={"cleanPodPolicy": "All"}, status=finished()),
            worker_pod(0),
            worker_pod(1, "Failed"),
            launcher=launcher("Complete"),
        ),
        ["delete Pod train-worker-0", "delete Pod train-worker-1"],
    ),
    (
        "finished workers are not made again",
        observed(mpi_job(status=finished()), launcher=launcher("Complete")),
        [],
    ),
    (
        "past its deadline: what still runs is ended, whatever the policy",
        observed(
            mpi_job(status=finished("Failed", "DeadlineExceeded")),
            *WORKERS,
            launcher=launcher(),
            pod_group=group(),
        ),
        [
            "merge Job train-launcher",
            "delete Pod train-worker-0",
            "delete Pod train-worker-1",
            "delete PodGroup train",
        ],
    ),
    (
        "finished for longer than its time to live",
        observed(
            mpi_job(run={"ttlSecondsAfterFinished": 60}, status=finished(at=NOW - 60)), *WORKERS
        ),
        ["delete MPIJob train"],
    ),
]


@pytest.mark.parametrize(
    ("seen", "expected"), [row[1:] for row in SITUATIONS], ids=[row[0] for row in SITUATIONS]
)
def test_deeds(seen: Observed, expected: list[str]) -> None:
    assert deeds(decide(seen, SETTINGS)) == expected


BLANK_OR_NOT: list[tuple[str, Observed, dict[str, str]]] = [
    ("a new job", observed(mpi_job()), {"Created": "True MPIJobCreated"}),
    (
        "every member runs",
        observed(
            mpi_job(status=started()), *WORKERS, launcher=launcher(), launcher_pods=[launcher_pod()]
        ),
        {"Created": "True MPIJobCreated", "Running": "True MPIJobRunning"},
    ),
    (
        "a worker that ran is gone",
        observed(
            mpi_job(
                status=started(condition("Running"), replicaStatuses={"Worker": {"active": 2}})
            ),
            worker_pod(0),
            launcher=launcher(),
            launcher_pods=[launcher_pod()],
        ),
        {"Created": "True MPIJobCreated", "Restarting": "True MPIJobRestarting"},
    ),
    (
        "the launcher is tried again",
        observed(
            mpi_job(
                status=started(condition("Running"), replicaStatuses={"Worker": {"active": 2}})
            ),
            *WORKERS,
            launcher=launcher(status={"failed": 1}),
            launcher_pods=[launcher_pod("Failed"), launcher_pod("Pending")],
        ),
        {"Created": "True MPIJobCreated", "Restarting": "True MPIJobRestarting"},
    ),
    (
        "it runs again after a restart",
        observed(
            mpi_job(status=started(condition("Restarting"))),
            *WORKERS,
            launcher=launcher(),
            launcher_pods=[launcher_pod()],
        ),
        {"Created": "True MPIJobCreated", "Running": "True MPIJobRunning"},
    ),
    (
        "growing is not restarting",
        observed(
            mpi_job(
                workers=3,
                status=started(condition("Running"), replicaStatuses={"Worker": {"active": 2}}),
            ),
            *WORKERS,
            launcher=launcher(),
            launcher_pods=[launcher_pod()],
        ),
        {"Created": "True MPIJobCreated", "Running": "True MPIJobRunning"},
    ),
    (
        "the launcher completed",
        observed(mpi_job(status=started(condition("Running"))), launcher=launcher("Complete")),
        {
            "Created": "True MPIJobCreated",
            "Running": "False MPIJobRunning",
            "Succeeded": "True MPIJobSucceeded",
        },
    ),
    (
        "the launcher gave up, and its last pod says why",
        observed(
            mpi_job(status=started()),
            launcher=launcher("Failed", why={"reason": "BackoffLimitExceeded", "message": "no"}),
            launcher_pods=[launcher_pod("Failed", reason="OOMKilled", message="too big")],
        ),
        {"Created": "True MPIJobCreated", "Failed": "True BackoffLimitExceeded/OOMKilled"},
    ),
    (
        "the launcher failed without a word",
        observed(mpi_job(status=started()), launcher=launcher("Failed")),
        {"Created": "True MPIJobCreated", "Failed": "True MPIJobFailed"},
    ),
    (
        "a worker was evicted by its node",
        observed(
            mpi_job(status=started()), worker_pod(0, "Failed", reason="Evicted"), worker_pod(1)
        ),
        {"Created": "True MPIJobCreated", "Failed": "True MPIJobEvicted"},
    ),
    (
        "a worker was turned away by its node, in the same word",
        observed(mpi_job(status=started()), TURNED_AWAY, worker_pod(1)),
        {"Created": "True MPIJobCreated"},
    ),
    (
        "the deadline passed, with no launcher to notice it",
        observed(
            mpi_job(run={"activeDeadlineSeconds": 10}, status=started(at=NOW - 10)), worker_pod(0)
        ),
        {"Created": "True MPIJobCreated", "Failed": "True DeadlineExceeded"},
    ),
    (
        "suspended",
        observed(mpi_job(run={"suspend": True}, status=started(condition("Running")))),
        {
            "Created": "True MPIJobCreated",
            "Running": "False MPIJobSuspended",
            "Suspended": "True MPIJobSuspended",
        },
    ),
    (
        "resumed",
        observed(mpi_job(status=started(condition("Suspended")))),
        {"Created": "True MPIJobCreated", "Suspended": "False MPIJobResumed"},
    ),
    ("finished stays as it is", observed(mpi_job(status=finished())), {}),
    (
        "finished stays finished whatever the pods do",
        observed(
            mpi_job(status=finished()),
            *WORKERS,
            launcher=launcher(),
            launcher_pods=[launcher_pod()],
        ),
        {},
    ),
]


@pytest.mark.parametrize(
    ("seen", "expected"), [row[1:] for row in BLANK_OR_NOT], ids=[row[0] for row in BLANK_OR_NOT]
)
def test_conditions(seen: Observed, expected: dict[str, str]) -> None:
    assert states(decide(seen, SETTINGS)) == expected


def test_counts_and_times() -> None:
    seen = observed(
        mpi_job(workers=3),
        worker_pod(0),
        worker_pod(1, "Failed"),
        worker_pod(2, "Succeeded"),
        launcher=launcher(status={"failed": 2}),
        launcher_pods=[launcher_pod()],
    )
    status = decide(seen, SETTINGS).status
    assert status is not None
    assert status["replicaStatuses"] == {
        "Launcher": {"active": 1, "failed": 2},
        "Worker": {"active": 1, "succeeded": 1, "failed": 1},
    }
    assert status["startTime"] == rfc3339(NOW)


def test_a_status_that_says_it_all_is_not_written_again() -> None:
    first = decide(observed(mpi_job(), *WORKERS), SETTINGS).status
    again = decide(observed(mpi_job(status=first), *WORKERS, now=NOW + 30), SETTINGS)
    assert again.status is None
    assert again.says == ()


def test_completion_is_the_launchers() -> None:
    ended = launcher("Complete", status={"completionTime": rfc3339(NOW - 5)})
    status = decide(observed(mpi_job(), launcher=ended), SETTINGS).status
    assert status is not None
    assert status["completionTime"] == rfc3339(NOW - 5)


def test_a_resumed_jobs_deadline_starts_anew() -> None:
    job = mpi_job(
        run={"activeDeadlineSeconds": 10}, status=started(condition("Suspended"), at=NOW - 99)
    )
    decision = decide(observed(job), SETTINGS)
    assert decision.status is not None
    assert decision.status["startTime"] == rfc3339(NOW)
    assert decision.after == 10


def test_a_deadline_is_looked_at_when_it_falls_due() -> None:
    job = mpi_job(run={"activeDeadlineSeconds": 60}, status=started(at=NOW - 20))
    assert decide(observed(job), SETTINGS).after == 40


def test_a_time_to_live_is_looked_at_when_it_is_over() -> None:
    job = mpi_job(run={"ttlSecondsAfterFinished": 60}, status=finished(at=NOW - 20))
    assert decide(observed(job), SETTINGS).after == 40


def test_events_tell_each_transition_once() -> None:
    said = [say.reason for say in decide(observed(mpi_job()), SETTINGS).says]
    assert said == ["MPIJobCreated"]


def test_resuming_unsuspends_a_launcher_that_would_be_placed_alike() -> None:
    fresh = made(decide(observed(mpi_job()), SETTINGS), "Job")
    kept = owned("train-launcher", spec=fresh["spec"] | {"suspend": True})
    decision = decide(observed(mpi_job(), *WORKERS, launcher=kept), SETTINGS)
    assert Merge(decision.actions[-1].kind, kept, {"spec": {"suspend": False}}) in decision.actions


def test_resuming_elsewhere_replaces_the_launcher() -> None:
    fresh = made(decide(observed(mpi_job()), SETTINGS), "Job")
    kept = owned("train-launcher", spec=fresh["spec"] | {"suspend": True})
    moved = mpi_job()
    moved["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["nodeSelector"] = {"pool": "b"}
    decision = decide(observed(moved, *WORKERS, launcher=kept), SETTINGS)
    assert "delete Job train-launcher" in deeds(decision)


def test_gang_scheduling_turned_off_leaves_pods_to_any_scheduler() -> None:
    off = Settings(gang=GangSettings(enabled=False))
    decision = decide(observed(mpi_job()), off)
    assert deeds(decision) == EVERYTHING[1:]
    assert "schedulerName" not in made(decision, "Pod")["spec"]


def test_equal_input_gives_equal_bytes() -> None:
    seen = observed(mpi_job(waits=True, workers=12))
    first, second = (
        msgspec.json.encode([getattr(a, "manifest", None) for a in decide(seen, SETTINGS).actions])
        for _ in range(2)
    )
    assert first == second


INVALID: list[tuple[str, dict[str, Any], str]] = [
    ("no launcher", {"spec": {"mpiReplicaSpecs": {}}}, "mpiReplicaSpecs[Launcher]: Required value"),
    ("no workers asked for", mpi_job(workers=0), "[Worker].replicas: Invalid value: 0"),
    ("two launchers", {"Launcher": {"replicas": 2}}, "[Launcher].replicas: Invalid value: 2"),
    ("no containers", {"Worker": {"template": {}}}, "[Worker].template.spec.containers: Required"),
    ("restartPolicy Always", {"Worker": {"restartPolicy": "Always"}}, "restartPolicy: Unsupported"),
    ("a wrong type", mpi_job(slotsPerWorker="two"), "spec: Invalid value"),
    ("negative slots", mpi_job(slotsPerWorker=-1), "spec.slotsPerWorker: Invalid value: -1"),
    ("an unknown MPI", mpi_job(mpiImplementation="LAM"), "spec.mpiImplementation: Unsupported"),
    ("an unknown policy", mpi_job(run={"cleanPodPolicy": "Some"}), "cleanPodPolicy: Unsupported"),
    ("a name too long", mpi_job(metadata={"name": "a" * 55}), "metadata.name: Invalid value"),
    ("beyond all clusters", mpi_job(workers=10**9), "[Worker].replicas: Invalid value"),
    ("labels that are none", {"Worker": {"template": template() | {"metadata": "x"}}}, "[Worker]"),
    (
        "containers that are none",
        {"Worker": {"template": {"spec": {"containers": "x"}}}},
        "[Worker]",
    ),
    (
        "an environment that is none",
        {"Worker": {"template": {"spec": {"containers": [{"name": "main", "env": {"A": "B"}}]}}}},
        "[Worker].template: Invalid value",
    ),
    (
        "nonsense for a quantity",
        mpi_job(worker={"spec": {"containers": [{"resources": {"limits": {"cpu": "lots"}}}]}}),
        "[Worker].template.spec.containers[0].resources.limits[cpu]",
    ),
]


@pytest.mark.parametrize(
    ("change", "message"), [row[1:] for row in INVALID], ids=[row[0] for row in INVALID]
)
def test_an_invalid_job_is_refused_with_the_reason(change: dict[str, Any], message: str) -> None:
    job = change if "metadata" in change else mpi_job()
    if "spec" in change and "metadata" not in change:
        job["spec"] = change["spec"]
    for replica in ("Launcher", "Worker"):
        if replica in change:
            job["spec"]["mpiReplicaSpecs"][replica] |= change[replica]
    decision = decide(observed(job), SETTINGS)
    assert decision.actions == ()
    assert states(decision) == {"Failed": "True InvalidMPIJobSpec"}
    assert message in (decision.status or {})["conditions"][0]["message"]
    assert [say.reason for say in decision.says] == ["ValidationError"]


def test_a_refusal_is_said_once() -> None:
    refused = decide(observed(mpi_job(workers=0)), SETTINGS).status
    assert decide(observed(mpi_job(workers=0, status=refused)), SETTINGS) == Decision()


def test_a_job_that_was_mended_runs() -> None:
    refused = decide(observed(mpi_job(workers=0)), SETTINGS).status
    decision = decide(observed(mpi_job(status=refused)), SETTINGS)
    assert deeds(decision) == EVERYTHING
    assert states(decision) == {"Created": "True MPIJobCreated"}


def test_a_running_job_that_is_edited_into_nonsense_is_left_running() -> None:
    decision = decide(observed(mpi_job(workers=0, status=started()), *WORKERS), SETTINGS)
    assert decision.actions == ()
    assert decision.status is None
    assert [say.reason for say in decision.says] == ["ValidationError"]
