"""A job on its way to the cluster, and what is said about it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from posse.cli.grammar import switch
from posse.cli.layout import document
from posse.cli.options import App
from posse.client.errors import PosseError
from posse.client.training import Submission

F = TypeVar("F", bound=Callable[..., Any])


def sending_flags(function: F) -> F:
    for decorate in (
        click.option(
            "-o", "--output", type=click.Choice(("json", "yaml")), default=None, help="Show it."
        ),
        switch("--dry-run", help="Only say what would be created."),
    ):
        function = decorate(function)
    return function


def send(app: App, job: Submission, *, dry_run: bool, output: str | None) -> None:
    """Submit it; a request that makes no sense is a usage error and reaches nobody."""
    try:
        kind = str(job.manifest()["kind"]).lower()
    except PosseError as error:
        raise click.UsageError(str(error)) from error
    with app.client() as client:
        created = client.submit(job, dry_run=dry_run)
        namespace = client.namespace
    if output:
        app.show(document(created, output))
        return
    app.show(f"{kind}.kubeflow.org/{job.name} created{' (dry run)' if dry_run else ''}")
    if not dry_run:
        app.info(f"The Job {job.name} has been submitted successfully")
        app.info(
            f"You can run `{app.program} get {job.name} --type {kind} -n {namespace}`"
            " to check the job status"
        )
