"""What `down` says of a home, and what a service of a home is not told by flags."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from posse.cli.main import program


def posse(line: str) -> Result:
    return CliRunner().invoke(program, shlex.split(line), prog_name="posse", standalone_mode=False)


@pytest.mark.parametrize(
    ("kept", "says"),
    [
        ([], "is deleted"),
        (
            ["policy.yaml", "config"],
            "is deleted; what is yours stays there: config, policy.yaml",
        ),
    ],
)
def test_a_purge_says_what_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: list[str], says: str
) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    for name in kept:
        (home / name).write_text("")
    monkeypatch.setenv("POSSE_HOME", str(home))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    result = posse("down --purge")
    assert result.exception is None
    assert result.stderr.splitlines()[-1] == f"What it kept in {home} {says}"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("scheduler --policy p", "--policy goes without --home; there it is policy.yaml"),
        ("scheduler --capture d", "--capture goes without --home; there it is captures"),
        ("scheduler --metrics-port 1", "there it is that of `posse up --metrics-port`"),
        ("controllers --metrics-port 1", "there it is that of `posse up --metrics-port`"),
    ],
)
def test_a_flag_that_a_home_takes_the_place_of_is_refused_with_where_it_is(
    tmp_path: Path, line: str, says: str
) -> None:
    assert says in str(posse(f"{line} --home {tmp_path}").exception)
