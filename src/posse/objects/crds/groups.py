"""PodGroup and Queue of scheduling.volcano.sh/v1beta1, field for field; kube-batch's PodGroups."""

from __future__ import annotations

from typing import Any

from posse.objects.crds.building import (
    Schema,
    choice,
    column,
    count,
    definition,
    flag,
    listing,
    mapping,
    moment,
    name,
    quantities,
    record,
    selector,
    text,
)
from posse.objects.kinds import (
    COSCHEDULING_POD_GROUP,
    INCUBATOR_POD_GROUP,
    POD_GROUP,
    QUEUE,
    SIGS_POD_GROUP,
    Kind,
)

_GROUP = "Pods that are placed together: as many as asked for, or none."
_COLUMNS = [
    column("STATUS", ".status.phase"),
    column("minMember", ".spec.minMember", "integer"),
    column("RUNNINGS", ".status.running", "integer"),
    column("AGE", ".metadata.creationTimestamp", "date"),
]


def pod_group() -> dict[str, Any]:
    spec = record(
        "What the group needs before any of its pods may start.",
        minMember=count("How many pods must be placed together, or none is."),
        minTaskMember=mapping(
            "How many pods of each role must be placed together.",
            {"type": "integer", "format": "int32"},
        ),
        queue=name("The queue in which the group waits.", default="default"),
        priorityClassName=text("The priority class of the group.", maxLength=253),
        minResources=quantities("What must be free in the queue before the group starts."),
        networkTopology=_topology("How near to each other the pods must be."),
        subGroupPolicy=listing(
            "Smaller groups inside the group, each placed together.",
            record(
                "One division of the group.",
                name=text("The name of the division.", maxLength=253),
                labelSelector=selector("Which pods it divides."),
                matchLabelKeys=listing(
                    "Labels whose values tell the small groups apart.",
                    {"type": "string"},
                    **{"x-kubernetes-list-type": "atomic"},
                ),
                minSubGroups=count("How many small groups must be placed.", default=0),
                subGroupSize=count("How many pods make a small group.", minimum=1, default=1),
                networkTopology=_topology("How near to each other its pods must be."),
            ),
        ),
    )
    return definition(
        POD_GROUP,
        _GROUP,
        spec=spec,
        status=_group_status(),
        columns=[*_COLUMNS, column("QUEUE", ".spec.queue", wide=True)],
    )


def kube_batch_pod_groups() -> list[dict[str, Any]]:
    """A protected group asks for an approval; that nobody gave it has to be said."""
    unapproved = {"api-approved.kubernetes.io": "unapproved, kube-batch compatibility"}
    return [
        _kube_batch_pod_group(INCUBATOR_POD_GROUP, unapproved),
        _kube_batch_pod_group(SIGS_POD_GROUP, {}),
    ]


def _kube_batch_pod_group(kind: Kind, annotations: dict[str, str]) -> dict[str, Any]:
    spec = record(
        "What the group needs before any of its pods may start.",
        minMember=count("How many pods must be placed together, or none is."),
        queue=name("The queue in which the group waits."),
        priorityClassName=text("The priority class of the group.", maxLength=253),
        minResources=quantities("What must be free in the queue before the group starts."),
    )
    return definition(
        kind,
        _GROUP,
        spec=spec,
        status=_group_status(),
        columns=_COLUMNS,
        annotations=annotations,
    )


def coscheduling_pod_group() -> dict[str, Any]:
    """The scheduler-plugins' PodGroup: it has no queue and no conditions."""
    spec = record(
        "What the group needs before any of its pods may start.",
        minMember=count("How many pods must be placed together, or none is."),
        minResources=quantities("What must be free before the group starts."),
        scheduleTimeoutSeconds=count("How long the group may take to be placed."),
    )
    status = record(
        "How far the group has come.",
        phase=text("Pending, Scheduling, Running, Finished, Failed or Unknown."),
        occupiedBy=text("The workload that the group belongs to."),
        running=count("How many pods run."),
        succeeded=count("How many pods have succeeded."),
        failed=count("How many pods have failed."),
        scheduleStartTime=moment("When its placement began."),
    )
    return definition(
        COSCHEDULING_POD_GROUP,
        _GROUP,
        spec=spec,
        status=status,
        columns=[
            column("Phase", ".status.phase"),
            column("MinMember", ".spec.minMember", "integer"),
            column("Running", ".status.running", "integer"),
            column("Succeeded", ".status.succeeded", "integer"),
            column("Failed", ".status.failed", "integer"),
            column("Age", ".metadata.creationTimestamp", "date"),
        ],
    )


