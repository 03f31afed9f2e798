from __future__ import annotations

import sys

import click

from posse.cli.formats import type_option
from posse.cli.grammar import switch
from posse.cli.options import App, verb
from posse.objects.times import parse_duration, parse_time


@verb("logs")
@click.argument("job")
@switch("-f", "--follow", help="Go on printing as lines come.")
@click.option("-i", "--instance", default="", help="The pod to read; the chief if not given.")
@click.option("-c", "--container", default="", help="The container to read.")
@click.option("-t", "--tail", type=click.IntRange(-1), default=-1, help="Only the last lines.")
@click.option("--since", default=None, help="Only lines younger than this, such as 5s, 2m or 3h.")
@click.option("--since-time", default=None, help="Only lines after this RFC 3339 time.")
@switch("--timestamps", help="A timestamp before each line.")
@type_option
def logs(
    app: App,
    job: str,
    follow: bool,
    instance: str,
    container: str,
    tail: int,
    since: str | None,
    since_time: str | None,
    timestamps: bool,
    type_: str | None,
) -> None:
    """Print the logs of a job: its chief's, or one instance's."""
    if since is not None and since_time is not None:
        raise click.UsageError("at most one of --since and --since-time may be used")
    with app.client() as client:
        for chunk in client.logs(
            job,
            type=type_,
            instance=instance,
            container=container,
            follow=follow,
            tail_lines=tail if tail >= 0 else None,
            since_seconds=None if since is None else _seconds(since),
            since_time=None if since_time is None else _moment(since_time),
            timestamps=timestamps,
        ):
            sys.stdout.buffer.write(chunk)
            sys.stdout.buffer.flush()


def _seconds(text: str) -> int:
    try:
        return max(1, int(parse_duration(text)))
    except ValueError as error:
        raise click.UsageError(f"--since: {error}") from error


def _moment(text: str) -> str:
    try:
        parse_time(text)
    except ValueError as error:
        raise click.UsageError(f"--since-time: {error}") from error
    return text
