"""What there is of a TFJob -> what is to be done. Each row is one situation."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from posse.controllers.jobs.actions import Decision, Merge
from posse.controllers.jobs.grouping import GangSettings
from posse.controllers.jobs.replicas.observing import Observed
from posse.controllers.jobs.settings import Settings
from posse.objects.times import rfc3339
from tests.unit.controllers.builders import NOW, ending
from tests.unit.controllers.tf_builders import (
    condition,
    decision,
    deeds,
    finished,
    group,
    made,
    observed,
    owned,
    pod,
    replicas,
    started,
    states,
    template,
    tf_job,
)

EVERYTHING = [
    "create PodGroup train",
    "create Pod train-ps-0",
    "create Pod train-worker-0",
    "create Pod train-worker-1",
]
PODS = (pod("ps-0"), pod("worker-0"), pod("worker-1"))
GROUP = group()
USERS = {"scheduling.k8s.io/group-name": "mine"}


def whole(job: dict[str, Any], *pods: dict[str, Any], **seen: Any) -> Observed:
    """The job's group and services are there."""
    names = ("ps-0", "worker-0", "worker-1")
    services = seen.pop("services", [owned(f"train-{name}") for name in names])
    return observed(job, *pods, pod_group=GROUP, services=services, **seen)


def worker_job(policy: str = "Never", **fields: Any) -> dict[str, Any]:
    status = fields.pop("status", started(condition("Running")))
    return tf_job(
        {"PS": replicas(1, policy), "Worker": replicas(2, policy)}, status=status, **fields
    )


def counted(**tallies: list[Any]) -> dict[str, Any]:
    """The job's memory of restarts: worker_0=[1, "uid"]."""
    text = msgspec.json.encode(
        {f"train-{name.replace('_', '-')}": tally for name, tally in tallies.items()}
    ).decode()
    return {"annotations": {"posse.dev/restarts": text}}


