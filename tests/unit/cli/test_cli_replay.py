"""`posse replay`: a record decided again, from the command line."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from posse.cli.main import program
from posse.engine.policy import Policy
from tests.unit.scheduler.test_scheduler_capture import recorded

pytestmark = pytest.mark.looptime


def posse(line: str, *files: Path) -> Result:
    words = [*shlex.split(line), *map(str, files)]
    return CliRunner().invoke(program, words, prog_name="posse", standalone_mode=False)


async def test_the_same_again(tmp_path: Path) -> None:
    result = posse("replay", await recorded(tmp_path))
    assert result.return_value == 0
    assert result.stderr.startswith("the same again: ")


async def test_another_policy_shows_both_sides(tmp_path: Path) -> None:
    file = await recorded(tmp_path / "records", Policy(release_after=5.0))
    policy = tmp_path / "policy.yaml"
    policy.write_text("releaseAfter: 1h")
    result = posse("replay", file, Path("--policy"), policy)
    assert result.return_value == 1
    assert "  - ns/half is let go: " in result.stdout
    assert "releaseAfter is 1h, was 5s" in result.stderr


async def test_starts_that_differ_in_a_held_seat_alone_do_not_read_the_same(tmp_path: Path) -> None:
    file = await recorded(tmp_path)
    before, start, after = file.read_text().partition('["Start",')
    held = after.replace('"holds":[]', '"holds":[{"role":"boss","node":"n9"}]', 1)
    file.write_text(before + start + held)
    result = posse("replay", file)
    was, now = result.stdout.splitlines()[1:3]
    assert was == f"{now.replace('+', '-')}; a seat is kept for boss on n9"
    assert result.stderr.startswith("1 cycle differs; ")


async def test_as_json(tmp_path: Path) -> None:
    result = posse("replay -o json", await recorded(tmp_path))
    assert json.loads(result.stdout)["differing"] == 0


@pytest.mark.parametrize("text", ["", "garbage"])
async def test_what_is_no_record_is_one_line(tmp_path: Path, text: str) -> None:
    file = tmp_path / "file"
    file.write_text(text)
    result = posse("replay", file)
    assert "not a record of a scheduler" in str(result.exception)


async def test_what_has_no_end_is_no_record() -> None:
    assert "not a record of a scheduler" in str(posse("replay", Path("/dev/zero")).exception)


async def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    result = posse("replay", tmp_path / "none")
    assert str(result.exception) == f"{tmp_path / 'none'}: No such file or directory"
