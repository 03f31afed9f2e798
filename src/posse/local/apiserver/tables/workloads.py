"""Jobs, Deployments, ReplicaSets and disruption budgets in a table."""

from __future__ import annotations

from typing import Any, TypeAlias

from posse.local.apiserver.tables.durations import human_duration, moment
from posse.local.apiserver.tables.layout import Column, Layout
from posse.local.apiserver.tables.reading import AGE, NAME, TEMPLATE
from posse.objects.raw import mapping, mappings, number, text

Object: TypeAlias = dict[str, Any]

# The first of these conditions that is true names the job's status; deletion ranks after the ends.
_ENDS = {"Complete": "Complete", "Failed": "Failed"}
_STATES = ("Suspended", "FailureTarget", "SuccessCriteriaMet")


def _count(part: str, name: str) -> Any:
    return lambda obj, now: number(mapping(obj, part), name) or 0


def _job_status(job: Object, now: float) -> str:
    true = [
        text(condition, "type")
        for condition in mappings(job, "status", "conditions")
        if condition.get("status") == "True"
    ]
    for kind, told in _ENDS.items():
        if kind in true:
            return told
    if mapping(job, "metadata").get("deletionTimestamp"):
        return "Terminating"
    return next((state for state in _STATES if state in true), "Running")


def _completions(job: Object, now: float) -> str:
    succeeded = number(mapping(job, "status"), "succeeded") or 0
    wanted = number(mapping(job, "spec"), "completions")
    if wanted is not None:
        return f"{succeeded}/{wanted}"
    parallelism = number(mapping(job, "spec"), "parallelism") or 0
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _duration(job: Object, now: float) -> str:
    status = mapping(job, "status")
    started, completed = moment(status.get("startTime")), moment(status.get("completionTime"))
    if started is None:
        return ""
    return human_duration((now if completed is None else completed) - started)


def _ready_replicas(deployment: Object, now: float) -> str:
    ready = number(mapping(deployment, "status"), "readyReplicas") or 0
    return f"{ready}/{number(mapping(deployment, 'spec'), 'replicas') or 0}"


JOBS = Layout(
    (
        NAME,
        Column("Status", _job_status),
        Column("Completions", _completions),
        Column("Duration", _duration),
        AGE,
        *TEMPLATE,
    )
)
DEPLOYMENTS = Layout(
    (
        NAME,
        Column("Ready", _ready_replicas),
        Column("Up-to-date", _count("status", "updatedReplicas")),
        Column("Available", _count("status", "availableReplicas")),
        AGE,
        *TEMPLATE,
    )
)
REPLICA_SETS = Layout(
    (
        NAME,
        Column("Desired", _count("spec", "replicas"), type="integer"),
        Column("Current", _count("status", "replicas"), type="integer"),
        Column("Ready", _count("status", "readyReplicas"), type="integer"),
        AGE,
        *TEMPLATE,
    )
)


def _share(name: str) -> Any:
    def read(budget: Object, now: float) -> str:
        value = mapping(budget, "spec").get(name)
        return "N/A" if value is None else str(value)

    return read


BUDGETS = Layout(
    (
        NAME,
        Column("Min Available", _share("minAvailable")),
        Column("Max Unavailable", _share("maxUnavailable")),
        Column("Allowed Disruptions", _count("status", "disruptionsAllowed"), type="integer"),
        AGE,
    )
)
