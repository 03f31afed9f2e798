"""Flags that every verb takes, and what they select."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click
import msgspec

from posse.cli.configuration import Configuration, read_configuration
from posse.cli.grammar import Verb
from posse.client.posse_client import PosseClient
from posse.kube.config import user_home

F = TypeVar("F", bound=Callable[..., Any])
_LEVELS = ("debug", "info", "warn", "error")


def global_options(function: F) -> F:
    for decorate in (
        click.option("--arena-namespace", default=None, hidden=True, help="Accepted, not used."),
        click.option(
            "--loglevel",
            type=click.Choice(_LEVELS),
            default=None,
            help="What to log on stderr: debug, info, warn or error.",
        ),
        click.option("--context", default=None, help="The kubeconfig context to use."),
        click.option(
            "--config", "--kubeconfig", "kubeconfig", default=None, help="The kubeconfig to use."
        ),
        click.option(
            "-n", "--namespace", "namespace", default=None, help="The namespace to work in."
        ),
    ):
        function = decorate(function)
    return function


class Globals(msgspec.Struct, frozen=True):
    namespace: str | None = None
    kubeconfig: str | None = None
    context: str | None = None
    loglevel: str | None = None
    arena_namespace: str | None = None

    @staticmethod
    def of(options: Mapping[str, Any]) -> Globals:
        return Globals(**{name: options.get(name) for name in Globals.__struct_fields__})

    def over(self, outer: Globals) -> Globals:
        """What was said after the verb wins over what was said before it."""
        return Globals(
            **{
                name: getattr(self, name)
                if getattr(self, name) is not None
                else getattr(outer, name)
                for name in Globals.__struct_fields__
            }
        )


class App:
    """What a verb works with: who the user is to the cluster, and where words go."""

    def __init__(self, options: Globals, program: str) -> None:
        self.options = options
        self.program = program
        self.configuration: Configuration = read_configuration(os.environ, user_home())
        level = {"warn": "WARNING"}.get(
            options.loglevel or "", (options.loglevel or "error").upper()
        )
        logging.basicConfig(
            stream=sys.stderr, level=level, format="%(levelname)s %(name)s: %(message)s"
        )

    def client(self) -> PosseClient:
        return PosseClient(
            kubeconfig=self.options.kubeconfig,
            context=self.options.context,
            namespace=self.options.namespace or self.configuration.get("namespace"),
        )

    def say(self, words: str) -> None:
        """Words for a person; data goes to `show`."""
        click.echo(words, err=True)

    def info(self, words: str) -> None:
        self.say(f"INFO[0000] {words}")

    def show(self, data: str) -> None:
        click.echo(data)


def verb(
    name: str, *, renamed: Mapping[str, str] | None = None
) -> Callable[[Callable[..., Any]], Verb]:
    """A command `function(app, ...)` that also takes the global flags."""

    def decorate(function: Callable[..., Any]) -> Verb:
        @click.pass_context
        def run(ctx: click.Context, /, **options: Any) -> Any:
            inner = Globals.of(options)
            outer = ctx.obj if isinstance(ctx.obj, Globals) else Globals()
            rest = {k: v for k, v in options.items() if k not in Globals.__struct_fields__}
            return function(App(inner.over(outer), ctx.find_root().info_name or "posse"), **rest)

        run.__doc__ = function.__doc__
        run.__click_params__ = list(getattr(function, "__click_params__", []))  # type: ignore[attr-defined]
        return click.command(name, cls=Verb, renamed=renamed)(global_options(run))

    return decorate
