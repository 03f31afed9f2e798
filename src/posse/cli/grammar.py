"""Go's pflag grammar on click: the command lines people already have must mean the same here.

Booleans take `--x` or `--x=true|false` and never the next word; flags and arguments intermix;
`--` ends flags; short flags combine and take their value with or without a space. Words are
brought into one canonical form, `--long=value ... -- arguments`, before click sees them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


class UsageProblem(click.UsageError):
    """A command line that cannot be read; one line, exit code 2."""


class Switch(click.Option):
    """A boolean: `--x`, `--x=false`."""

    bare = "true"


class Bare(click.Option):
    """An option whose value is optional and never the next word: `--queue`, `--queue=vision`."""

    bare = "true"


def switch(*names: str, help: str, default: bool | None = False) -> Callable[[F], F]:
    return click.option(
        *names, cls=Switch, type=click.BOOL, is_flag=False, default=default, help=help, metavar=""
    )


def canonical(
    words: Sequence[str],
    options: Sequence[click.Option],
    renamed: Mapping[str, str],
    warn: Callable[[str], None],
    *,
    stop_at_argument: bool = False,
) -> tuple[list[str], list[str]]:
    """(flags as `--long=value`, the remaining words), or UsageProblem as pflag words it."""
    by_name = {name: option for option in options for name in option.opts}
    flags: list[str] = []
    arguments: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            # A group leaves `--` to its verb, which knows what follows.
            arguments += ["--", *rest] if stop_at_argument else rest
            break
        if word.startswith("--"):
            name, has_value, value = word.partition("=")
            if name in renamed:
                warn(f"Flag {name} has been deprecated, please use {renamed[name]} instead")
                name = renamed[name]
            option = by_name.get(name)
            if option is None:
                raise UsageProblem(f"unknown flag: {name}")
            flags.append(_flag(option, name, value if has_value else None, rest))
        elif word.startswith("-") and word != "-":
            flags += _short_flags(word, by_name, rest)
        elif stop_at_argument:
            arguments += [word, *rest]
            break
        else:
            arguments.append(word)
    return flags, arguments


def _flag(option: click.Option, name: str, value: str | None, rest: list[str]) -> str:
    if value is None:
        bare = getattr(option, "bare", None)
        if bare is not None:
            value = bare
        elif rest:
            value = rest.pop(0)
        else:
            raise UsageProblem(f"flag needs an argument: {name}")
    return f"{_long_name(option)}={value}"


def _short_flags(word: str, by_name: Mapping[str, click.Option], rest: list[str]) -> list[str]:
    flags: list[str] = []
    letters = word[1:]
    while letters:
        name, letters = f"-{letters[0]}", letters[1:]
        option = by_name.get(name)
        if option is None:
            raise UsageProblem(f"unknown shorthand flag: {name[1]!r} in {word}")
        if letters.startswith("="):
            flags.append(_flag(option, name, letters[1:], rest))
            break
        if getattr(option, "bare", None) is None and letters:
            flags.append(_flag(option, name, letters, rest))
            break
        flags.append(_flag(option, name, None, rest))
    return flags


def _long_name(option: click.Option) -> str:
    return next((name for name in option.opts if name.startswith("--")), option.opts[0])


def _options(command: click.Command, context: click.Context) -> list[click.Option]:
    return [p for p in command.get_params(context) if isinstance(p, click.Option)]


def _canonical_for(
    command: click.Command,
    context: click.Context,
    args: Sequence[str],
    renamed: Mapping[str, str],
    *,
    stop_at_argument: bool = False,
) -> tuple[list[str], list[str]]:
    options = _options(command, context)
    help_names = set(command.get_help_option_names(context))
    before_end = args[: list(args).index("--")] if "--" in args else args
    if not stop_at_argument and any(word in help_names for word in before_end):
        return ["--help"], []
    plain = [o for o in options if o.name != "help"]
    if stop_at_argument and args and args[0] in help_names:
        return ["--help"], []
    try:
        return canonical(
            args,
            plain,
            renamed,
            lambda line: click.echo(line, err=True),
            stop_at_argument=stop_at_argument,
        )
    except UsageProblem as problem:
        problem.ctx = context
        raise


class Verb(click.Command):
    """A command read by pflag's rules."""

    def __init__(self, *args: Any, renamed: Mapping[str, str] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.renamed = renamed or {}

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        flags, arguments = _canonical_for(self, ctx, args, self.renamed)
        return super().parse_args(ctx, [*flags, "--", *arguments])


class VerbGroup(click.Group):
    """A command with sub-commands: its own flags, then the verb, then the verb's words."""

    command_class = Verb

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        flags, rest = _canonical_for(self, ctx, args, {}, stop_at_argument=True)
        return super().parse_args(ctx, [*flags, *rest])
