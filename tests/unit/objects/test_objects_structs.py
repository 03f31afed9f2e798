"""Objects decode as servers and people write them."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from posse.objects.groups import PodGroup, PriorityClass, Queue
from posse.objects.meta import from_raw, without_nulls
from posse.objects.mpijobs import MPIJob
from posse.objects.nodes import Node, Taint
from posse.objects.pods import Pod, PodSpec, Toleration


def decoded(raw: dict[str, Any], model: Any) -> Any:
    return msgspec.json.decode(json.dumps(raw).encode(), type=model)


@pytest.mark.parametrize("model", [Pod, Node, PodGroup, Queue, PriorityClass, MPIJob])
def test_an_object_with_nothing_in_it_decodes(model: Any) -> None:
    empty = decoded({}, model)
    nulls = decoded({"metadata": None, "spec": None, "status": None}, model)
    assert empty == nulls
    assert empty.metadata.labels == {}


def test_null_collections_of_a_pod_read_as_empty_ones() -> None:
    pod = decoded(
        {
            "metadata": {"name": "p", "labels": None, "annotations": None, "finalizers": None},
            "spec": {
                "containers": [{"name": "c", "resources": None, "ports": None}],
                "initContainers": None,
                "tolerations": None,
                "nodeSelector": None,
                "volumes": None,
                "overhead": None,
            },
            "status": {"conditions": None, "containerStatuses": None},
        },
        Pod,
    )
    assert pod.metadata.labels == {} and pod.metadata.annotations == {}
    assert pod.spec.containers[0].resources.requests == {}
    assert pod.spec.init_containers == [] and pod.spec.volumes == []
    assert pod.spec.tolerations == [] and pod.spec.node_selector == {}
    assert pod.status.conditions == [] and pod.status.container_statuses == []


def test_a_pod_without_containers_decodes() -> None:
    assert decoded({"spec": {"containers": None}}, Pod).spec.containers == []


def test_amounts_are_text_or_numbers() -> None:
    limits = {"nvidia.com/gpu": 2, "cpu": "1500m", "memory": 1.5}
    pod = decoded({"spec": {"containers": [{"resources": {"limits": limits}}]}}, Pod)
    assert pod.spec.containers[0].resources.limits == limits


def test_names_that_kubernetes_capitalises_its_own_way() -> None:
    pod = decoded(
        {
            "spec": {"containers": [{"ports": [{"containerPort": 1, "hostIP": "10.0.0.1"}]}]},
            "status": {"podIP": "10.1.0.1", "hostIP": "10.2.0.1"},
        },
        Pod,
    )
    assert (pod.status.pod_ip, pod.status.host_ip) == ("10.1.0.1", "10.2.0.1")
    assert pod.spec.containers[0].ports[0].host_ip == "10.0.0.1"


def test_what_is_encoded_is_what_was_said() -> None:
    raw = {"metadata": {"name": "p"}, "spec": {"nodeName": "n"}, "status": {"podIP": "10.0.0.1"}}
    assert json.loads(msgspec.json.encode(decoded(raw, Pod))) == raw


def test_identity_and_state_of_a_pod() -> None:
    pod = decoded(
        {
            "metadata": {
                "name": "p",
                "namespace": "team",
                "deletionTimestamp": "2026-01-01T00:00:00Z",
            },
            "status": {"phase": "Failed", "conditions": [{"type": "Ready", "status": "True"}]},
        },
        Pod,
    )
    assert pod.key == ("team", "p")
    assert pod.terminal and pod.ready and pod.metadata.deleting


@pytest.mark.parametrize(
    ("conditions", "ready"),
    [
        ([], False),
        ([{"type": "Ready", "status": "True"}], True),
        ([{"type": "Ready", "status": "Unknown"}], False),
        ([{"type": "DiskPressure", "status": "True"}], False),
    ],
)
def test_a_node_is_ready_when_its_agent_says_so(conditions: list[Any], ready: bool) -> None:
    assert decoded({"status": {"conditions": conditions}}, Node).ready is ready


def test_a_cordoned_node_is_not_schedulable() -> None:
    assert decoded({}, Node).schedulable
    assert not decoded({"spec": {"unschedulable": True}}, Node).schedulable


def test_the_address_of_a_node_by_preference() -> None:
    addresses = [
        {"type": "Hostname", "address": "h"},
        {"type": "InternalIP", "address": "10.0.0.1"},
    ]
    node = decoded({"status": {"addresses": addresses}}, Node)
    assert node.address() == "10.0.0.1"
    assert node.address("Hostname") == "h"
    assert node.address("ExternalIP") == ""


@pytest.mark.parametrize(
    ("state", "is_open"), [("", True), ("Open", True), ("Closed", False), ("Closing", False)]
)
def test_a_queue_is_open_until_somebody_closes_it(state: str, is_open: bool) -> None:
    assert decoded({"status": {"state": state}}, Queue).open is is_open


def test_the_controller_among_the_owners() -> None:
    owners = [
        {"kind": "A", "name": "a", "controller": None},
        {"kind": "B", "name": "b", "controller": True},
    ]
    controller = decoded({"metadata": {"ownerReferences": owners}}, Pod).metadata.controller
    assert controller is not None and controller.kind == "B"


def test_taints_and_tolerations_can_be_keys() -> None:
    assert len({Taint("a", "b", "NoSchedule"), Taint("a", "b", "NoSchedule")}) == 1
    assert len({Toleration("a"), Toleration("a"), Toleration("b")}) == 2


def test_templates_of_a_job_stay_as_they_were_written() -> None:
    template = {"metadata": None, "spec": {"containers": [{"fieldOfTomorrow": [1, None]}]}}
    job = decoded({"spec": {"mpiReplicaSpecs": {"Worker": {"template": template}}}}, MPIJob)
    assert job.spec.mpi_replica_specs["Worker"].template == template


def test_nulls_of_people_are_read_as_absent() -> None:
    raw = {
        "containers": [{"name": "c", "image": None}],
        "tolerations": [{"key": "a", "value": None}],
    }
    spec = from_raw(raw, PodSpec)
    assert spec.containers[0].image == ""
    assert spec.tolerations == [Toleration("a")]


def test_what_does_not_fit_is_said() -> None:
    with pytest.raises(msgspec.ValidationError, match="containers"):
        from_raw({"containers": "none"}, PodSpec)


def test_without_nulls_keeps_everything_else() -> None:
    assert without_nulls({"a": None, "b": [None, {"c": None, "d": 0}]}) == {"b": [None, {"d": 0}]}
