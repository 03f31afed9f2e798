"""The PodGroup of a job, and the marks on its pods."""

from __future__ import annotations

import json
from typing import Any

import pytest

from posse.controllers.jobs.grouping import GangSettings, Mark, group_changes, marks
from posse.controllers.jobs.settings import Settings
from posse.controllers.mpi.gang import mark_of, pod_group
from posse.controllers.mpi.observing import Situation
from posse.objects.jobs.mpi.spec import read
from posse.objects.keys import LEADS
from tests.unit.controllers.builders import (
    SETTINGS,
    launcher,
    launcher_template,
    mpi_job,
    observed,
    template,
)

GROUP = "scheduling.k8s.io/group-name"
OWN = Mark("annotations", GROUP, "train")


def situation(job: dict[str, Any], settings: Settings = SETTINGS) -> Situation:
    return Situation(observed(job), read(job), settings)


def test_everyone_counts_when_the_launcher_starts_with_the_workers() -> None:
    group = pod_group(situation(mpi_job(workers=4)))
    assert group["spec"]["minMember"] == 5
    assert "annotations" not in group["metadata"]


def test_a_launcher_that_waits_is_announced_and_not_counted() -> None:
    job = mpi_job(
        workers=4,
        waits=True,
        launcher=launcher_template(
            nodeSelector={"b": "2", "a": "1"},
            tolerations=[{"key": "gpu", "operator": "Exists"}],
            affinity={"nodeAffinity": {"x": "y"}, "podAffinity": {"z": "z"}},
        ),
    )
    group = pod_group(situation(job))
    assert group["spec"]["minMember"] == 4
    assert json.loads(group["metadata"]["annotations"]["posse.dev/expects"]) == [
        {
            "role": "launcher",
            "count": 1,
            "requests": {"cpu": "1", "memory": "1Gi"},
            "nodeSelector": {"a": "1", "b": "2"},
            "tolerations": [{"key": "gpu", "operator": "Exists"}],
            "nodeAffinity": {"x": "y"},
        }
    ]


LEAST: list[tuple[str, bool, Any, int, str | None]] = [
    ("mpi-operator#608: a launcher that waits needs them all", True, None, 4, None),
    ("until it is there", True, launcher(suspend=True), 4, None),
    ("from then on fewer will do", True, launcher(), 2, None),
    ("who starts with some of the workers is the launcher", False, None, 2, "launcher"),
]


@pytest.mark.parametrize(
    ("waits", "present", "least", "leads"),
    [row[1:] for row in LEAST],
    ids=[row[0] for row in LEAST],
)
def test_fewer_than_all_start_only_where_they_can_work(
    waits: bool, present: Any, least: int, leads: str | None
) -> None:
    job = mpi_job(workers=4, waits=waits, run={"schedulingPolicy": {"minAvailable": 2}})
    group = pod_group(Situation(observed(job, launcher=present), read(job), SETTINGS))
    says = group["metadata"].get("annotations") or {}
    assert (group["spec"]["minMember"], says.get(LEADS)) == (least, leads)


def test_a_minimum_that_counts_the_launcher_does_not_wait_for_it() -> None:
    """mpi-operator#608: it is made when all workers run."""
    job = mpi_job(workers=4, waits=True, run={"schedulingPolicy": {"minAvailable": 5}})
    assert pod_group(situation(job))["spec"]["minMember"] == 4


def test_the_role_that_leads_is_called_as_its_template_calls_it() -> None:
    named = launcher_template()
    named["metadata"] = {"annotations": {"volcano.sh/task-spec": "boss"}}
    job = mpi_job(run={"schedulingPolicy": {"minAvailable": 2}}, launcher=named)
    assert pod_group(situation(job))["metadata"]["annotations"][LEADS] == "boss"


def test_who_leads_is_told_no_more_when_everybody_is_needed_again() -> None:
    fewer = mpi_job(workers=4, run={"schedulingPolicy": {"minAvailable": 2}})
    changes = group_changes(pod_group(situation(fewer)), pod_group(situation(mpi_job(workers=4))))
    assert changes["metadata"]["annotations"] == {LEADS: None}


def test_a_launcher_without_workers_has_nobody_to_wait_for() -> None:
    group = pod_group(situation(mpi_job(workers=None, waits=True)))
    assert group["spec"]["minMember"] == 1
    assert "annotations" not in group["metadata"]