def _group_status() -> Schema:
    return record(
        "How far the group has come.",
        phase=choice(
            "Pending, Inqueue once pods may be created, Running, Completed, or Unknown when a "
            "running group has lost members.",
            "Pending",
            "Running",
            "Unknown",
            "Inqueue",
            "Completed",
        ),
        conditions=listing("What was last found out about the group.", _condition()),
        running=count("How many pods run."),
        succeeded=count("How many pods have succeeded."),
        failed=count("How many pods have failed."),
    )


def queue() -> dict[str, Any]:
    spec = record(
        "The queue's share of the cluster.",
        weight=count("Its share beside its siblings'.", minimum=1, maximum=65535, default=1),
        capability=quantities("The most it may use; what is not named is not limited."),
        deserved=quantities("What it may reclaim from others; what is not named is not limited."),
        guarantee=record(
            "What is kept free for it.",
            resource=quantities("What is kept free for it even while it is idle."),
        ),
        reclaimable=flag("Whether other queues may take back what it uses beyond its share."),
        parent=name("The queue of which it is a part."),
        priority=count("Queues of higher priority are served first."),
        affinity=record(
            "On which groups of nodes its pods run.",
            nodeGroupAffinity=_node_groups("Groups of nodes to run on."),
            nodeGroupAntiAffinity=_node_groups("Groups of nodes to keep off."),
        ),
        dequeueStrategy=choice(
            "Whether a group that does not fit holds up those behind it (fifo) or is passed over.",
            "fifo",
            "traverse",
            default="traverse",
        ),
        type=text("What the queue is for.", maxLength=253),
        extendClusters=listing(
            "Further clusters that the queue may use.",
            record(
                "One further cluster.",
                name=text("Its name."),
                weight={"description": "Its share.", "type": "integer", "format": "int32"},
                capacity=quantities("What may be used of it."),
            ),
        ),
    )
    status = record(
        "What is in the queue.",
        state=choice("Whether it takes groups.", "Open", "Closed", "Closing", "Unknown"),
        pending=count("Groups that wait."),
        inqueue=count("Groups whose pods may be created."),
        running=count("Groups that run."),
        completed=count("Groups that have ended."),
        unknown=count("Groups that have lost members."),
        reservation=record(
            "What is reserved for the queue.",
            nodes=listing("Nodes held for it.", {"type": "string"}),
            resource=quantities("What is held for it."),
        ),
        allocated=quantities("What its pods use."),
    )
    return definition(
        QUEUE,
        "A share of the cluster in which groups of pods wait their turn.",
        spec=spec,
        status=status,
        columns=[
            column("PARENT", ".spec.parent"),
            column("STATE", ".status.state"),
            column("WEIGHT", ".spec.weight", "integer", wide=True),
            column("AGE", ".metadata.creationTimestamp", "date"),
        ],
    )


def _topology(description: str) -> Schema:
    return record(
        description,
        mode=choice(
            "Whether the tier is required (hard) or preferred (soft).",
            "hard",
            "soft",
            default="hard",
        ),
        highestTierAllowed={
            "description": "The widest tier in which all pods must fit.",
            "type": "integer",
            "minimum": 0,
        },
        highestTierName=text("The same by name.", maxLength=253),
    )


def _condition() -> Schema:
    return record(
        "One finding.",
        type=text("What it is about."),
        status=text("True, False or Unknown."),
        reason=text("Why, in one word."),
        message=text("Why, in a sentence."),
        transitionID=text("Which decision of the scheduler it comes from."),
        lastTransitionTime=moment("When its status changed."),
    )


def _node_groups(description: str) -> Schema:
    names: Schema = {"type": "string"}
    return record(
        description,
        requiredDuringSchedulingIgnoredDuringExecution=listing("Always.", names),
        preferredDuringSchedulingIgnoredDuringExecution=listing("Where there is choice.", names),
    )
