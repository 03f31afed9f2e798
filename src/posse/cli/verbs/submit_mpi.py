from __future__ import annotations

from typing import Any

import click

from posse.cli.job_flags import RENAMED, job_flags, request_of
from posse.cli.options import App, verb
from posse.cli.sending import send, sending_flags
from posse.client.submitting.mpi import MPIJob


@verb("mpijob", renamed={**RENAMED, "--cleanTaskPolicy": "--clean-task-policy"})
@click.argument("command", nargs=-1, metavar="COMMAND...")
@job_flags
@click.option(
    "--clean-task-policy",
    default="All",
    help="Which workers to delete when the job ends: All, Running or None.",
)
@sending_flags
def mpi(
    app: App, command: tuple[str, ...], dry_run: bool, output: str | None, **flags: Any
) -> None:
    """Submit an MPI job: a launcher that runs COMMAND, and workers it reaches over ssh.

    \b
    posse submit mpi --name=resnet --workers=4 --gpus=2 --image=horovod/horovod \\
        "mpirun python train.py"
    """
    job = MPIJob(**request_of(app, flags, command))
    send(app, job, dry_run=dry_run, output=output)
