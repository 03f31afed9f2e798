from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from posse.local.node.processes.isolation.choosing import choose
from posse.world import World
from tests.unit.processes.rig import Rig
from tests.unit.processes.rig import rig as make_rig


@pytest.fixture(scope="session")
def namespaces(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Empty where this machine allows namespaces, else why it does not."""
    home = tmp_path_factory.mktemp("probe")
    watch = home / "watch"
    os.mkfifo(watch)
    chosen = asyncio.run(choose("", World.real(), home, (), watch))
    return "" if chosen.name == "namespaces" else "this machine allows no namespaces"


@pytest.fixture(params=["none", "namespaces"])
def mode(request: pytest.FixtureRequest, namespaces: str) -> str:
    if request.param == "namespaces" and namespaces:
        pytest.skip(namespaces)
    return str(request.param)


@pytest.fixture
async def rig(tmp_path: Path, mode: str) -> AsyncIterator[Rig]:
    async with make_rig(tmp_path / "home", mode) as made:
        yield made


@pytest.fixture
async def isolated(tmp_path: Path, namespaces: str) -> AsyncIterator[Rig]:
    """With namespaces only: what they alone promise."""
    if namespaces:
        pytest.skip(namespaces)
    async with make_rig(tmp_path / "home", "namespaces") as made:
        yield made


@pytest.fixture
async def shared(tmp_path: Path) -> AsyncIterator[Rig]:
    """Without namespaces: what stands in for them."""
    async with make_rig(tmp_path / "home", "none") as made:
        yield made
