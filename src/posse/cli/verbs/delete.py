from __future__ import annotations

import click

from posse.cli.formats import type_option
from posse.cli.options import App, verb
from posse.client.errors import JobNotFound


@verb("delete")
@click.argument("jobs", nargs=-1, required=True, metavar="JOB...")
@type_option
def delete(app: App, jobs: tuple[str, ...], type_: str | None) -> int:
    """Delete training jobs and everything that belongs to them."""
    missing = 0
    with app.client() as client:
        for job in jobs:
            try:
                trainer = client.delete(job, type_)
            except JobNotFound as error:
                app.say(f"{app.program}: {error}")
                missing += 1
                continue
            app.show(f'{trainer.kind.singular}.{trainer.kind.group} "{job}" deleted')
            app.info(f"The training job {job} has been deleted successfully")
    return 3 if missing else 0
