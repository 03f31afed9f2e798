from __future__ import annotations

from typing import Any

import click

from posse.cli.grammar import switch
from posse.cli.job_flags import RENAMED, job_flags, request_of
from posse.cli.layout import document
from posse.cli.options import App, verb
from posse.client.errors import PosseError
from posse.client.submitting.mpi import MPIJob


@verb("mpijob", renamed={**RENAMED, "--cleanTaskPolicy": "--clean-task-policy"})
@click.argument("command", nargs=-1, metavar="COMMAND...")
@job_flags
@click.option(
    "--clean-task-policy",
    default="All",
    help="Which workers to delete when the job ends: All, Running or None.",
)
@switch("--dry-run", help="Only say what would be created.")
@click.option("-o", "--output", type=click.Choice(("json", "yaml")), default=None, help="Show it.")
def mpi(
    app: App, command: tuple[str, ...], dry_run: bool, output: str | None, **flags: Any
) -> None:
    """Submit an MPI job: a launcher that runs COMMAND, and workers it reaches over ssh.

    \b
    posse submit mpi --name=resnet --workers=4 --gpus=2 --image=horovod/horovod \\
        "mpirun python train.py"
    """
    job = MPIJob(**request_of(app, flags, command))
    try:
        job.manifest()
    except PosseError as error:
        raise click.UsageError(str(error)) from error
    with app.client() as client:
        created = client.submit(job, dry_run=dry_run)
        namespace = client.namespace
    if output:
        app.show(document(created, output))
        return
    app.show(f"mpijob.kubeflow.org/{job.name} created{' (dry run)' if dry_run else ''}")
    if not dry_run:
        app.info(f"The Job {job.name} has been submitted successfully")
        app.info(
            f"You can run `{app.program} get {job.name} --type mpijob -n {namespace}`"
            " to check the job status"
        )
