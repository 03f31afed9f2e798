"""What the API fills in."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from posse.objects import kinds
from posse.objects.defaulting import default, job_selector, qos_class
from posse.objects.defaulting.containers import pull_policy
from posse.objects.kinds import Kind

Raw = dict[str, Any]


def filled(kind: Kind, obj: Raw) -> Raw:
    result = copy.deepcopy(obj)
    default(kind, result)
    return result


def pod(spec: Raw | None = None, **container: Any) -> Raw:
    one = {"name": "c", "image": "busybox:1", **container}
    return {"metadata": {"name": "p"}, "spec": {"containers": [one], **(spec or {})}}


def only_container(obj: Raw) -> Raw:
    [container] = obj["spec"]["containers"]
    assert isinstance(container, dict)
    return container


def test_a_bare_pod() -> None:
    obj = filled(kinds.POD, pod())
    spec = obj["spec"]
    assert {name: spec[name] for name in sorted(spec) if name != "containers"} == {
        "dnsPolicy": "ClusterFirst",
        "enableServiceLinks": True,
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
        "tolerations": [
            {
                "key": key,
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": 300,
            }
            for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
        ],
    }
    assert only_container(obj) == {
        "name": "c",
        "image": "busybox:1",
        "imagePullPolicy": "IfNotPresent",
        "resources": {},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    }
    assert obj["status"] == {"phase": "Pending", "qosClass": "BestEffort"}


def test_what_is_given_stays() -> None:
    given = pod(
        {
            "schedulerName": "posse",
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "enableServiceLinks": False,
            "tolerations": [{"operator": "Exists"}],
        },
        imagePullPolicy="Never",
    )
    obj = filled(kinds.POD, given)
    for name, value in given["spec"].items():
        if name != "containers":
            assert obj["spec"][name] == value
    assert only_container(obj)["imagePullPolicy"] == "Never"


def test_requests_follow_limits() -> None:
    limits = {"nvidia.com/gpu": 2, "cpu": "4"}
    resources = {"limits": limits, "requests": {"cpu": "1"}}
    init = [{"name": "i", "image": "a", "resources": {"limits": {"memory": "1Gi"}}}]
    obj = filled(kinds.POD, pod({"initContainers": init}, resources=resources))
    assert only_container(obj)["resources"]["requests"] == {"cpu": "1", "nvidia.com/gpu": "2"}
    assert obj["spec"]["initContainers"][0]["resources"]["requests"] == {"memory": "1Gi"}


def test_quantities_are_written_as_the_server_writes_them() -> None:
    requests = {"cpu": "1000m", "memory": "1024Mi", "ephemeral-storage": 1000, "x.com/y": "oops"}
    obj = filled(kinds.POD, pod(resources={"requests": requests}))
    assert only_container(obj)["resources"]["requests"] == {
        "cpu": "1",
        "memory": "1Gi",
        "ephemeral-storage": "1k",
        "x.com/y": "oops",
    }


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("a", "Always"),
        ("a:latest", "Always"),
        ("a:1", "IfNotPresent"),
        ("reg:5000/a", "Always"),
        ("reg:5000/a:1", "IfNotPresent"),
        ("reg/b/a:latest", "Always"),
        ("a@sha256:" + "0" * 64, "IfNotPresent"),
        ("a:latest@sha256:" + "0" * 64, "Always"),
    ],
)
def test_pull_policy_follows_the_tag(image: str, policy: str) -> None:
    assert pull_policy(image) == policy


def test_parts_of_a_container() -> None:
    obj = filled(
        kinds.POD,
        pod(
            ports=[{"containerPort": 80}],
            env=[
                {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                {"name": "B", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
            ],
            livenessProbe={"httpGet": {"port": 80}, "periodSeconds": 0},
        ),
    )
    container = only_container(obj)
    assert container["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
    assert container["env"][0]["valueFrom"]["fieldRef"]["apiVersion"] == "v1"
    assert container["env"][1]["valueFrom"]["resourceFieldRef"]["divisor"] == "0"
    assert container["livenessProbe"] == {
        "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"},
        "timeoutSeconds": 1,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 3,
    }


@pytest.mark.parametrize(
    ("volume", "source"),
    [
        ({}, {"emptyDir": {}}),
        ({"configMap": {"name": "x"}}, {"configMap": {"name": "x", "defaultMode": 420}}),
        ({"secret": {"secretName": "x"}}, {"secret": {"secretName": "x", "defaultMode": 420}}),
        ({"hostPath": {"path": "/x"}}, {"hostPath": {"path": "/x", "type": ""}}),
        ({"emptyDir": {"sizeLimit": "1024Mi"}}, {"emptyDir": {"sizeLimit": "1Gi"}}),
        (
            {"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
            {
                "projected": {
                    "defaultMode": 420,
                    "sources": [{"serviceAccountToken": {"path": "t", "expirationSeconds": 3600}}],
                }
            },
        ),
    ],
)
def test_volumes(volume: Raw, source: Raw) -> None:
    obj = filled(kinds.POD, pod({"volumes": [{"name": "v", **volume}]}))
    assert obj["spec"]["volumes"] == [{"name": "v", **source}]


def test_on_the_hosts_network_ports_are_host_ports() -> None:
    obj = filled(kinds.POD, pod({"hostNetwork": True}, ports=[{"containerPort": 80}]))
    assert only_container(obj)["ports"][0]["hostPort"] == 80


def test_a_gated_pod_says_that_it_is_gated() -> None:
    obj = filled(kinds.POD, pod({"schedulingGates": [{"name": "a/b"}]}))
    [condition] = obj["status"]["conditions"]
    assert (condition["type"], condition["reason"]) == ("PodScheduled", "SchedulingGated")


def test_pod_level_requests_come_from_containers_then_from_limits() -> None:
    limits = {"cpu": "4", "memory": "8Gi"}
    given = pod({"resources": {"limits": limits}}, resources={"requests": {"cpu": "1500m"}})
    assert filled(kinds.POD, given)["spec"]["resources"] == {
        "limits": limits,
        "requests": {"cpu": "1500m", "memory": "8Gi"},
    }


CPU, MEMORY = {"cpu": "1"}, {"memory": "1Gi"}


@pytest.mark.parametrize(
    ("containers", "quality"),
    [
        ([{}], "BestEffort"),
        ([{"limits": {"nvidia.com/gpu": "1"}, "requests": {"nvidia.com/gpu": "1"}}], "BestEffort"),
        ([{"requests": CPU}], "Burstable"),
        ([{"limits": CPU | MEMORY, "requests": CPU | MEMORY}], "Guaranteed"),
        ([{"limits": CPU | MEMORY, "requests": CPU}], "Burstable"),
        ([{"limits": CPU | MEMORY, "requests": {"cpu": "500m", "memory": "1Gi"}}], "Burstable"),
        ([{"limits": CPU | MEMORY, "requests": {"cpu": "1000m", "memory": "1Gi"}}], "Guaranteed"),
        ([{"limits": CPU | MEMORY, "requests": CPU | MEMORY}, {}], "Burstable"),
        ([{"requests": {"cpu": "0"}}], "BestEffort"),
    ],
)
def test_quality_of_service(containers: list[Raw], quality: str) -> None:
    assert qos_class({"containers": [{"resources": item} for item in containers]}) == quality


def test_templates_do_not_get_what_only_pods_get() -> None:
    template = {"spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": "1000m"}}}]}}
    obj = filled(kinds.DEPLOYMENT, {"spec": {"template": template}})
    spec = obj["spec"]["template"]["spec"]
    assert spec["schedulerName"] == "default-scheduler"
    assert spec["containers"][0]["resources"] == {"limits": {"cpu": "1"}}
    assert "enableServiceLinks" not in spec and "tolerations" not in spec


def test_a_bare_deployment() -> None:
    spec = filled(kinds.DEPLOYMENT, {"spec": {}})["spec"]
    assert spec["replicas"] == 1
    assert spec["strategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"},
    }
    assert (spec["revisionHistoryLimit"], spec["progressDeadlineSeconds"]) == (10, 600)


@pytest.mark.parametrize(
    ("spec", "completions", "parallelism"),
    [({}, 1, 1), ({"parallelism": 3}, None, 3), ({"completions": 3}, 3, 1)],
)
def test_how_often_and_how_broadly_a_job_runs(
    spec: Raw, completions: int | None, parallelism: int
) -> None:
    found = filled(kinds.JOB, {"spec": spec})["spec"]
    assert (found.get("completions"), found["parallelism"]) == (completions, parallelism)
    assert (found["backoffLimit"], found["suspend"]) == (6, False)
    assert (found["completionMode"], found["manualSelector"]) == ("NonIndexed", False)
    assert found["podReplacementPolicy"] == "TerminatingOrFailed"


def test_a_job_selects_its_own_pods_alone() -> None:
    job: Raw = {"metadata": {"name": "j"}, "spec": {"template": {}}}
    default(kinds.JOB, job)
    job_selector(job, "u-1")
    assert job["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": "u-1"}}
    assert job["spec"]["template"]["metadata"]["labels"] == {
        "batch.kubernetes.io/controller-uid": "u-1",
        "batch.kubernetes.io/job-name": "j",
        "controller-uid": "u-1",
        "job-name": "j",
    }


def test_a_job_with_a_selector_of_its_own_keeps_it() -> None:
    job: Raw = {"spec": {"manualSelector": True, "selector": {"matchLabels": {"a": "b"}}}}
    job_selector(job, "u-1")
    assert job["spec"]["selector"] == {"matchLabels": {"a": "b"}}


def test_a_bare_service() -> None:
    spec = filled(kinds.SERVICE, {"spec": {"ports": [{"port": 80}]}})["spec"]
    assert spec == {
        "type": "ClusterIP",
        "sessionAffinity": "None",
        "internalTrafficPolicy": "Cluster",
        "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
    }


def test_a_headless_service_says_so_twice() -> None:
    spec = filled(kinds.SERVICE, {"spec": {"clusterIP": "None"}})["spec"]
    assert spec["clusterIPs"] == ["None"]


def test_a_nodes_allocatable_is_its_capacity() -> None:
    status = filled(kinds.NODE, {"status": {"capacity": {"cpu": "4000m"}}})["status"]
    assert status["capacity"] == status["allocatable"] == {"cpu": "4"}


@pytest.mark.parametrize(
    ("kind", "given", "expected"),
    [
        (
            kinds.NAMESPACE,
            {"metadata": {"name": "n"}},
            {
                "metadata": {"name": "n", "labels": {"kubernetes.io/metadata.name": "n"}},
                "spec": {"finalizers": ["kubernetes"]},
                "status": {"phase": "Active"},
            },
        ),
        (kinds.SECRET, {}, {"type": "Opaque"}),
        (
            kinds.SECRET,
            {"type": "x/y", "stringData": {"a": "b"}, "data": {"a": "Yw==", "d": "Yw=="}},
            {"type": "x/y", "data": {"a": "Yg==", "d": "Yw=="}},
        ),
        (kinds.CONFIG_MAP, {"data": {"a": "b"}}, {"data": {"a": "b"}}),
        (
            kinds.PRIORITY_CLASS,
            {"value": 5},
            {"value": 5, "preemptionPolicy": "PreemptLowerPriority"},
        ),
        (kinds.MPI_JOB, {"spec": {"a": 1}}, {"spec": {"a": 1}}),
    ],
)
def test_small_kinds(kind: Kind, given: Raw, expected: Raw) -> None:
    assert filled(kind, given) == expected


@pytest.mark.parametrize("kind", kinds.BUILT_IN, ids=lambda kind: kind.kind)
@pytest.mark.parametrize(
    "obj",
    [
        {},
        {"metadata": None, "spec": None, "status": None},
        {"metadata": [], "spec": "x", "status": 3},
        {"spec": {"template": [], "containers": {}, "ports": 1, "volumes": [None, 1, "x"]}},
        {"spec": {"containers": [None, 1, {"ports": {}, "env": 5, "resources": []}]}},
        {"spec": {"template": {"spec": {"containers": "x", "tolerations": {}}}}},
        {"data": 5, "stringData": ["x"], "value": "x", "spec": {"limits": 3, "hard": []}},
    ],
)
def test_malformed_objects_are_left_to_be_refused(kind: Kind, obj: Raw) -> None:
    once = filled(kind, obj)
    assert filled(kind, once) == once
