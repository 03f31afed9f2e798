"""MPIJob of kubeflow.org/v2beta1, with the defaults of mpi-operator's own definition."""

from __future__ import annotations

from typing import Any

from posse.objects.crds.building import AGE, choice, column, count, definition, flag, record, text
from posse.objects.crds.trainingjobs import replica_specs, run_policy, status
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
        runPolicy=run_policy("the launcher is"),
        mpiReplicaSpecs=replica_specs("The pods by role: one Launcher, and Workers."),
    )
    return definition(
        MPI_JOB,
        "A launcher and its workers, connected by ssh, running one MPI program.",
        spec=spec,
        status=status(),
        columns=[column("State", ".status.conditions[-1:].type"), AGE],
    )