SITUATIONS: list[tuple[str, Observed, list[str]]] = [
    ("a new job gets everything", observed(tf_job()), EVERYTHING),
    (
        "a crash between two pods: only the missing one is made",
        whole(tf_job(status=started()), pod("ps-0"), pod("worker-1")),
        ["create Pod train-worker-0"],
    ),
    ("nothing is missing", whole(tf_job(status=started()), *PODS), []),
    (
        "a pod is still ending: nothing is made in its place yet",
        whole(tf_job(), pod("ps-0"), pod("worker-0", metadata=ending()), pod("worker-1")),
        [],
    ),
    (
        "scaled down: the highest indices go",
        whole(tf_job({"PS": replicas(1), "Worker": replicas(1)}), *PODS),
        ["merge PodGroup train", "delete Pod train-worker-1"],
    ),
    (
        "scaled up: the next indices come",
        whole(tf_job({"PS": replicas(1), "Worker": replicas(3)}), *PODS),
        ["merge PodGroup train", "create Pod train-worker-2"],
    ),
    (
        "a role is given up: its pods go",
        whole(tf_job({"Worker": replicas(2)}), *PODS),
        ["merge PodGroup train", "delete Pod train-ps-0"],
    ),
    (
        "a node turned a pod away: it is replaced, having lost nothing",
        whole(tf_job(), pod("ps-0", "Failed", reason="OutOfcpu"), *PODS[1:]),
        ["delete Pod train-ps-0"],
    ),
    (
        "a node that shuts down turned a pod away: it is replaced, whatever its policy says",
        whole(worker_job(), pod("ps-0", "Failed", reason="NodeShutdown"), *PODS[1:]),
        ["delete Pod train-ps-0"],
    ),
    (
        "a pod was preempted: it is replaced, whatever its policy says",
        whole(worker_job(), pod("ps-0", "Failed", disrupted="PreemptionByScheduler"), *PODS[1:]),
        ["delete Pod train-ps-0"],
    ),
    (
        "an earlier job's pod under our name: the others are made meanwhile",
        observed(tf_job(), owned("train-ps-0", uid="job-0", metadata=ending())),
        ["create PodGroup train", "blocked Pod train-ps-0", *EVERYTHING[2:]],
    ),
    (
        "an earlier job's PodGroup: no pod may join it",
        observed(tf_job(), pod_group=owned("train", uid="job-0")),
        ["blocked PodGroup train"],
    ),
    (
        "a PodGroup that the user made is used",
        observed(tf_job(), pod_group={"metadata": {"name": "train"}, "spec": {"minMember": 6}}),
        EVERYTHING[1:],
    ),
    (
        "a group named by a template is the user's own",
        observed(
            tf_job({"PS": replicas(1), "Worker": replicas(2, metadata={"annotations": USERS})})
        ),
        EVERYTHING[1:],
    ),
    (
        "gang scheduling turned off for this job",
        observed(tf_job(metadata={"annotations": {"posse.dev/gang": "false"}})),
        EVERYTHING[1:],
    ),
    (
        "the user asks for fewer to start with",
        whole(tf_job(run={"schedulingPolicy": {"minAvailable": 2}}, status=started()), *PODS),
        ["merge PodGroup train"],
    ),
    ("suspended from the start", observed(tf_job(run={"suspend": True})), []),
    (
        "suspended while running: everything goes",
        whole(tf_job(run={"suspend": True}, status=started(condition("Running"))), *PODS),
        [
            "delete Pod train-ps-0",
            "delete Pod train-worker-0",
            "delete Pod train-worker-1",
            "delete PodGroup train",
        ],
    ),
    (
        "resumed: everything comes back",
        observed(tf_job(status=started(condition("Suspended")))),
        EVERYTHING,
    ),
    (
        "being deleted: nothing is done any more",
        observed(tf_job(metadata=ending()), pod("ps-0")),
        [],
    ),
    (
        "finished, None: only the group goes",
        whole(tf_job(run={"cleanPodPolicy": "None"}, status=finished()), *PODS),
        ["delete PodGroup train"],
    ),
    (
        "finished, Running: those that run or may yet run go",
        whole(
            tf_job(run={"cleanPodPolicy": "Running"}, status=finished()),
            pod("ps-0"),
            pod("worker-0", "Succeeded", code=0),
            pod("worker-1", "Pending"),
        ),
        ["delete Pod train-ps-0", "delete Pod train-worker-1", "delete PodGroup train"],
    ),
    (
        "finished, All: all go",
        whole(
            tf_job(run={"cleanPodPolicy": "All"}, status=finished()),
            pod("ps-0"),
            pod("worker-0", "Succeeded", code=0),
        ),
        ["delete Pod train-ps-0", "delete Pod train-worker-0", "delete PodGroup train"],
    ),
    (
        "cut short by its deadline, None: what runs is ended all the same",
        whole(tf_job(status=finished("Failed", "DeadlineExceeded")), *PODS),
        [
            "delete Pod train-ps-0",
            "delete Pod train-worker-0",
            "delete Pod train-worker-1",
            "delete PodGroup train",
        ],
    ),
    (
        "finished, its time is over: the job goes",
        observed(tf_job(run={"ttlSecondsAfterFinished": 60}, status=finished(at=NOW - 60))),
        ["delete TFJob train"],
    ),
    (
        "a failed pod is counted before anything else",
        whole(worker_job("OnFailure"), *PODS[:2], pod("worker-1", "Failed", code=1)),
        ["merge TFJob train"],
    ),
    (
        "a failed pod that is counted is replaced",
        whole(
            worker_job("OnFailure", metadata=counted(worker_1=[1, "uid-train-worker-1"])),
            *PODS[:2],
            pod("worker-1", "Failed", code=1),
        ),
        ["delete Pod train-worker-1"],
    ),
    (
        "its replacement has failed, too: it is counted again",
        whole(
            worker_job("OnFailure", metadata=counted(worker_1=[1, "an earlier one"])),
            *PODS[:2],
            pod("worker-1", "Failed", code=1),
        ),
        ["merge TFJob train"],
    ),
]


