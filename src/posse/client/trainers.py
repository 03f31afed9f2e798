"""The job kinds people submit, and the names they call them by."""

from __future__ import annotations

import msgspec

from posse.objects.kinds import MPI_JOB, TF_JOB, Kind


class Trainer(msgspec.Struct, frozen=True):
    name: str  # as `-o json` prints it
    kind: Kind
    aliases: tuple[str, ...]
    replicas_field: str  # where the spec keeps its replica types
    chief: str = ""  # the replica type whose pod speaks for the job, where it is always one

    @property
    def title(self) -> str:
        return self.name.upper()


MPI = Trainer("mpijob", MPI_JOB, ("mpi", "mpijob", "mj"), "mpiReplicaSpecs", "launcher")
TF = Trainer("tfjob", TF_JOB, ("tf", "tfjob"), "tfReplicaSpecs")

TRAINERS: tuple[Trainer, ...] = (TF, MPI)


def trainer_named(alias: str) -> Trainer | None:
    return next((t for t in TRAINERS if alias.lower() in t.aliases), None)
