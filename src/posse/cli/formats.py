"""`-o`, the same for every verb that shows data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from posse.client.trainers import TRAINERS, trainer_named

F = TypeVar("F", bound=Callable[..., Any])


def output_option(function: F) -> F:
    return click.option(
        "-o",
        "--output",
        type=click.Choice(("wide", "json", "yaml", "name")),
        default="wide",
        help="wide, json, yaml or name.",
    )(function)


def type_option(function: F) -> F:
    return click.option(
        "-T",
        "--type",
        "type_",
        default=None,
        callback=_known_type,
        help="The kind of job: tf or tfjob, mpi or mpijob.",
    )(function)


def _known_type(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    if value is not None and trainer_named(value) is None:
        kinds = ", ".join(trainer.name for trainer in TRAINERS)
        raise click.UsageError(f"--type: {value!r} is not a kind of training job ({kinds})")
    return value