@pytest.mark.parametrize(
    ("seen", "expected"),
    [(seen, expected) for _, seen, expected in SITUATIONS],
    ids=[name for name, _, _ in SITUATIONS],
)
def test_what_is_to_be_done(seen: Observed, expected: list[str]) -> None:
    assert deeds(decision(seen)) == expected


ENDINGS: list[tuple[str, Observed, dict[str, str]]] = [
    (
        "created",
        observed(tf_job()),
        {"Created": "True TFJobCreated"},
    ),
    (
        "the workers run",
        whole(tf_job(status=started()), *PODS),
        {"Created": "True TFJobCreated", "Running": "True TFJobRunning"},
    ),
    (
        "only the server runs: that is not the job",
        whole(tf_job(status=started()), pod("ps-0"), pod("worker-0", "Pending")),
        {"Created": "True TFJobCreated"},
    ),
    (
        "the first worker is done",
        whole(worker_job(), pod("ps-0"), pod("worker-0", "Succeeded", code=0), pod("worker-1")),
        {
            "Created": "True TFJobCreated",
            "Running": "False TFJobRunning",
            "Succeeded": "True TFJobSucceeded",
        },
    ),
    (
        "another worker is done: the job goes on",
        whole(worker_job(), pod("ps-0"), pod("worker-0"), pod("worker-1", "Succeeded", code=0)),
        {"Created": "True TFJobCreated", "Running": "True TFJobRunning"},
    ),
    (
        "all workers are asked for: the first is not enough",
        whole(
            worker_job(successPolicy="AllWorkers"),
            pod("ps-0"),
            pod("worker-0", "Succeeded", code=0),
            pod("worker-1"),
        ),
        {"Created": "True TFJobCreated", "Running": "True TFJobRunning"},
    ),
    (
        "all workers are asked for, and done",
        whole(
            worker_job(successPolicy="AllWorkers"),
            pod("ps-0"),
            pod("worker-0", "Succeeded", code=0),
            pod("worker-1", "Succeeded", code=0),
        ),
        {
            "Created": "True TFJobCreated",
            "Running": "False TFJobRunning",
            "Succeeded": "True TFJobSucceeded",
        },
    ),
    (
        "the chief is done, whoever still runs",
        whole(
            tf_job({"Chief": replicas(1), "Worker": replicas(2)}, status=started()),
            pod("chief-0", "Succeeded", code=0),
            pod("worker-0"),
            pod("worker-1"),
        ),
        {"Created": "True TFJobCreated", "Succeeded": "True TFJobSucceeded"},
    ),
    (
        "workers are done, the chief is not",
        whole(
            tf_job({"Chief": replicas(1), "Worker": replicas(1)}, status=started()),
            pod("chief-0"),
            pod("worker-0", "Succeeded", code=0),
        ),
        {"Created": "True TFJobCreated", "Running": "True TFJobRunning"},
    ),
    (
        "the chief waits while workers run: not running yet",
        whole(
            tf_job({"Master": replicas(1), "Worker": replicas(1)}, status=started()),
            pod("master-0", "Pending"),
            pod("worker-0"),
        ),
        {"Created": "True TFJobCreated"},
    ),
    (
        "a pod failed for good",
        whole(worker_job(), pod("ps-0", "Failed", code=1), *PODS[1:]),
        {
            "Created": "True TFJobCreated",
            "Running": "False TFJobRunning",
            "Failed": "True TFJobFailed",
        },
    ),
    (
        "a failed pod that is being deleted is nobody's failure",
        whole(worker_job(), pod("ps-0", "Failed", code=143, metadata=ending()), *PODS[1:]),
        {"Created": "True TFJobCreated", "Running": "True TFJobRunning"},
    ),
    (
        "a worker failed where workers may come and go",
        whole(
            worker_job(enableDynamicWorker=True),
            *PODS[:2],
            pod("worker-1", "Failed", code=1),
        ),
        {"Created": "True TFJobCreated", "Running": "True TFJobRunning"},
    ),
    (
        "workers may come and go, but none is left",
        whole(
            worker_job(enableDynamicWorker=True),
            pod("ps-0"),
            pod("worker-0", "Failed", code=1),
            pod("worker-1", "Failed", code=1),
        ),
        {
            "Created": "True TFJobCreated",
            "Running": "False TFJobRunning",
            "Failed": "True TFJobFailed",
        },
    ),
    (
        "a failed pod that comes back",
        whole(
            worker_job("OnFailure", metadata=counted(worker_1=[1, "uid-train-worker-1"])),
            *PODS[:2],
            pod("worker-1", "Failed", code=1),
        ),
        {"Created": "True TFJobCreated", "Restarting": "True TFJobRestarting"},
    ),
    (
        "it is back",
        whole(tf_job(status=started(condition("Restarting"))), *PODS),
        {"Created": "True TFJobCreated", "Running": "True TFJobRunning"},
    ),
    (
        "suspended",
        whole(tf_job(run={"suspend": True}, status=started(condition("Running"))), *PODS),
        {
            "Created": "True TFJobCreated",
            "Running": "False TFJobSuspended",
            "Suspended": "True TFJobSuspended",
        },
    ),
    (
        "resumed",
        observed(tf_job(status=started(condition("Suspended")))),
        {"Created": "True TFJobCreated", "Suspended": "False TFJobResumed"},
    ),
    (
        "its deadline is over",
        whole(
            tf_job(run={"activeDeadlineSeconds": 60}, status=started(at=NOW - 60)),
            *PODS,
        ),
        {"Created": "True TFJobCreated", "Failed": "True DeadlineExceeded"},
    ),
]


