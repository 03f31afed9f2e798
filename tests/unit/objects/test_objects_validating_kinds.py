"""Objects other than pods that the API refuses, and why."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from posse.objects import kinds
from posse.objects.defaulting import default, job_selector
from posse.objects.kinds import Kind
from posse.objects.validating import validate_create, validate_update

Raw = dict[str, Any]

POD_SPEC = {"containers": [{"name": "c", "image": "a:1"}]}


def named(name: str = "x", **rest: Any) -> Raw:
    return {"metadata": {"name": name}, **rest}


def job(template_spec: Raw | None = None, **spec: Any) -> Raw:
    pod = {"restartPolicy": "Never", **POD_SPEC, **(template_spec or {})}
    return named(spec={"template": {"spec": pod}, **spec})


def deployment(template_spec: Raw | None = None, **spec: Any) -> Raw:
    labels = {"app": "a"}
    template = {"metadata": {"labels": labels}, "spec": {**POD_SPEC, **(template_spec or {})}}
    return named(spec={"selector": {"matchLabels": labels}, "template": template, **spec})


def service(name: str = "x", **spec: Any) -> Raw:
    return named(name, spec={"ports": [{"port": 80}], **spec})


def filled(kind: Kind, obj: Raw) -> Raw:
    obj = copy.deepcopy(obj)
    default(kind, obj)
    if kind is kinds.JOB:
        obj["metadata"]["uid"] = "u-1"
        job_selector(obj, "u-1")
    return obj


GOOD = [
    (kinds.JOB, job()),
    (kinds.JOB, job(completionMode="Indexed", completions=3)),
    (kinds.DEPLOYMENT, deployment()),
    (kinds.REPLICA_SET, deployment()),
    (kinds.SERVICE, service()),
    (kinds.SERVICE, service(clusterIP="None", ports=[])),
    (kinds.NODE, named(status={"capacity": {"cpu": "4", "nvidia.com/gpu": 8}})),
    (kinds.NAMESPACE, named()),
    (kinds.PRIORITY_CLASS, named(value=10)),
    (kinds.PRIORITY_CLASS, named("system-node-critical", value=2000001000)),
    (kinds.LEASE, named(spec={"leaseDurationSeconds": 15})),
    (kinds.CONFIG_MAP, named(data={"a.txt": "b"})),
    (kinds.SECRET, named(stringData={"a": "b"})),
    (kinds.SERVICE_ACCOUNT, named()),
    (kinds.CLUSTER_ROLE, named("system:Reader")),
    (kinds.MPI_JOB, named()),
]


@pytest.mark.parametrize(("kind", "obj"), GOOD, ids=lambda value: getattr(value, "kind", ""))
def test_good_objects_are_accepted(kind: Kind, obj: Raw) -> None:
    assert [str(error) for error in validate_create(kind, filled(kind, obj))] == []


@pytest.mark.parametrize(
    ("kind", "obj", "expected"),
    [
        (
            kinds.JOB,
            job({"restartPolicy": "Always"}),
            'spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"',
        ),
        (
            kinds.JOB,
            job({"restartPolicy": "OnFailure"}, podFailurePolicy={"rules": []}),
            'spec.template.spec.restartPolicy: Invalid value: "OnFailure": '
            'only "Never" is supported when podFailurePolicy is specified',
        ),
        (
            kinds.JOB,
            job(parallelism=-1),
            "spec.parallelism: Invalid value: -1: must be greater than or equal to 0",
        ),
        (
            kinds.JOB,
            job(completionMode="Indexed", parallelism=2),
            "spec.completions: Required value: when completion mode is Indexed",
        ),
        (kinds.JOB, job({"containers": []}), "spec.template.spec.containers: Required value"),
        (
            kinds.JOB,
            job(manualSelector=True, selector={"matchLabels": {"a": "b"}}),
            "spec.template.metadata.labels: Invalid value: null: `selector` does not match "
            "template `labels`",
        ),
        (
            kinds.DEPLOYMENT,
            deployment(selector={"matchLabels": {"app": "b"}}),
            'spec.template.metadata.labels: Invalid value: {"app":"a"}: `selector` does not match '
            "template `labels`",
        ),
        (
            kinds.DEPLOYMENT,
            deployment({"restartPolicy": "Never"}),
            'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: '
            '"Always"',
        ),
        (
            kinds.DEPLOYMENT,
            deployment(strategy={"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}),
            "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when "
            "`maxSurge` is 0",
        ),
        (
            kinds.REPLICA_SET,
            deployment(replicas=-1),
            "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
        ),
        (kinds.SERVICE, service(ports=[]), "spec.ports: Required value"),
        (
            kinds.SERVICE,
            service(type="Magic"),
            'spec.type: Unsupported value: "Magic": supported values: "ClusterIP", "ExternalName", '
            '"LoadBalancer", "NodePort"',
        ),
        (
            kinds.SERVICE,
            service(ports=[{"port": 80, "nodePort": 30000}]),
            "spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'",
        ),
        (
            kinds.SERVICE,
            service(clusterIP="here"),
            'spec.clusterIPs[0]: Invalid value: "here": must be a valid IP address, (e.g. 10.9.8.7 '
            "or 2001:db8::ffff)",
        ),
        (
            kinds.SERVICE,
            service("a.b"),
            'metadata.name: Invalid value: "a.b": must not contain dots',
        ),
        (
            kinds.NODE,
            named(status={"capacity": {"nvidia.com/gpu": "-1"}, "allocatable": {}}),
            'status.capacity.nvidia.com/gpu: Invalid value: "-1": must be greater than or equal '
            "to 0",
        ),
        (
            kinds.NODE,
            named(spec={"taints": [{"key": "a", "effect": "Sometimes"}]}),
            'metadata.taints[0].effect: Unsupported value: "Sometimes": supported values: '
            '"NoSchedule", "PreferNoSchedule", "NoExecute"',
        ),
        (
            kinds.PRIORITY_CLASS,
            named(value=2_000_000_000),
            "value: Forbidden: maximum allowed value of a user defined priority is 1000000000",
        ),
        (
            kinds.PRIORITY_CLASS,
            named("system-mine", value=1),
            "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for "
            "system use only. error: system-mine is not a known system priority class",
        ),
        (
            kinds.LEASE,
            named(spec={"leaseDurationSeconds": 0}),
            "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
        ),
        (
            kinds.CONFIG_MAP,
            named(data={"..": "x"}),
            "data[..]: Invalid value: \"..\": must not be '..'",
        ),
        (
            kinds.CONFIG_MAP,
            named(data={"a": "x" * 1048577}),
            "[]: Too long: may not be more than 1048576 bytes",
        ),
        (
            kinds.SECRET,
            named(type="kubernetes.io/ssh-auth"),
            "data[ssh-privatekey]: Required value",
        ),
        (
            kinds.NAMESPACE,
            named("a_b"),
            'metadata.name: Invalid value: "a_b": a lowercase RFC 1123',
        ),
        (kinds.CLUSTER_ROLE, named("a/b"), 'metadata.name: Invalid value: "a/b": may not contain'),
        (kinds.MPI_JOB, named("A"), 'metadata.name: Invalid value: "A": a lowercase RFC 1123'),
    ],
)
def test_refused(kind: Kind, obj: Raw, expected: str) -> None:
    found = [str(error) for error in validate_create(kind, filled(kind, obj))]
    assert len(found) == 1 and expected in found[0], found


def test_what_a_secret_holds_is_not_in_the_error() -> None:
    secret = named(
        type="kubernetes.io/dockerconfigjson", stringData={".dockerconfigjson": "hunter2"}
    )
    [error] = validate_create(kinds.SECRET, filled(kinds.SECRET, secret))
    assert "hunter2" not in str(error)
    assert "<secret contents redacted>" in str(error)


ADDRESS = {"clusterIP": "10.0.0.1"}


@pytest.mark.parametrize(
    ("kind", "old", "new"),
    [
        (kinds.JOB, job(), job(completions=1, parallelism=2, suspend=True, backoffLimit=3)),
        (kinds.JOB, job(suspend=True), job({"nodeSelector": {"a": "b"}}, suspend=True)),
        (kinds.DEPLOYMENT, deployment(), deployment(replicas=5)),
        (kinds.DEPLOYMENT, deployment(), deployment({"nodeSelector": {"a": "b"}})),
        (kinds.SERVICE, service(**ADDRESS), service(**ADDRESS, ports=[{"port": 81}])),
        (kinds.NODE, named(), named(spec={"unschedulable": True})),
        (kinds.PRIORITY_CLASS, named(value=1), named(value=1, description="new")),
        (kinds.CONFIG_MAP, named(data={"a": "b"}), named(data={"a": "c"})),
        (kinds.SECRET, named(stringData={"a": "b"}), named(stringData={"a": "c"}, immutable=True)),
    ],
)
def test_allowed_changes(kind: Kind, old: Raw, new: Raw) -> None:
    assert validate_update(kind, filled(kind, new), filled(kind, old)) == []


@pytest.mark.parametrize(
    ("kind", "old", "new", "field", "ends"),
    [
        (kinds.JOB, job(), job({"hostname": "h"}), "spec.template", "field is immutable"),
        (kinds.JOB, job(), job({"nodeSelector": {"a": "b"}}), "spec.template", "is immutable"),
        (kinds.JOB, job(), job(completions=2, parallelism=1), "spec.completions", "is immutable"),
        (
            kinds.DEPLOYMENT,
            deployment(),
            deployment(
                selector={"matchLabels": {"b": "c"}},
                template={"metadata": {"labels": {"b": "c"}}, "spec": POD_SPEC},
            ),
            "spec.selector",
            "field is immutable",
        ),
        (
            kinds.SERVICE,
            service(**ADDRESS),
            service(clusterIP="10.0.0.2"),
            "spec.clusterIPs[0]",
            "may not change once set",
        ),
        (
            kinds.NODE,
            named(spec={"providerID": "a"}),
            named(spec={"providerID": "b"}),
            "spec.providerID",
            'may not change providerID except from "" to valid',
        ),
        (
            kinds.PRIORITY_CLASS,
            named(value=1),
            named(value=2),
            "value",
            "may not be changed in an update.",
        ),
        (
            kinds.CONFIG_MAP,
            named(immutable=True, data={"a": "b"}),
            named(immutable=True, data={"a": "c"}),
            "data",
            "field is immutable when `immutable` is set",
        ),
        (
            kinds.SECRET,
            named(immutable=True),
            named(),
            "immutable",
            "field is immutable when `immutable` is set",
        ),
        (kinds.SECRET, named(type="a/b"), named(type="c/d"), "type", "field is immutable"),
    ],
)
def test_refused_changes(kind: Kind, old: Raw, new: Raw, field: str, ends: str) -> None:
    found = validate_update(kind, filled(kind, new), filled(kind, old))
    assert [error.field for error in found] == [field]
    assert found[0].message.endswith(ends)


@pytest.mark.parametrize("kind", kinds.BUILT_IN, ids=lambda kind: kind.kind)
@pytest.mark.parametrize(
    "obj",
    [
        {},
        {"metadata": None, "spec": None},
        {"metadata": [], "spec": "x", "status": 3, "data": 5},
        {"metadata": {"labels": [], "annotations": {"a": 1}, "ownerReferences": [1, None]}},
        {"spec": {"containers": [None, 1, {"ports": {}, "env": [5], "resources": []}]}},
        {"spec": {"template": {"spec": {"containers": "x", "tolerations": {}}}, "selector": 1}},
        {"spec": {"ports": [None], "clusterIPs": [1], "taints": ["x"], "volumes": [{"name": []}]}},
    ],
)
def test_malformed_objects_are_refused_without_failing(kind: Kind, obj: Raw) -> None:
    assert validate_create(kind, obj)
    validate_update(kind, obj, named(spec={}))
    validate_update(kind, named(spec={}), obj)