def test_the_group_belongs_to_the_job() -> None:
    owner = pod_group(situation(mpi_job()))["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("MPIJob", "job-1", True)


SUMS: list[tuple[str, dict[str, Any], dict[str, str]]] = [
    ("all members", {}, {"cpu": "9", "memory": "1Gi", "nvidia.com/gpu": "4"}),
    (
        "with the announced launcher",
        {"waits": True},
        {"cpu": "9", "memory": "1Gi", "nvidia.com/gpu": "4"},
    ),
    (
        "of the least that can run",
        {"run": {"schedulingPolicy": {"minAvailable": 2}}},
        {"cpu": "5", "memory": "1Gi", "nvidia.com/gpu": "2"},
    ),
    ("as given", {"run": {"schedulingPolicy": {"minResources": {"cpu": "7"}}}}, {"cpu": "7"}),
]


@pytest.mark.parametrize(
    ("fields", "total"), [row[1:] for row in SUMS], ids=[row[0] for row in SUMS]
)
def test_min_resources(fields: dict[str, Any], total: dict[str, str]) -> None:
    assert pod_group(situation(mpi_job(**fields)))["spec"]["minResources"] == total


POLICIES: list[tuple[str, dict[str, Any], str, Any]] = [
    ("minAvailable", {"run": {"schedulingPolicy": {"minAvailable": 2}}}, "minMember", 2),
    ("queue", {"run": {"schedulingPolicy": {"queue": "vision"}}}, "queue", "vision"),
    (
        "queue by annotation",
        {"metadata": {"annotations": {"scheduling.volcano.sh/queue-name": "speech"}}},
        "queue",
        "speech",
    ),
    (
        "queue by label",
        {"metadata": {"labels": {"scheduling.volcano.sh/queue-name": "speech"}}},
        "queue",
        "speech",
    ),
    ("no queue", {}, "queue", None),
    (
        "priority",
        {"run": {"schedulingPolicy": {"priorityClass": "high"}}},
        "priorityClassName",
        "high",
    ),
    (
        "priority of the launcher before that of the workers",
        {
            "launcher": launcher_template(priorityClassName="mid"),
            "worker": template(priorityClassName="low"),
        },
        "priorityClassName",
        "mid",
    ),
    (
        "priority of the workers",
        {"worker": template(priorityClassName="low")},
        "priorityClassName",
        "low",
    ),
]


@pytest.mark.parametrize(
    ("fields", "name", "value"), [row[1:] for row in POLICIES], ids=[row[0] for row in POLICIES]
)
def test_scheduling_policy(fields: dict[str, Any], name: str, value: Any) -> None:
    assert pod_group(situation(mpi_job(**fields)))["spec"].get(name) == value


def test_a_changed_job_changes_its_group_and_no_field_of_anybody_else() -> None:
    present = pod_group(situation(mpi_job(workers=2)))
    present["metadata"]["annotations"] = {"posse.dev/held": "{}"}
    present["spec"]["queue"] = "default"
    changes = group_changes(present, pod_group(situation(mpi_job(workers=3))))
    assert changes["spec"]["minMember"] == 4
    assert set(changes) == {"spec"}
    assert "queue" not in changes["spec"]


def test_a_resource_that_is_no_longer_needed_leaves_the_sum() -> None:
    present = pod_group(situation(mpi_job()))
    given = {"schedulingPolicy": {"minResources": {"cpu": "7"}}}
    changes = group_changes(present, pod_group(situation(mpi_job(run=given))))
    assert changes["spec"]["minResources"] == {"cpu": "7", "memory": None, "nvidia.com/gpu": None}


def test_an_unchanged_group_needs_no_write() -> None:
    present = pod_group(situation(mpi_job(waits=True)))
    present["spec"]["queue"] = "default"
    assert group_changes(present, pod_group(situation(mpi_job(waits=True)))) == {}


def test_what_is_no_longer_asked_for_is_taken_back() -> None:
    present = pod_group(
        situation(mpi_job(waits=True, run={"schedulingPolicy": {"priorityClass": "high"}}))
    )
    changes = group_changes(present, pod_group(situation(mpi_job())))
    assert changes["spec"]["priorityClassName"] is None
    assert changes["metadata"]["annotations"] == {"posse.dev/expects": None}


@pytest.mark.parametrize(
    ("named", "moves"), [("", None), ("vision", None), ("speech", "speech"), ("default", "default")]
)
def test_a_group_moves_to_another_queue_only_where_the_job_names_one(
    named: str, moves: str | None
) -> None:
    present = pod_group(situation(mpi_job()))
    present["spec"]["queue"] = "vision"
    run = {"schedulingPolicy": {"queue": named}} if named else {}
    changes = group_changes(present, pod_group(situation(mpi_job(run=run))))
    assert changes.get("spec", {}).get("queue") == moves


def test_pods_are_marked_with_group_role_and_scheduler() -> None:
    marked = marks(template(), "worker", OWN, GangSettings())
    assert marked["metadata"]["annotations"] == {"volcano.sh/task-spec": "worker", GROUP: "train"}
    assert marked["spec"]["schedulerName"] == "posse"


def test_a_scheduler_that_is_named_stays() -> None:
    marked = marks(template(schedulerName="volcano"), "worker", OWN, GangSettings())
    assert marked["spec"]["schedulerName"] == "volcano"


def test_a_job_without_gang_keeps_our_scheduler_and_has_no_group() -> None:
    job = mpi_job(metadata={"annotations": {"posse.dev/gang": "false"}})
    mark = mark_of(situation(job))
    marked = marks(template(), "worker", mark, GangSettings())
    assert GROUP not in marked["metadata"]["annotations"]
    assert marked["spec"]["schedulerName"] == "posse"


USERS: list[tuple[str, str, str]] = [
    ("kube-batch", "annotations", GROUP),
    ("volcano", "annotations", "scheduling.volcano.sh/group-name"),
    ("coscheduling", "labels", "scheduling.x-k8s.io/pod-group"),
    ("old coscheduling", "labels", "pod-group.scheduling.sigs.k8s.io/name"),
]


@pytest.mark.parametrize(
    ("where", "key"), [row[1:] for row in USERS], ids=[row[0] for row in USERS]
)
def test_the_users_group_takes_in_the_whole_job(where: str, key: str) -> None:
    worker = template() | {"metadata": {where: {key: "mine"}}}
    mark = mark_of(situation(mpi_job(worker=worker)))
    for role, given in (("worker", worker), ("launcher", launcher_template())):
        metadata = marks(given, role, mark, GangSettings())["metadata"]
        assert metadata[where][key] == "mine"
        assert "train" not in [
            *metadata["annotations"].values(),
            *metadata.get("labels", {}).values(),
        ]


def test_the_template_itself_is_never_changed() -> None:
    given = template()
    before = json.dumps(given)
    marks(given, "worker", OWN, GangSettings())
    assert json.dumps(given) == before


WISHES = {
    "posse.dev/start-timeout": "10m",
    "posse.dev/max-runtime": "12h",
    "posse.dev/min-runtime": "5m",
    "posse.dev/checkpoint-interval": "30m",
    "volcano.sh/preemptable": "false",
}


def wishing(wishes: dict[str, str], **fields: Any) -> dict[str, Any]:
    job = mpi_job(**fields)
    job["metadata"]["annotations"] = wishes | {"example.com/own": "business"}
    return job


def test_what_a_job_says_to_the_scheduler_is_on_its_group() -> None:
    group = pod_group(situation(wishing(WISHES)))
    assert group["metadata"]["annotations"] == WISHES


def test_a_deadline_says_how_long_the_job_runs_unless_the_job_does() -> None:
    run = {"activeDeadlineSeconds": 5400}
    group = pod_group(situation(mpi_job(run=run)))
    assert group["metadata"]["annotations"] == {"posse.dev/max-runtime": "5400s"}
    group = pod_group(situation(wishing(WISHES, run=run)))
    assert group["metadata"]["annotations"]["posse.dev/max-runtime"] == "12h"


def test_a_wish_that_changed_is_changed_on_the_group() -> None:
    present = pod_group(situation(wishing(WISHES)))
    present["spec"]["queue"] = "default"
    later = WISHES | {"posse.dev/max-runtime": "24h"}
    changes = group_changes(present, pod_group(situation(wishing(later))))
    assert changes == {"metadata": {"annotations": {"posse.dev/max-runtime": "24h"}}}


def test_a_wish_made_on_the_group_itself_stays() -> None:
    present = pod_group(situation(wishing(WISHES)))
    present["spec"]["queue"] = "default"
    assert group_changes(present, pod_group(situation(mpi_job()))) == {}
