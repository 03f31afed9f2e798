"""The parts that the definitions of all training jobs share."""

from __future__ import annotations

from posse.objects.crds.building import (
    Schema,
    anything,
    choice,
    count,
    flag,
    listing,
    mapping,
    moment,
    quantities,
    record,
    selector,
    text,
)


def replica_specs(description: str) -> Schema:
    return mapping(
        description,
        record(
            "The pods of one role.",
            replicas=count("How many pods."),
            restartPolicy=choice(
                "What happens to a pod that ends.", "Always", "OnFailure", "Never", "ExitCode"
            ),
            template=anything("The pods, as in core/v1 PodTemplateSpec."),
        ),
    )


def clean_pod_policy() -> Schema:
    return choice("Which pods are deleted when the job ends.", "None", "Running", "All")


def run_policy(retried: str) -> Schema:
    return record(
        "When the job starts, when it is given up, and what remains of it.",
        cleanPodPolicy=clean_pod_policy(),
        ttlSecondsAfterFinished=count("How long the job is kept after its end."),
        activeDeadlineSeconds=count("How long the job may take.", wide=True),
        backoffLimit=count(f"How often {retried} tried again."),
        suspend=flag("Whether the job waits without pods.", default=False),
        managedBy=text("The controller that runs the job, where it is another one."),
        schedulingPolicy=scheduling_policy(),
    )


def scheduling_policy() -> Schema:
    return record(
        "How the job's gang is scheduled.",
        minAvailable=count("How many pods must be placed together."),
        queue=text("The queue in which the job waits."),
        minResources=quantities("What must be free before the job starts."),
        priorityClass=text("The priority class of the job."),
        scheduleTimeoutSeconds=count("How long the gang may wait to be placed."),
    )


def status() -> Schema:
    return record(
        "How far the job has come.",
        conditions=listing(
            "Created, Running, Restarting, Suspended, Succeeded, Failed; the newest is last.",
            _condition(),
            **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
        ),
        replicaStatuses=mapping(
            "The pods by role.",
            record(
                "The pods of one role.",
                active=count("How many run or wait."),
                succeeded=count("How many have succeeded."),
                failed=count("How many have failed."),
                labelSelector=selector("Which pods these are."),
                selector=text("The same as text, for scaling."),
            ),
        ),
        startTime=moment("When the controller first took up the job."),
        completionTime=moment("When the job ended."),
        lastReconcileTime=moment("When the controller last looked at the job."),
    )


def _condition() -> Schema:
    return record(
        "One state that the job has reached or left.",
        ("status", "type"),
        type=text("Which state."),
        status=choice("Whether it is so.", "True", "False", "Unknown"),
        reason=text("Why, in one word."),
        message=text("Why, in a sentence."),
        lastUpdateTime=moment("When this was last written."),
        lastTransitionTime=moment("When the status changed."),
    )