@pytest.mark.parametrize(
    ("seen", "expected"),
    [(seen, expected) for _, seen, expected in ENDINGS],
    ids=[name for name, _, _ in ENDINGS],
)
def test_what_the_job_says_of_itself(seen: Observed, expected: dict[str, str]) -> None:
    decided = decision(seen)
    before = {
        item["type"]: f"{item['status']} {item['reason']}"
        for item in (seen.job.get("status") or {}).get("conditions", [])
    }
    assert (states(decided) if decided.status else before) == expected


@pytest.mark.parametrize(
    ("policy", "code", "fate"),
    [
        ("Never", 1, "fails"),
        ("Never", 137, "fails"),
        ("OnFailure", 1, "restarts"),
        ("Always", 1, "restarts"),
        ("ExitCode", 1, "fails"),
        ("ExitCode", 127, "fails"),
        ("ExitCode", 128, "restarts"),
        ("ExitCode", 130, "restarts"),
        ("ExitCode", None, "restarts"),
    ],
)
def test_replica_restart_policy(policy: str, code: int | None, fate: str) -> None:
    seen = whole(worker_job(policy), *PODS[:2], pod("worker-1", "Failed", code=code))
    decided = decision(seen)
    failed = "Failed" in states(decided)
    assert ("fails" if failed else "restarts") == fate
    assert deeds(decided) == ([] if failed else ["merge TFJob train"])


def test_the_newest_condition_stands_last() -> None:
    seen = whole(
        tf_job(status=started(condition("Restarting"), condition("Suspended", "False"))), *PODS
    )
    status = decision(seen).status or {}
    assert [item["type"] for item in status["conditions"]] == ["Created", "Suspended", "Running"]


def test_a_failure_names_who_failed_and_how() -> None:
    seen = whole(worker_job(), pod("ps-0"), pod("worker-0"), pod("worker-1", "Failed", code=3))
    message = (decision(seen).status or {})["conditions"][-1]["message"]
    assert message == (
        "TFJob ns/train has failed because 1 Worker replica(s) failed."
        " train-worker-1: tensorflow exited with code 3."
    )


