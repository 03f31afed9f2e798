"""`-o`, the same for every verb that shows data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

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
        "-T", "--type", "type_", default=None, help="The kind of job: tf or tfjob, mpi or mpijob."
    )(function)
