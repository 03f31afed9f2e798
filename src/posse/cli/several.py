"""Flags that take several values: with commas, repeated, or both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from posse.client.trainers import TRAINERS, trainer_named

F = TypeVar("F", bound=Callable[..., Any])
Values = tuple[str, ...] | None


def several(*names: str, help: str, metavar: str) -> Callable[[F], F]:
    """None when the flag is absent, a tuple without doubles otherwise."""
    return click.option(*names, multiple=True, callback=_split, metavar=metavar, help=help)


def several_kinds(*names: str, help: str) -> Callable[[F], F]:
    """Job kinds, under any name that people have for them; the answer has their kinds' own."""
    return click.option(*names, multiple=True, callback=_split_kinds, metavar="KIND,...", help=help)


def _split(ctx: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> Values:
    if not given:
        return None
    values = tuple(dict.fromkeys(part.strip() for one in given for part in one.split(",")))
    if "" in values:
        raise click.UsageError(f"{parameter.opts[0]}: a name is missing in {','.join(given)!r}")
    return values


def _split_kinds(ctx: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> Values:
    kinds = []
    for name in _split(ctx, parameter, given) or ():
        trainer = trainer_named(name.lower())
        if trainer is None:
            known = ", ".join(trainer.kind.kind for trainer in TRAINERS)
            raise click.UsageError(
                f"{parameter.opts[0]}: there is no controller for {name!r}, only for {known}"
            )
        kinds.append(trainer.kind.kind)
    return tuple(dict.fromkeys(kinds)) if given else None