def test_a_failure_before_the_program_started_is_named_too() -> None:
    failed = pod("worker-1", "Failed")
    ended = {"name": "init-code", "state": {"terminated": {"exitCode": 128}}}
    failed["status"]["initContainerStatuses"] = [ended]
    message = (decision(whole(worker_job(), *PODS[:2], failed)).status or {})["conditions"][-1]
    assert message["message"].endswith("train-worker-1: init-code exited with code 128.")


def test_exit_codes_are_events() -> None:
    seen = whole(worker_job(), pod("ps-0"), pod("worker-0", "Succeeded", code=0), pod("worker-1"))
    assert ("ExitedWithCode", "Pod: ns.train-worker-0 exited with code 0") in [
        (said.reason, said.message) for said in decision(seen).says
    ]


def test_replicas_are_counted_by_role() -> None:
    seen = whole(tf_job(), pod("ps-0"), pod("worker-0", "Pending"), pod("worker-1"))
    assert (decision(seen).status or {})["replicaStatuses"] == {
        "PS": {"active": 1},
        "Worker": {"active": 1},
    }


def test_of_a_job_that_succeeded_nobody_is_active() -> None:
    before = {"PS": {"active": 1}, "Worker": {"active": 1, "succeeded": 1}}
    seen = whole(tf_job(status=finished(replicaStatuses=before)), *PODS)
    assert (decision(seen).status or {})["replicaStatuses"] == {
        "PS": {"succeeded": 1},
        "Worker": {"succeeded": 2},
    }


@pytest.mark.parametrize(
    ("limit", "tally", "failed"),
    [(None, 99, False), (0, 1, True), (2, 2, False), (2, 3, True)],
)
def test_backoff_counts_pods_that_were_replaced(
    limit: int | None, tally: int, failed: bool
) -> None:
    job = worker_job(
        "ExitCode",
        run={"backoffLimit": limit},
        metadata=counted(worker_1=[tally, "an earlier one"]),
    )
    assert ("Failed" in states(decision(whole(job, *PODS)))) is failed


def test_backoff_counts_restarts_in_place_too() -> None:
    job = worker_job(
        "OnFailure", run={"backoffLimit": 3}, metadata=counted(worker_1=[1, "an earlier one"])
    )
    two, three = (
        decision(whole(job, pod("ps-0", restarts=1), pod("worker-0"), pod("worker-1", restarts=n)))
        for n in (1, 2)
    )
    assert "Failed" not in states(two)
    assert states(three)["Failed"] == "True BackoffLimitExceeded"


def tally_of(decided: Decision) -> Any:
    (action,) = decided.actions
    assert isinstance(action, Merge)
    return msgspec.json.decode(action.patch["metadata"]["annotations"]["posse.dev/restarts"])


def test_what_is_remembered_of_restarts() -> None:
    job = worker_job("OnFailure", metadata=counted(worker_1=[2, "an earlier one"]))
    failed = pod("worker-1", "Failed", code=1, restarts=3)
    decided = decision(whole(job, *PODS[:2], failed))
    assert tally_of(decided) == {"train-worker-1": [6, "uid-train-worker-1"]}
    assert decided.status is None, "the job is written once, and looked at again"


def test_a_memory_that_cannot_be_read_begins_anew() -> None:
    job = worker_job("OnFailure", metadata={"annotations": {"posse.dev/restarts": "[{"}})
    decided = decision(whole(job, *PODS[:2], pod("worker-1", "Failed", code=1)))
    assert tally_of(decided) == {"train-worker-1": [1, "uid-train-worker-1"]}


@pytest.mark.parametrize(
    ("restarts", "age", "wait"),
    [(1, 0, None), (2, 0, 10.0), (2, 4, 6.0), (2, 10, None), (4, 0, 40.0), (50, 1, 299.0)],
)
def test_replacements_come_at_growing_intervals(
    restarts: int, age: float, wait: float | None
) -> None:
    job = worker_job("ExitCode", metadata=counted(worker_1=[restarts, "uid-train-worker-1"]))
    created = {"creationTimestamp": rfc3339(NOW - age)}
    failed = pod("worker-1", "Failed", code=137, metadata=created)
    decided = decision(whole(job, *PODS[:2], failed))
    assert deeds(decided) == (["delete Pod train-worker-1"] if wait is None else [])
    assert decided.after == wait


