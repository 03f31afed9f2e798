from __future__ import annotations

import click

from posse.cli.formats import type_option
from posse.cli.options import App, verb


@verb("why")
@click.argument("job")
@type_option
def why(app: App, job: str, type_: str | None) -> None:
    """Say why JOB waits, and what would help.

    With it, the job's place among those that wait in its queue, and when it is expected to start
    where anybody can know; of a job that cannot run or has failed, what is wrong and who died
    first.
    """
    with app.client() as client:
        app.show(client.why(job, type_))
