from __future__ import annotations

import click

from posse.cli.formats import type_option
from posse.cli.options import App, verb
from posse.client.errors import PosseError
from posse.objects.times import parse_duration

_UNTIL = {"running": "RUNNING", "succeeded": "SUCCEEDED", "finished": "SUCCEEDED"}


@verb("wait")
@click.argument("job")
@click.option(
    "--for",
    "until",
    type=click.Choice(tuple(_UNTIL)),
    default="succeeded",
    help="What to wait for: running, succeeded (the default), or finished, well or not.",
)
@click.option(
    "--timeout",
    default=None,
    metavar="DURATION",
    help="Give up after this long, such as 30s, 5m or 2h; without it, never.",
)
@type_option
def wait(app: App, job: str, until: str, timeout: str | None, type_: str | None) -> None:
    """Wait until JOB runs, has succeeded or has ended.

    Exits 1 as soon as the job has failed, unless --for=finished; 4 when the time is over. A job
    that has ended well has run.
    """
    seconds = None if timeout is None else _seconds(timeout)
    with app.client() as client:
        found = client.wait(job, _UNTIL[until], seconds, type_)
    if found.status == "FAILED" and until != "finished":
        raise PosseError(f"{job} has failed; `{app.program} why {job}` says who died first")
    app.say(f"{job} is {found.status}")


def _seconds(text: str) -> float:
    try:
        seconds = parse_duration(text)
    except ValueError as error:
        raise click.UsageError(f"--timeout: {error}") from error
    if seconds < 0:
        raise click.UsageError("--timeout: it must not be negative")
    return seconds
