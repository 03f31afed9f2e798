"""MPIJob of kubeflow.org/v2beta1, with the defaults of mpi-operator's own definition."""

from __future__ import annotations

from typing import Any

from posse.objects.crds.building import (
    AGE,
    Schema,
    anything,
    choice,
    column,
    count,
    definition,
    flag,
    listing,
    mapping,
    moment,
    quantities,
    record,
    selector,
    text,
)
from posse.objects.kinds import MPI_JOB


def mpi_job() -> dict[str, Any]:
    spec = record(
        "The launcher, the workers, and how they are run.",
        ("mpiReplicaSpecs",),
        slotsPerWorker=count("Slots of each worker in the hostfile.", default=1),
        runLauncherAsWorker=flag("Whether the launcher takes ranks, too.", default=False),
        sshAuthMountPath=text("Where the pods find their ssh keys.", default="/root/.ssh"),
        launcherCreationPolicy=choice(
            "Whether the launcher is created at once or when every worker is ready.",
            "AtStartup",
            "WaitForWorkersReady",
            default="AtStartup",
        ),
        mpiImplementation=choice(
            "Which hostfile and environment the pods get.",
            "OpenMPI",
            "Intel",
            "MPICH",
            default="OpenMPI",
        ),
        runPolicy=_run_policy(),
        mpiReplicaSpecs=mapping(
            "The pods by role: one Launcher, and Workers.",
            record(
                "The pods of one role.",
                replicas=count("How many pods."),
                restartPolicy=choice(
                    "What happens to a pod that ends.", "Always", "OnFailure", "Never", "ExitCode"
                ),
                template=anything("The pods, as in core/v1 PodTemplateSpec."),
            ),
        ),
    )
    status = record(
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
    return definition(
        MPI_JOB,
        "A launcher and its workers, connected by ssh, running one MPI program.",
        spec=spec,
        status=status,
        columns=[column("State", ".status.conditions[-1:].type"), AGE],
    )


def _run_policy() -> Schema:
    return record(
        "When the job starts, when it is given up, and what remains of it.",
        cleanPodPolicy=choice(
            "Which pods are deleted when the job ends.", "None", "Running", "All"
        ),
        ttlSecondsAfterFinished=count("How long the job is kept after its end."),
        activeDeadlineSeconds=count("How long the job may take.", wide=True),
        backoffLimit=count("How often the launcher is tried again."),
        suspend=flag("Whether the job waits without pods.", default=False),
        managedBy=text("The controller that runs the job, where it is another one."),
        schedulingPolicy=record(
            "How the job's gang is scheduled.",
            minAvailable=count("How many pods must be placed together."),
            queue=text("The queue in which the job waits."),
            minResources=quantities("What must be free before the job starts."),
            priorityClass=text("The priority class of the job."),
            scheduleTimeoutSeconds=count("How long the gang may wait to be placed."),
        ),
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
