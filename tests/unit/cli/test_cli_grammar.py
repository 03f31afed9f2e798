"""pflag's grammar: the same words mean the same as they do to Arena."""

from __future__ import annotations

import click
import pytest

from posse.cli.grammar import Bare, Switch, UsageProblem, canonical

OPTIONS = [
    click.Option(["-n", "--namespace"]),
    click.Option(["-e", "--env"], multiple=True),
    click.Option(["--gpus"], type=int),
    Switch(["-A", "--all-namespaces"], type=bool, is_flag=False),
    Switch(["--gang"], type=bool, is_flag=False),
    Switch(["-f", "--follow"], type=bool, is_flag=False),
    Bare(["--queue"]),
]
RENAMED = {"--nameSpace": "--namespace"}

CASES = [
    ("a value behind a space", "--gpus 2", ["--gpus=2"], []),
    ("a value behind =", "--gpus=2", ["--gpus=2"], []),
    ("a negative value", "--gpus -1", ["--gpus=-1"], []),
    ("a bare switch is true", "--gang", ["--gang=true"], []),
    ("a switch never takes the next word", "--gang false", ["--gang=true"], ["false"]),
    ("a switch takes = alone", "--gang=false", ["--gang=false"], []),
    ("flags and arguments mix", "a --gpus 1 b --gang c", ["--gpus=1", "--gang=true"], list("abc")),
    ("-- ends flags", "--gang -- --gpus 1", ["--gang=true"], ["--gpus", "1"]),
    ("a short flag", "-n dev", ["--namespace=dev"], []),
    ("a short flag, glued", "-ndev", ["--namespace=dev"], []),
    ("a short flag with =", "-n=dev", ["--namespace=dev"], []),
    ("short switches combine", "-Af", ["--all-namespaces=true", "--follow=true"], []),
    ("a value ends a combination", "-Andev", ["--all-namespaces=true", "--namespace=dev"], []),
    ("an optional value is never the next word", "--queue vision", ["--queue=true"], ["vision"]),
    ("an optional value behind =", "--queue=vision", ["--queue=vision"], []),
    ("a value may hold = and commas", "-e A=b,c=d", ["--env=A=b,c=d"], []),
    ("a lone dash is an argument", "- --gang", ["--gang=true"], ["-"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "flags", "arguments"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_words_are_read_as_pflag_reads_them(
    line: str, flags: list[str], arguments: list[str]
) -> None:
    assert canonical(line.split(), OPTIONS, {}, pytest.fail) == (flags, arguments)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--nope", "unknown flag: --nope"),
        ("-z", "unknown shorthand flag: 'z' in -z"),
        ("--gpus", "flag needs an argument: --gpus"),
    ],
)
def test_what_cannot_be_read_is_named(line: str, message: str) -> None:
    with pytest.raises(UsageProblem, match=message):
        canonical(line.split(), OPTIONS, {}, pytest.fail)


def test_an_old_spelling_is_taken_with_a_warning() -> None:
    warnings: list[str] = []
    flags, _ = canonical(["--nameSpace=dev"], OPTIONS, RENAMED, warnings.append)
    assert flags == ["--namespace=dev"]
    assert warnings == [
        "Flag --nameSpace has been deprecated, please use --namespace instead",
    ]


def test_a_group_stops_at_its_verb() -> None:
    flags, rest = canonical(
        ["-n", "dev", "list", "--gpus", "2", "--", "x"],
        OPTIONS,
        {},
        pytest.fail,
        stop_at_argument=True,
    )
    assert flags == ["--namespace=dev"]
    assert rest == ["list", "--gpus", "2", "--", "x"]