def test_a_deadline_is_kept_without_any_event() -> None:
    job = tf_job(run={"activeDeadlineSeconds": 60}, status=started(at=NOW - 15))
    assert decision(whole(job, *PODS)).after == 45


def test_the_end_of_a_jobs_stay_is_kept_without_any_event() -> None:
    job = tf_job(run={"ttlSecondsAfterFinished": 60}, status=finished(at=NOW - 15))
    assert decision(observed(job)).after == 45


@pytest.mark.parametrize(
    ("policy", "going"),
    [
        ("None", []),
        ("Running", ["delete Service train-ps-0", "delete Service train-worker-1"]),
        (
            "All",
            [
                "delete Service train-ps-0",
                "delete Service train-worker-0",
                "delete Service train-worker-1",
            ],
        ),
    ],
)
def test_services_go_with_their_pods(policy: str, going: list[str]) -> None:
    job = tf_job(run={"cleanPodPolicy": policy}, status=finished())
    seen = whole(job, pod("ps-0"), pod("worker-0", "Succeeded", code=0))
    told = deeds(decision(seen), services=True)
    assert [deed for deed in told if "Service" in deed] == going


def test_services_come_before_their_pods_and_go_with_the_surplus() -> None:
    job = tf_job({"Worker": replicas(1)})
    seen = observed(job, services=[owned("train-worker-1")])
    assert deeds(decision(seen), services=True) == [
        "create Service train-worker-0",
        "delete Service train-worker-1",
        "create PodGroup train",
        "create Pod train-worker-0",
    ]


@pytest.mark.parametrize(
    ("policy", "spec"),
    [
        ({}, {"minMember": 3, "minResources": {"cpu": "5"}}),
        ({"minAvailable": 2}, {"minMember": 2, "minResources": {"cpu": "3"}}),
        ({"minAvailable": 9}, {"minMember": 9, "minResources": {"cpu": "5"}}),
        (
            {"queue": "vision", "priorityClass": "high", "minResources": {"cpu": "7"}},
            {
                "minMember": 3,
                "queue": "vision",
                "priorityClassName": "high",
                "minResources": {"cpu": "7"},
            },
        ),
    ],
)
def test_the_gang(policy: dict[str, Any], spec: dict[str, Any]) -> None:
    def asking(cpus: str) -> dict[str, Any]:
        return template(container={"resources": {"requests": {"cpu": cpus}}})

    roles = {"Worker": replicas(2, template=asking("2")), "PS": replicas(1, template=asking("1"))}
    job = tf_job(roles, run={"schedulingPolicy": policy})
    pod_group = made(decision(observed(job)), "PodGroup", "train")
    assert pod_group["spec"] == spec
    assert pod_group["metadata"]["ownerReferences"][0]["kind"] == "TFJob"


def test_of_fewer_than_all_the_one_that_leads_is_needed() -> None:
    roles = {"Chief": replicas(1), "Worker": replicas(3)}
    job = tf_job(roles, run={"schedulingPolicy": {"minAvailable": 2}})
    pod_group = made(decision(observed(job)), "PodGroup", "train")
    assert pod_group["metadata"]["annotations"]["posse.dev/leads"] == "chief"


def test_without_gang_scheduling_there_is_no_group() -> None:
    settings = Settings(gang=GangSettings(enabled=False))
    assert deeds(decision(observed(tf_job()), settings)) == EVERYTHING[1:]


def test_deciding_twice_is_deciding_the_same() -> None:
    encode = msgspec.json.Encoder(enc_hook=repr).encode
    for _, seen, _ in SITUATIONS:
        assert encode(decision(seen)) == encode(decision(seen))
