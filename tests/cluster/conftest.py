from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.processes import Commands


@pytest.fixture(scope="session")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    """One running cluster per test worker: four simulated nodes with two GPUs each."""
    made = Commands(tmp_path_factory.mktemp("cluster"))
    made.run("posse up --simulate 4 --gpus 2")
    yield made
    made.run("posse down --purge")
    assert made.processes() == []


@pytest.fixture
def empty(commands: Commands) -> Iterator[Commands]:
    """The worker's cluster, without any job before and after."""
    yield commands
    names = " ".join(commands.jobs())
    if names:
        commands.run(f"posse delete {names}")
