"""Pods that the API refuses, and why."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from posse.objects import kinds
from posse.objects.defaulting import default
from posse.objects.validating import validate_create, validate_update

Raw = dict[str, Any]

GPU = "nvidia.com/gpu"
LABEL = "a lowercase RFC 1123 label must consist of"
SUBDOMAIN = "a lowercase RFC 1123 subdomain must consist of"


def pod(spec: Raw | None = None, meta: Raw | None = None, **container: Any) -> Raw:
    one = {"name": "c", "image": "busybox:1", **container}
    return {
        "metadata": {"name": "p", "namespace": "default", **(meta or {})},
        "spec": {"containers": [one], **(spec or {})},
    }


def resources(**lists: Raw) -> Raw:
    return pod(resources=lists)


def errors(obj: Raw) -> list[str]:
    obj = copy.deepcopy(obj)
    default(kinds.POD, obj)
    return [str(error) for error in validate_create(kinds.POD, obj)]


def test_a_good_pod_is_accepted() -> None:
    good = pod(
        {
            "volumes": [{"name": "v", "emptyDir": {}}],
            "tolerations": [
                {"key": "a", "operator": "Equal", "value": "b", "effect": "NoSchedule"}
            ],
            "nodeSelector": {"zone": "a"},
            "initContainers": [{"name": "i", "image": "a", "restartPolicy": "Always"}],
        },
        resources={"limits": {GPU: 2, "cpu": "4", "memory": "1Gi"}},
        ports=[{"containerPort": 80, "name": "http"}],
        volumeMounts=[{"name": "v", "mountPath": "/v"}],
        env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
        readinessProbe={"tcpSocket": {"port": "http"}},
    )
    assert errors(good) == []


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        (pod({"containers": []}), ["spec.containers: Required value"]),
        (pod({"containers": None}), ["spec.containers: Required value"]),
        (pod(image=""), ["spec.containers[0].image: Required value"]),
        (pod(name=""), ["spec.containers[0].name: Required value"]),
        (
            pod(name="a.b"),
            ['spec.containers[0].name: Invalid value: "a.b": must not contain dots'],
        ),
        (
            pod({"containers": [{"name": "c", "image": "a"}] * 2}),
            ['spec.containers[1].name: Duplicate value: "c"'],
        ),
        (
            pod({"initContainers": [{"name": "c", "image": "a"}]}),
            ['spec.initContainers[0].name: Duplicate value: "c"'],
        ),
        (
            pod({"restartPolicy": "Sometimes"}),
            [
                'spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", '
                '"OnFailure", "Never"'
            ],
        ),
        (
            pod({"activeDeadlineSeconds": 0}),
            [
                "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, "
                "inclusive"
            ],
        ),
        (
            pod({"schedulingGates": [{"name": "g"}], "nodeName": "n"}),
            ["spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared"],
        ),
        (
            pod(imagePullPolicy="Maybe"),
            [
                'spec.containers[0].imagePullPolicy: Unsupported value: "Maybe": supported values: '
                '"Always", "IfNotPresent", "Never"'
            ],
        ),
        (
            pod({"preemptionPolicy": "X"}),
            [
                'spec.preemptionPolicy: Unsupported value: "X": supported values: '
                '"PreemptLowerPriority", "Never"'
            ],
        ),
        (
            pod(volumeMounts=[{"name": "x", "mountPath": "/a"}]),
            ['spec.containers[0].volumeMounts[0].name: Not found: "x"'],
        ),
        (
            pod({"volumes": [{"name": "a"}, {"name": "a"}]}),
            ['spec.volumes[1].name: Duplicate value: "a"'],
        ),
        (
            pod({"volumes": [{"name": "a", "emptyDir": {}, "hostPath": {"path": "/a"}}]}),
            ["spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type"],
        ),
        (
            pod({"volumes": [{"name": "a", "secret": {}}]}),
            ["spec.volumes[0].secret.secretName: Required value"],
        ),
        (
            pod(livenessProbe={}),
            ["spec.containers[0].livenessProbe: Required value: must specify a handler type"],
        ),
        (
            pod(
                env=[
                    {
                        "name": "A",
                        "value": "x",
                        "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}},
                    }
                ]
            ),
            [
                'spec.containers[0].env[0].valueFrom: Invalid value: "": may not be specified when '
                "`value` is not empty"
            ],
        ),
    ],
)
def test_refused(obj: Raw, expected: list[str]) -> None:
    assert errors(obj) == expected


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        (
            resources(requests={GPU: "1.5"}, limits={GPU: "1.5"}),
            [
                f'spec.containers[0].resources.limits[{GPU}]: Invalid value: "1500m": must be an '
                "integer",
                f'spec.containers[0].resources.requests[{GPU}]: Invalid value: "1500m": must be an '
                "integer",
            ],
        ),
        (
            resources(requests={GPU: "1"}),
            [
                "spec.containers[0].resources.limits: Required value: Limit must be set for non "
                "overcommitable resources"
            ],
        ),
        (
            resources(requests={GPU: "1"}, limits={GPU: "2"}),
            [
                'spec.containers[0].resources.requests: Invalid value: "1": must be equal to '
                f"{GPU} limit of 2"
            ],
        ),
        (
            resources(requests={"cpu": "2"}, limits={"cpu": "1"}),
            [
                'spec.containers[0].resources.requests: Invalid value: "2": must be less than or '
                "equal to cpu limit of 1"
            ],
        ),
        (
            resources(requests={"cpu": "-1"}),
            [
                'spec.containers[0].resources.requests[cpu]: Invalid value: "-1": must be greater '
                "than or equal to 0"
            ],
        ),
        (
            resources(requests={"gpu": "1"}),
            [
                'spec.containers[0].resources.requests[gpu]: Invalid value: "gpu": must be a '
                "standard resource type or fully qualified",
                'spec.containers[0].resources.requests[gpu]: Invalid value: "gpu": must be a '
                "standard resource for containers",
            ],
        ),
        (
            resources(requests={"memory": "1Gib"}),
            [
                'spec.containers[0].resources.requests[memory]: Invalid value: "1Gib": quantities '
                "must match the regular expression "
                "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
            ],
        ),
        (
            resources(limits={"hugepages-2Mi": "4Mi"}),
            ["spec.containers[0].resources: Forbidden: HugePages require cpu or memory"],
        ),
        (
            pod({"resources": {"requests": {"cpu": "1"}}}, resources={"requests": {"cpu": "2"}}),
            [
                'spec.resources.requests[cpu]: Invalid value: "1": must be greater than or equal '
                "to aggregate container requests of 2"
            ],
        ),
    ],
)
def test_amounts(obj: Raw, expected: list[str]) -> None:
    assert errors(obj) == expected


PORTS = "spec.containers[0].ports"


@pytest.mark.parametrize(
    ("ports", "expected"),
    [
        ([{}], [f"{PORTS}[0].containerPort: Required value"]),
        (
            [{"containerPort": 70000}],
            [
                f"{PORTS}[0].containerPort: Invalid value: 70000: must be between 1 and 65535, "
                "inclusive"
            ],
        ),
        (
            [{"containerPort": 1, "hostPort": -1}],
            [f"{PORTS}[0].hostPort: Invalid value: -1: must be between 1 and 65535, inclusive"],
        ),
        (
            [{"containerPort": 1, "protocol": "ICMP"}],
            [
                f'{PORTS}[0].protocol: Unsupported value: "ICMP": supported values: "SCTP", "TCP", '
                '"UDP"'
            ],
        ),
        (
            [{"containerPort": 1, "hostPort": 8}, {"containerPort": 2, "hostPort": 8}],
            [f'{PORTS}[1].hostPort: Duplicate value: "TCP//8"'],
        ),
        (
            [{"containerPort": 1, "name": "a"}, {"containerPort": 2, "name": "a"}],
            [f'{PORTS}[1].name: Duplicate value: "a"'],
        ),
    ],
)
def test_ports(ports: list[Raw], expected: list[str]) -> None:
    assert errors(pod(ports=ports)) == expected


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        (
            {"operator": "Equal"},
            'operator: Invalid value: "Equal": operator must be Exists when `key` is empty, which '
            'means "match all values and all keys"',
        ),
        (
            {"key": "a", "operator": "Like"},
            'operator: Unsupported value: "Like": supported values: "Equal", "Exists"',
        ),
        (
            {"key": "a", "operator": "Exists", "value": "x"},
            "operator: Invalid value: \"x\": value must be empty when `operator` is 'Exists'",
        ),
        (
            {"key": "a", "effect": "Never"},
            'effect: Unsupported value: "Never": supported values: "NoSchedule", '
            '"PreferNoSchedule", "NoExecute"',
        ),
        (
            {"key": "a", "effect": "NoSchedule", "tolerationSeconds": 1},
            "effect: Invalid value: \"NoSchedule\": effect must be 'NoExecute' when "
            "`tolerationSeconds` is set",
        ),
    ],
)
def test_tolerations(toleration: Raw, expected: str) -> None:
    assert errors(pod({"tolerations": [toleration]})) == [f"spec.tolerations[0].{expected}"]


@pytest.mark.parametrize(
    ("meta", "field", "begins"),
    [
        ({"name": "A"}, "metadata.name", f'Invalid value: "A": {SUBDOMAIN}'),
        ({"name": ""}, "metadata.name", "Required value: name or generateName is required"),
        ({"generateName": "Job-"}, "metadata.generateName", f'Invalid value: "Job-": {SUBDOMAIN}'),
        ({"namespace": "A"}, "metadata.namespace", f'Invalid value: "A": {LABEL}'),
        ({"labels": {"a b": "c"}}, "metadata.labels", 'Invalid value: "a b": name part must'),
        ({"labels": {"a": "b c"}}, "metadata.labels", 'Invalid value: "b c": a valid label must'),
        ({"annotations": {"a b": ""}}, "metadata.annotations", 'Invalid value: "a b": name part'),
        (
            {"annotations": {"a": "x" * 262144}},
            "metadata.annotations",
            "Too long: may not be more than 262144 bytes",
        ),
        ({"finalizers": ["mine"]}, "metadata.finalizers[0]", 'Invalid value: "mine": name is'),
    ],
)
def test_metadata(meta: Raw, field: str, begins: str) -> None:
    [error] = validate_create(kinds.POD, _filled(pod(meta=meta)))
    assert error.field == field
    assert error.message.startswith(begins)


def test_a_reason_goes_with_every_error() -> None:
    obj = pod({"restartPolicy": "X", "volumes": [{"name": "a"}, {"name": "a"}]}, image="", name="A")
    found = {error.field: error.reason for error in validate_create(kinds.POD, _filled(obj))}
    assert found == {
        "spec.volumes[1].name": "FieldValueDuplicate",
        "spec.containers[0].name": "FieldValueInvalid",
        "spec.containers[0].image": "FieldValueRequired",
        "spec.restartPolicy": "FieldValueNotSupported",
    }


def _filled(obj: Raw) -> Raw:
    obj = copy.deepcopy(obj)
    default(kinds.POD, obj)
    return obj


MAY_NOT = "spec: Forbidden: pod updates may not change fields other than"
TOLERATES = {"tolerations": [{"key": "a", "operator": "Exists"}]}
GATED = {"schedulingGates": [{"name": "a"}, {"name": "b"}], "nodeSelector": {"zone": "a"}}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (pod(), pod(image="busybox:2")),
        (pod(), pod(meta={"labels": {"a": "b"}})),
        (pod(), pod({"activeDeadlineSeconds": 10})),
        (pod({"activeDeadlineSeconds": 10}), pod({"activeDeadlineSeconds": 5})),
        (pod(), pod(TOLERATES)),
        (pod({"terminationGracePeriodSeconds": -1}), pod({"terminationGracePeriodSeconds": 1})),
        (pod(GATED), pod({**GATED, "schedulingGates": [{"name": "b"}]})),
        (pod(GATED), pod({**GATED, "schedulingGates": []})),
        (pod(GATED), pod({**GATED, "nodeSelector": {"zone": "a", "rack": "b"}})),
        (pod(), pod({"hostNetwork": False, "nodeSelector": {}})),
        (
            pod(resources={"requests": {"cpu": "1"}}),
            pod(resources={"requests": {"cpu": "1000m"}}),
        ),
    ],
)
def test_changes_that_a_running_pod_allows(old: Raw, new: Raw) -> None:
    assert validate_update(kinds.POD, _filled(new), _filled(old)) == []


@pytest.mark.parametrize(
    ("old", "new", "begins"),
    [
        (pod(), pod({"nodeName": "n"}), MAY_NOT),
        (pod({"nodeName": "n"}), pod({"nodeName": "m"}), MAY_NOT),
        (pod(), pod({"restartPolicy": "Never"}), MAY_NOT),
        (pod(), pod({"priority": 5}), MAY_NOT),
        (pod(), pod(command=["x"]), MAY_NOT),
        (pod(), pod({"terminationGracePeriodSeconds": 1}), MAY_NOT),
        (pod(), pod({"nodeSelector": {"zone": "a"}}), MAY_NOT),
        (
            pod(),
            pod({"containers": [{"name": "c", "image": "a"}, {"name": "d", "image": "a"}]}),
            "spec.containers: Forbidden: pod updates may not add or remove containers",
        ),
        (
            pod({"activeDeadlineSeconds": 10}),
            pod({"activeDeadlineSeconds": 11}),
            "spec.activeDeadlineSeconds: Invalid value: 11: must be less than or equal to previous",
        ),
        (
            pod({"activeDeadlineSeconds": 10}),
            pod(),
            "spec.activeDeadlineSeconds: Invalid value: null: must not update from a positive",
        ),
        (
            pod(TOLERATES),
            pod(),
            "spec.tolerations: Forbidden: existing toleration can not be modified except its",
        ),
        (
            pod(),
            pod({"schedulingGates": [{"name": "x"}]}),
            "spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new",
        ),
        (
            pod(GATED),
            pod({**GATED, "nodeSelector": {"zone": "b"}}),
            'spec.nodeSelector: Invalid value: {"zone":"b"}: only additions to spec.nodeSelector',
        ),
        (
            pod(meta={"uid": "a"}),
            pod(meta={"uid": "b"}),
            'metadata.uid: Invalid value: "b": field is immutable',
        ),
        (
            pod(meta={"deletionTimestamp": "2026-01-01T00:00:00Z"}),
            pod(meta={"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a/b"]}),
            "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being",
        ),
    ],
)
def test_changes_that_a_running_pod_refuses(old: Raw, new: Raw, begins: str) -> None:
    [error] = validate_update(kinds.POD, _filled(new), _filled(old))
    assert str(error).startswith(begins)


def test_a_refused_change_says_where_it_is() -> None:
    [error] = validate_update(kinds.POD, _filled(pod(command=["x"])), _filled(pod()))
    assert "spec.containers[0].command" in error.message


def test_a_stored_spec_is_not_judged_again() -> None:
    stored = _filled(pod({"restartPolicy": "FromAnotherAge"}))
    labelled = copy.deepcopy(stored)
    labelled["metadata"]["labels"] = {"a": "b"}
    assert validate_update(kinds.POD, labelled, stored) == []
