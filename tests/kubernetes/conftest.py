"""One control plane for the whole run; what cannot be had is said, or required where asked."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.cluster import backends
from tests.kubernetes.building import REQUIRED, Unavailable, find
from tests.kubernetes.given import GivenPlane
from tests.kubernetes.peers.operators import Operators, available
from tests.kubernetes.plane import ControlPlane, Plane
from tests.kubernetes.preparing import prepare
from tests.kubernetes.riding import RealBackend


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What is said about the audit log is about the whole run."""
    items.sort(key=lambda item: item.path.name == "test_kubernetes_roles.py")


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    directory = tmp_path_factory.mktemp("controlplane")
    try:
        if os.environ.get("KUBECONFIG"):
            given = GivenPlane(directory)
            prepare(given)
            yield given
            return
        programs = find()
    except Unavailable as why:
        if os.environ.get(REQUIRED):
            pytest.fail(f"no real control plane: {why}", pytrace=False)
        pytest.skip(f"no real control plane: {why}")
    started = ControlPlane(programs, directory)
    try:
        started.start()
        prepare(started)
        started.controller_manager.start()
        yield started
    finally:
        started.stop()


@pytest.fixture(scope="session")
def control_plane(plane: Plane) -> ControlPlane:
    """One whose programs are ours to kill and to pause."""
    if not isinstance(plane, ControlPlane):
        pytest.skip("the cluster of KUBECONFIG is not ours to break")
    return plane


@pytest.fixture(scope="session")
def operators(
    control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Operators]:
    """Other people's operators, on a control plane of their own: they bring kinds along."""
    if not available():
        pytest.skip("no operator is built: `make test-peers` does it, in some minutes")
    plane = ControlPlane(control_plane.programs, tmp_path_factory.mktemp("peers"))
    try:
        plane.start()
        prepare(plane)
        made = Operators(plane)
        made.prepare()
        plane.controller_manager.start()
        yield made
    except Unavailable as why:
        pytest.skip(str(why))
    finally:
        plane.stop()


@pytest.fixture(autouse=True)
def _stories_ride_here(plane: Plane, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "chosen", RealBackend(plane))
