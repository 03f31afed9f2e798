"""Nodes as they are announced."""

from __future__ import annotations

from typing import Any

import pytest

from posse.local.node.manifests import (
    NodeError,
    allocatable_of,
    reported_status,
    simulated,
    simulated_nodes,
)


def test_simulated_nodes_are_named_and_sized() -> None:
    nodes = simulated_nodes(2, gpus=8, cpus=64, memory="512Gi")
    assert [node["metadata"]["name"] for node in nodes] == ["node-0", "node-1"]
    assert nodes[0]["metadata"]["labels"]["kubernetes.io/hostname"] == "node-0"
    assert nodes[0]["metadata"]["labels"]["posse.dev/simulated"] == "true"
    assert allocatable_of(nodes[0]) == {
        "cpu": 64_000,
        "memory": 512 << 30,
        "nvidia.com/gpu": 8,
        "pods": 110,
    }


def test_nodes_without_gpus_have_no_such_resource() -> None:
    assert "nvidia.com/gpu" not in allocatable_of(simulated_nodes(1)[0])


def test_a_manifest_keeps_what_its_author_wrote() -> None:
    node = simulated(
        {
            "metadata": {"name": "big", "labels": {"zone": "a"}, "uid": "stale"},
            "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]},
            "status": {"allocatable": {"cpu": "7500m", "example.com/fpga": 3}},
        }
    )
    assert node["metadata"]["labels"]["zone"] == "a"
    assert "uid" not in node["metadata"]
    assert node["spec"]["taints"] == [{"key": "k", "effect": "NoSchedule"}]
    assert allocatable_of(node)["cpu"] == 7500
    assert allocatable_of(node)["example.com/fpga"] == 3
    assert node["status"]["capacity"]["memory"] == "128Gi"


@pytest.mark.parametrize(
    ("manifest", "complaint"),
    [
        ({}, "no metadata.name"),
        ({"metadata": {"name": "x"}, "kind": "Pod"}, "x is a Pod"),
        ({"metadata": {"name": "x"}, "status": {"capacity": {"cpu": "many"}}}, "x: "),
        ({"metadata": {"name": "x"}, "status": {"capacity": {"cpu": "-1"}}}, "negative"),
        ({"metadata": {"name": "x"}, "status": []}, "x: status is not a mapping"),
        ({"metadata": "x"}, "metadata is not a mapping"),
    ],
)
def test_a_node_that_makes_no_sense_is_named(manifest: dict[str, Any], complaint: str) -> None:
    with pytest.raises(NodeError, match=complaint):
        simulated(manifest)


def test_a_healthy_node_says_ready_and_where_its_api_is() -> None:
    status = reported_status(simulated_nodes(1)[0], port=10250, now="2020-01-01T00:00:00Z")
    ready = {c["type"]: c["status"] for c in status["conditions"]}
    assert ready == {
        "MemoryPressure": "False",
        "DiskPressure": "False",
        "PIDPressure": "False",
        "Ready": "True",
    }
    assert status["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 10250}}
    assert {"type": "InternalIP", "address": "127.0.0.1"} in status["addresses"]
