"""Our context in a kubeconfig that is not ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from posse.local.supervisor import contexts
from posse.local.supervisor.establishing import establish
from posse.local.supervisor.home import Home
from posse.local.supervisor.options import Options
from posse.world import World

SERVER = "https://127.0.0.1:6443"


def named(name: str, server: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "clusters": [{"name": name, "cluster": {"server": server}}],
        "users": [{"name": name, "user": {"token": "precious"}}],
    }


MINE = named("mine", "https://mine.example")
THEIR_POSSE = named("posse", "https://prod.example")


def a_home(path: Path) -> Home:
    home = Home(path)
    home.prepare()
    establish(home, Options(simulate=1), World.real())
    return home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return a_home(tmp_path / "home")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "kubeconfig"


def read(file: Path) -> Any:
    return yaml.safe_load(file.read_text())


@pytest.mark.parametrize("before", [MINE, THEIR_POSSE], ids=["another", "the same name"])
@pytest.mark.parametrize("times", [1, 3])
def test_what_was_there_is_put_back(
    home: Home, file: Path, before: dict[str, Any], times: int
) -> None:
    file.write_text(yaml.safe_dump(before))
    for number in range(times):
        contexts.add(home, f"{SERVER}{number}", select=True, kubeconfig=file)
    assert read(file)["current-context"] == "posse"
    contexts.remove(home)
    assert read(file) == before


def test_a_new_authority_makes_it_no_less_ours(home: Home, file: Path) -> None:
    file.write_text(yaml.safe_dump(THEIR_POSSE))
    contexts.add(home, SERVER, select=True, kubeconfig=file)
    (home.pki / "ca.key").unlink()
    establish(home, Options(simulate=1), World.real())
    contexts.add(home, SERVER, select=True, kubeconfig=file)
    contexts.remove(home)
    assert read(file) == THEIR_POSSE


def test_a_context_written_by_somebody_else_since_is_left(home: Home, file: Path) -> None:
    contexts.add(home, SERVER, select=True, kubeconfig=file)
    file.write_text(yaml.safe_dump(THEIR_POSSE))
    contexts.remove(home)
    assert read(file) == THEIR_POSSE


def test_two_homes_in_one_file_do_not_remove_each_other(home: Home, file: Path) -> None:
    other = a_home(home.path.parent / "other")
    contexts.add(home, f"{SERVER}1", select=True, kubeconfig=file)
    contexts.add(other, f"{SERVER}2", select=True, kubeconfig=file)
    contexts.remove(home)
    assert read(file)["clusters"][0]["cluster"]["server"] == f"{SERVER}2"
    contexts.remove(other)
    assert read(file)["clusters"][0]["cluster"]["server"] == f"{SERVER}1"


def test_not_selecting_leaves_the_selection_alone(home: Home, file: Path) -> None:
    file.write_text(yaml.safe_dump(MINE))
    contexts.add(home, SERVER, select=False, kubeconfig=file)
    assert read(file)["current-context"] == "mine"
    contexts.remove(home)
    assert read(file) == MINE


def test_a_file_that_is_gone_is_not_made_again(home: Home, file: Path) -> None:
    contexts.add(home, SERVER, select=True, kubeconfig=file)
    file.unlink()
    contexts.remove(home)
    assert not file.exists()
