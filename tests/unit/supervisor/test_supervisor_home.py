"""The home directory: modes, locks, secrets."""

from __future__ import annotations

import random
import stat
from pathlib import Path

import pytest

from posse.local.supervisor.errors import ClusterError
from posse.local.supervisor.home import Home
from posse.local.supervisor.logfiles import BoundedLog, tail
from posse.local.supervisor.options import Options
from posse.local.supervisor.states import State
from posse.world import SystemClock, World


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path / "home")
    made.prepare()
    return made


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_environment_names_the_home(tmp_path: Path) -> None:
    assert Home.find({"POSSE_HOME": str(tmp_path)}).path == tmp_path
    assert Home.find({}).path == Path.home() / ".posse"


def test_nobody_else_can_read_it(tmp_path: Path) -> None:
    path = tmp_path / "home"
    path.mkdir(mode=0o755)
    home = Home(path)
    home.prepare()
    home.secret("admin", World.real())
    assert mode(path) == 0o700
    assert mode(home.token("admin")) == 0o600
    assert mode(home.token("admin").parent) == 0o700


def test_a_home_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ClusterError, match="cannot use"):
        Home(tmp_path / "file" / "home").prepare()


def test_secrets_and_names_are_made_once(home: Home) -> None:
    first, second = World(SystemClock(), random.Random(1)), World(SystemClock(), random.Random(2))
    assert home.secret("admin", first) == home.secret("admin", second)
    assert home.name(first) == home.name(second)
    assert len(home.secret("admin", first)) == 64


def test_a_lock_is_held_while_its_holder_lives(home: Home) -> None:
    assert not home.held("x")
    with home.holding("x") as ours:
        assert ours
        assert home.held("x")
        with home.holding("x") as again:
            assert not again
    assert not home.held("x")


async def test_waiting_for_a_lock_ends_with_the_complaint(home: Home) -> None:
    with home.holding("x"), pytest.raises(ClusterError, match="busy"):
        async with home.waiting_for("x", 0.05, "busy"):
            pytest.fail("the lock was given twice")
    async with home.waiting_for("x", 0.05, "busy"):
        assert home.held("x")


async def test_a_lock_whose_file_was_deleted_is_waited_for_under_its_name(home: Home) -> None:
    with home.holding("x"):
        home.lock("x").unlink()
        async with home.waiting_for("x", 1.0, "busy"):
            assert home.held("x")
            with pytest.raises(ClusterError, match="busy"):
                async with home.waiting_for("x", 0.05, "busy"):
                    pytest.fail("the lock was given twice")


def test_a_half_written_file_reads_as_none(home: Home) -> None:
    home.state.write_text('{"pid": 1')
    assert home.load(home.state, State) is None
    home.save(home.state, State(7))
    assert home.load(home.state, State) == State(7)


def test_options_survive_their_file(home: Home) -> None:
    options = Options(simulate=4, gpus=2, port=6443)
    home.save(home.options, options)
    assert home.load(home.options, Options) == options


def test_a_log_never_grows_beyond_its_bound(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    log = BoundedLog(path, largest=100)
    for index in range(100):
        log.write(f"line {index}\n".encode())
    log.close()
    assert path.stat().st_size <= 100
    assert path.with_name("a.log.1").stat().st_size <= 100
    assert tail(path, 2) == ["line 98", "line 99"]
    assert mode(path) == 0o600


def test_a_missing_log_has_no_lines(tmp_path: Path) -> None:
    assert tail(tmp_path / "none") == []
