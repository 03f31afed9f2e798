from __future__ import annotations

from typing import Any

import click

from posse.cli.job_flags import RENAMED, job_flags, request_of
from posse.cli.options import App, verb
from posse.cli.sending import send, sending_flags
from posse.cli.tf_flags import RENAMED as TF_RENAMED
from posse.cli.tf_flags import roles_of, tf_flags
from posse.client.submitting.tf import TFJob


@verb("tfjob", renamed={**RENAMED, **TF_RENAMED})
@click.argument("command", nargs=-1, metavar="COMMAND...")
@job_flags
@tf_flags
@sending_flags
def tf(app: App, command: tuple[str, ...], dry_run: bool, output: str | None, **flags: Any) -> None:
    """Submit a TensorFlow job: workers and parameter servers that all run COMMAND.

    Each finds the others through TF_CONFIG. One worker without parameter servers is a job of its
    own and needs none.

    \b
    posse submit tf --name=mnist --workers=4 --ps=1 --gpus=1 --image=tensorflow/tensorflow \\
        "python train.py"
    """
    request, roles = roles_of(flags)
    request["role_sequence"] = request["role_sequence"] or app.configuration.get(
        "tfjob_role_sequence", ""
    )
    job = TFJob(**request_of(app, request, command), roles=roles)
    send(app, job, dry_run=dry_run, output=output)
