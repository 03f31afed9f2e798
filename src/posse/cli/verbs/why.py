from __future__ import annotations

import click

from posse.cli.formats import type_option
from posse.cli.options import App, verb


@verb("why")
@click.argument("job")
@type_option
def why(app: App, job: str, type_: str | None) -> None:
    """Say why JOB waits, and what would help."""
    with app.client() as client:
        app.show(client.why(job, type_))
