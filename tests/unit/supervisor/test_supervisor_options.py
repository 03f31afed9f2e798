"""What a cluster may be asked to be, and how two differ."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from posse.local.supervisor.errors import ClusterError
from posse.local.supervisor.options import Options

RUNNING = Options(simulate=4, gpus=2)
NODES = ({"metadata": {"name": "n"}},)


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        ({}, None),
        ({"simulate": 5}, "it runs with --simulate 4, not 5"),
        ({"gpus": 8}, "it runs with --gpus 2, not 8"),
        ({"cpus": "1"}, "it runs with --cpus 32, not 1"),
        ({"memory": "1Gi"}, "it runs with --memory 128Gi, not 1Gi"),
        ({"port": 6443}, None),
        ({"port": 1}, "it listens on port 6443, not 1"),
        (
            {"simulate": 0, "nodes": NODES},
            "it runs with --simulate 4, not the nodes of a file (--nodes)",
        ),
        (
            {"simulate": 0, "machine": "m"},
            "it runs with simulated nodes, not this machine as its node",
        ),
    ],
)
def test_a_difference_is_named(change: dict[str, Any], difference: str | None) -> None:
    assert msgspec.structs.replace(RUNNING, **change).difference(RUNNING, 6443) == difference


@pytest.mark.parametrize(
    ("asked", "difference"),
    [
        (Options(nodes=NODES), None),
        (Options(nodes=({"metadata": {"name": "m"}},)), "it runs with other --nodes"),
        (Options(simulate=3), "it runs with the nodes of a file (--nodes), not --simulate 3"),
    ],
)
def test_nodes_of_a_file_are_named(asked: Options, difference: str | None) -> None:
    assert asked.difference(Options(nodes=NODES), 6443) == difference


def test_another_version_is_a_difference() -> None:
    older = msgspec.structs.replace(RUNNING, version="0.0.1")
    assert "0.0.1" in (RUNNING.difference(older, 6443) or "")


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (Options(), "--simulate N, or --nodes FILE"),
        (Options(simulate=1, nodes=({"metadata": {"name": "n"}},)), "exclude each other"),
        (Options(simulate=-1), "between 1 and"),
        (Options(simulate=1, gpus=-1), "0 or more"),
        (Options(simulate=1, port=70_000), "between 0 and 65535"),
        (Options(simulate=1, metrics_port=65_535), "--metrics-port must be between 0 and 65534"),
        (Options(simulate=1, cpus="many"), "node-0"),
        (Options(nodes=({"metadata": {"name": "n"}},) * 2), "two nodes named n"),
        (Options(machine="m", gpus=2), "--gpus is for simulated nodes"),
        (Options(machine="m", isolation="vm"), "POSSE_ISOLATION is namespaces or none, not vm"),
        (Options(machine="m", allow_host_paths=("no/such",)), "--allow-host-path no/such"),
    ],
)
def test_options_that_make_no_cluster_are_refused(options: Options, complaint: str) -> None:
    with pytest.raises(ClusterError, match=complaint):
        options.check()


MACHINE = Options(machine="m", isolation="none")


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        ({}, None),
        ({"machine": "renamed"}, None),
        ({"isolation": ""}, None),
        ({"isolation": "namespaces"}, "it runs with POSSE_ISOLATION=none, not namespaces"),
        ({"allow_host_paths": ("/",)}, "it runs with other --allow-host-path"),
        ({"private": ("/k",)}, None),
    ],
)
def test_a_difference_of_machines_is_named(change: dict[str, Any], difference: str | None) -> None:
    assert msgspec.structs.replace(MACHINE, **change).difference(MACHINE, 6443) == difference


def test_a_machine_is_one_node_under_its_own_name() -> None:
    MACHINE.check()
    assert MACHINE.names() == ["m"]
    assert MACHINE.manifests() == []
    assert RUNNING.names() == ["node-0", "node-1", "node-2", "node-3"]
