"""What `kubectl get` prints: ages, pods' states, and every kind's columns."""

from __future__ import annotations

from typing import Any

import pytest

from posse.local.apiserver.tables import columns_of, table
from posse.local.apiserver.tables.durations import human_duration
from posse.local.apiserver.tables.jsonpath import JsonPath, JsonPathError
from posse.objects import kinds
from posse.objects.kinds import Kind
from posse.objects.times import rfc3339

NOW = 1_700_000_000.0
MINUTE, HOUR, DAY = 60, 3600, 86400
YEAR = 365 * DAY


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (-2, "<invalid>"), (-1, "0s"), (0, "0s"), (0.9, "0s"), (119, "119s"),
        (2 * MINUTE, "2m"), (2 * MINUTE + 5, "2m5s"), (10 * MINUTE - 1, "9m59s"),
        (10 * MINUTE, "10m"), (3 * HOUR - 1, "179m"), (3 * HOUR, "3h"),
        (4 * HOUR - 1, "3h59m"), (8 * HOUR, "8h"), (48 * HOUR - 1, "47h"), (48 * HOUR, "2d"),
        (5 * DAY + 3 * HOUR, "5d3h"), (8 * DAY, "8d"), (2 * YEAR - 1, "729d"), (2 * YEAR, "2y"),
        (2 * YEAR + 10 * DAY, "2y10d"), (8 * YEAR, "8y"), (8 * YEAR + 300 * DAY, "8y"),
    ],
)  # fmt: skip
def test_durations_as_kubernetes_tells_them(seconds: float, told: str) -> None:
    assert human_duration(seconds) == told


def ago(seconds: float) -> str:
    return rfc3339(NOW - seconds)


def shown(kind: Kind, obj: dict[str, Any], columns: Any = None) -> dict[str, Any]:
    """The only row as a dict from column to cell."""
    made = table(kind, columns, [obj], NOW, "Metadata")
    names = [column["name"] for column in made["columnDefinitions"]]
    assert len(names) == len(made["rows"][0]["cells"])
    return dict(zip(names, made["rows"][0]["cells"], strict=True))


def pod(status: Any, containers: int = 1, init: Any = (), **metadata: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "p", "creationTimestamp": ago(65), **metadata},
        "spec": {
            "containers": [{"name": f"c{index}"} for index in range(containers)],
            "initContainers": list(init),
        },
        "status": status,
    }


def running(ready: bool = True, **more: Any) -> dict[str, Any]:
    return {"name": "c0", "ready": ready, "restartCount": 0, "state": {"running": {}}, **more}


def waiting(reason: str = "", **more: Any) -> dict[str, Any]:
    return {"name": "c0", "state": {"waiting": {"reason": reason}}, **more}


def terminated(code: int, reason: str = "", **more: Any) -> dict[str, Any]:
    return {"name": "c0", "state": {"terminated": {"exitCode": code, "reason": reason, **more}}}


READY = [{"type": "Ready", "status": "True"}]
INIT = [{"name": "i0"}, {"name": "i1"}]
SIDECAR = [{"name": "s", "restartPolicy": "Always"}]


@pytest.mark.parametrize(
    ("obj", "ready", "status"),
    [
        (pod({"phase": "Pending"}), "0/1", "Pending"),
        (pod({"phase": "Failed", "reason": "Evicted"}), "0/1", "Evicted"),
        (
            pod({"phase": "Pending", "conditions": [
                {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]}),
            "0/1", "SchedulingGated",
        ),
        (pod({"phase": "Running", "containerStatuses": [running()]}), "1/1", "Running"),
        (pod({"phase": "Running", "containerStatuses": [running(False)]}), "0/1", "Running"),
        (
            pod({"phase": "Pending", "containerStatuses": [waiting("ContainerCreating")]}),
            "0/1", "ContainerCreating",
        ),
        (
            pod({"phase": "Running", "containerStatuses": [waiting("CrashLoopBackOff")]}),
            "0/1", "CrashLoopBackOff",
        ),
        (
            pod({"phase": "Running", "containerStatuses": [running(), waiting("ImagePullBackOff")]},
                containers=2),
            "1/2", "ImagePullBackOff",
        ),
        (
            pod({"phase": "Succeeded", "containerStatuses": [terminated(0, "Completed")]}),
            "0/1", "Completed",
        ),
        (
            pod({"phase": "Failed", "containerStatuses": [terminated(1, "Error")]}),
            "0/1", "Error",
        ),
        (pod({"phase": "Failed", "containerStatuses": [terminated(3)]}), "0/1", "ExitCode:3"),
        (
            pod({"phase": "Failed", "containerStatuses": [terminated(137, signal=9)]}),
            "0/1", "Signal:9",
        ),
        (
            pod({"phase": "Failed", "containerStatuses": [
                terminated(0, "Completed"), terminated(1, "OOMKilled")]}, containers=2),
            "0/2", "OOMKilled",
        ),
        (
            pod({"phase": "Running", "conditions": READY, "containerStatuses": [
                terminated(0, "Completed"), running()]}, containers=2),
            "1/2", "Running",
        ),
        (
            pod({"phase": "Running", "containerStatuses": [
                terminated(0, "Completed"), running()]}, containers=2),
            "1/2", "NotReady",
        ),
        (
            pod({"phase": "Pending", "initContainerStatuses": [waiting()]}, init=INIT),
            "0/1", "Init:0/2",
        ),
        (
            pod({"phase": "Pending", "initContainerStatuses": [
                terminated(0), waiting("PodInitializing")]}, init=INIT),
            "0/1", "Init:1/2",
        ),
        (
            pod({"phase": "Pending", "initContainerStatuses": [waiting("ErrImagePull")]},
                init=INIT),
            "0/1", "Init:ErrImagePull",
        ),
        (
            pod({"phase": "Pending", "initContainerStatuses": [terminated(1)]}, init=INIT),
            "0/1", "Init:ExitCode:1",
        ),
        (
            pod({"phase": "Pending", "initContainerStatuses": [terminated(1, "Error")]}, init=INIT),
            "0/1", "Init:Error",
        ),
        (
            pod({"phase": "Running", "containerStatuses": [running()], "initContainerStatuses": [
                {"name": "s", "started": True, "ready": True, "state": {"running": {}}}]},
                init=SIDECAR),
            "2/2", "Running",
        ),
        (
            pod({"phase": "Running", "containerStatuses": [running()]}, deletionTimestamp=ago(1)),
            "1/1", "Terminating",
        ),
        (pod({"phase": "Failed"}, deletionTimestamp=ago(1)), "0/1", "Failed"),
        (
            pod({"phase": "Running", "reason": "NodeLost"}, deletionTimestamp=ago(1)),
            "0/1", "Unknown",
        ),
    ],
)  # fmt: skip
def test_the_state_of_a_pod_in_one_word(obj: Any, ready: str, status: str) -> None:
    row = shown(kinds.POD, obj)
    assert (row["Ready"], row["Status"]) == (ready, status)


def test_restarts_say_how_many_and_when_last() -> None:
    last: dict[str, Any] = {"lastState": {"terminated": {"finishedAt": ago(300)}}}
    statuses = [running(restartCount=2, **last), running(restartCount=1)]
    row = shown(kinds.POD, pod({"phase": "Running", "containerStatuses": statuses}, containers=2))
    assert row["Restarts"] == "3 (5m ago)"
    assert shown(kinds.POD, pod({"phase": "Running"}))["Restarts"] == "0"


def test_restarts_of_init_containers_no_longer_count_once_they_are_done() -> None:
    done = {"name": "i0", "restartCount": 4, "state": {"terminated": {"exitCode": 0}}}
    status = {"phase": "Running", "initContainerStatuses": [done], "containerStatuses": [running()]}
    assert shown(kinds.POD, pod(status, init=INIT[:1]))["Restarts"] == "0"


def test_wide_columns_of_a_pod() -> None:
    obj = pod({"phase": "Running", "podIPs": [{"ip": "10.0.0.7"}], "nominatedNodeName": "n2",
               "conditions": [{"type": "a", "status": "True"}]})  # fmt: skip
    obj["spec"] |= {
        "nodeName": "n1",
        "readinessGates": [{"conditionType": "a"}, {"conditionType": "b"}],
    }
    row = shown(kinds.POD, obj)
    assert list(row.items())[4:] == [
        ("Age", "65s"),
        ("IP", "10.0.0.7"),
        ("Node", "n1"),
        ("Nominated Node", "n2"),
        ("Readiness Gates", "1/2"),
    ]


def test_finished_pods_are_marked() -> None:
    [row] = table(kinds.POD, None, [pod({"phase": "Succeeded"})], NOW, "None")["rows"]
    assert row["conditions"][0]["type"] == "Completed"
    assert row["object"] is None


METADATA = {"name": "x", "creationTimestamp": ago(3 * DAY)}
TEMPLATE = {"spec": {"containers": [{"name": "a", "image": "i"}, {"name": "b", "image": "j"}]}}
SELECTOR = {
    "matchLabels": {"b": "2", "a": "1"},
    "matchExpressions": [{"key": "c", "operator": "In", "values": ["z", "y"]}],
}
WIDE = {"Containers": "a,b", "Images": "i,j", "Selector": "a=1,b=2,c in (y,z)"}


@pytest.mark.parametrize(
    ("kind", "obj", "row"),
    [
        (kinds.NAMESPACE, {"status": {"phase": "Active"}}, {"Status": "Active", "Age": "3d"}),
        (kinds.CONFIG_MAP, {"data": {"a": ""}, "binaryData": {"b": ""}}, {"Data": 2, "Age": "3d"}),
        (
            kinds.SECRET,
            {"type": "Opaque", "data": {"a": ""}},
            {"Type": "Opaque", "Data": 1, "Age": "3d"},
        ),
        (kinds.SERVICE_ACCOUNT, {}, {"Age": "3d"}),
        (kinds.LEASE, {"spec": {"holderIdentity": "me"}}, {"Holder": "me", "Age": "3d"}),
        (kinds.LIMIT_RANGE, {}, {"Created At": ago(3 * DAY)}),
        (kinds.CUSTOM_RESOURCE_DEFINITION, {}, {"Created At": ago(3 * DAY)}),
        (
            kinds.PRIORITY_CLASS,
            {"value": 5, "preemptionPolicy": "Never"},
            {"Value": 5, "Global-Default": False, "Age": "3d", "PreemptionPolicy": "Never"},
        ),
        (
            kinds.NODE,
            {
                "metadata": {
                    **METADATA,
                    "labels": {"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "gpu"},
                },
                "spec": {"unschedulable": True},
                "status": {
                    "conditions": [{"type": "Ready", "status": "Unknown"}],
                    "addresses": [{"type": "InternalIP", "address": "10.1.1.1"}],
                    "nodeInfo": {
                        "kubeletVersion": "v1",
                        "kernelVersion": "6.1",
                        "architecture": "arm64",
                    },
                },
            },
            {
                "Status": "NotReady,SchedulingDisabled",
                "Roles": "gpu,worker",
                "Age": "3d",
                "Version": "v1",
                "Internal-IP": "10.1.1.1",
                "External-IP": "<none>",
                "OS-Image": "<unknown>",
                "Kernel-Version": "6.1 (arm64)",
                "Container-Runtime": "<unknown>",
            },
        ),
        (
            kinds.SERVICE,
            {
                "spec": {
                    "type": "NodePort",
                    "clusterIPs": ["10.2.0.1"],
                    "ports": [
                        {"port": 80, "nodePort": 30080, "protocol": "TCP"},
                        {"port": 53, "protocol": "UDP"},
                    ],
                    "selector": {"b": "2", "a": "1"},
                }
            },
            {
                "Type": "NodePort",
                "Cluster-IP": "10.2.0.1",
                "External-IP": "<none>",
                "Port(s)": "80:30080/TCP,53/UDP",
                "Age": "3d",
                "Selector": "a=1,b=2",
            },
        ),
        (
            kinds.ENDPOINTS,
            {
                "subsets": [
                    {
                        "addresses": [{"ip": "10.1.0.1"}, {"ip": "10.1.0.2"}],
                        "notReadyAddresses": [{"ip": "10.1.0.3"}],
                        "ports": [{"port": 80}, {"port": 443}],
                    }
                ]
            },
            {"Endpoints": "10.1.0.1:80,10.1.0.2:80,10.1.0.1:443 + 1 more...", "Age": "3d"},
        ),
        (kinds.ENDPOINTS, {}, {"Endpoints": "<none>", "Age": "3d"}),
        (
            kinds.ENDPOINT_SLICE,
            {
                "addressType": "IPv4",
                "endpoints": [{"addresses": ["10.1.0.1"]}],
                "ports": [{"port": 80, "name": "web"}, {"name": "any"}],
            },
            {
                "AddressType": "IPv4",
                "Ports": "80,any",
                "Endpoints": "10.1.0.1",
                "Age": "3d",
            },
        ),
        (
            kinds.PERSISTENT_VOLUME,
            {
                "spec": {
                    "capacity": {"storage": "5Gi"},
                    "accessModes": ["ReadWriteMany", "ReadWriteOnce"],
                    "persistentVolumeReclaimPolicy": "Retain",
                    "claimRef": {"namespace": "team", "name": "data"},
                    "storageClassName": "fast",
                    "volumeMode": "Filesystem",
                },
                "status": {"phase": "Bound"},
            },
            {
                "Capacity": "5Gi",
                "Access Modes": "RWO,RWX",
                "Reclaim Policy": "Retain",
                "Status": "Bound",
                "Claim": "team/data",
                "StorageClass": "fast",
                "VolumeAttributesClass": "<unset>",
                "Reason": "",
                "Age": "3d",
                "VolumeMode": "Filesystem",
            },
        ),
        (
            kinds.PERSISTENT_VOLUME_CLAIM,
            {
                "spec": {"accessModes": ["ReadWriteOnce"]},
                "status": {"phase": "Pending", "capacity": {"storage": "5Gi"}},
            },
            {
                "Status": "Pending",
                "Volume": "",
                "Capacity": "",
                "Access Modes": "",
                "StorageClass": "",
                "VolumeAttributesClass": "<unset>",
                "Age": "3d",
                "VolumeMode": "<unset>",
            },
        ),
        (
            kinds.SERVICE,
            {"spec": {"type": "ClusterIP", "clusterIP": "None"}},
            {
                "Type": "ClusterIP",
                "Cluster-IP": "None",
                "External-IP": "<none>",
                "Port(s)": "<none>",
                "Age": "3d",
                "Selector": "<none>",
            },
        ),
        (
            kinds.DEPLOYMENT,
            {
                "spec": {"replicas": 3, "template": TEMPLATE, "selector": SELECTOR},
                "status": {"readyReplicas": 2, "updatedReplicas": 3, "availableReplicas": 1},
            },
            {"Ready": "2/3", "Up-to-date": 3, "Available": 1, "Age": "3d", **WIDE},
        ),
        (
            kinds.REPLICA_SET,
            {
                "spec": {"replicas": 3, "template": TEMPLATE, "selector": SELECTOR},
                "status": {"readyReplicas": 1, "replicas": 2},
            },
            {"Desired": 3, "Current": 2, "Ready": 1, "Age": "3d", **WIDE},
        ),
        (
            kinds.JOB,
            {
                "spec": {"completions": 4, "template": TEMPLATE, "selector": SELECTOR},
                "status": {"succeeded": 1, "startTime": ago(90)},
            },
            {"Status": "Running", "Completions": "1/4", "Duration": "90s", "Age": "3d", **WIDE},
        ),
        (
            kinds.JOB,
            {
                "spec": {"parallelism": 2, "template": TEMPLATE, "selector": SELECTOR},
                "status": {
                    "conditions": [{"type": "Failed", "status": "True"}],
                    "startTime": ago(200),
                    "completionTime": ago(100),
                },
            },
            {
                "Status": "Failed",
                "Completions": "0/1 of 2",
                "Duration": "100s",
                "Age": "3d",
                **WIDE,
            },
        ),
        (
            kinds.RESOURCE_QUOTA,
            {
                "status": {
                    "hard": {"pods": "5", "cpu": "4", "limits.cpu": "8"},
                    "used": {"cpu": "1", "limits.cpu": "2"},
                }
            },
            {"Request": "cpu: 1/4, pods: 0/5", "Limit": "limits.cpu: 2/8", "Age": "3d"},
        ),
        (
            kinds.ROLE_BINDING,
            {
                "roleRef": {"kind": "Role", "name": "r"},
                "subjects": [
                    {"kind": "User", "name": "u"},
                    {"kind": "Group", "name": "g"},
                    {"kind": "ServiceAccount", "name": "s", "namespace": "n"},
                ],
            },
            {
                "Role": "Role/r",
                "Age": "3d",
                "Users": "u",
                "Groups": "g",
                "ServiceAccounts": "n/s",
            },
        ),
    ],
)
def test_columns_of_the_built_in_kinds(kind: Kind, obj: Any, row: dict[str, Any]) -> None:
    assert shown(kind, {"metadata": METADATA, **obj}) == {"Name": "x", **row}


@pytest.mark.parametrize(
    ("event", "row"),
    [
        (
            {
                "type": "Warning",
                "reason": "Failed",
                "message": " no room\n",
                "involvedObject": {"kind": "Pod", "name": "p", "fieldPath": "spec"},
                "firstTimestamp": ago(600),
                "lastTimestamp": ago(5),
                "count": 3,
                "source": {"component": "posse", "host": "h"},
            },
            ["5s", "Warning", "Failed", "pod/p", "spec", "posse, h", "no room", "10m", 3, "e"],
        ),
        (
            {
                "eventTime": ago(60),
                "reportingComponent": "c",
                "involvedObject": {"kind": "Node"},
                "series": {"count": 9, "lastObservedTime": ago(2)},
            },
            ["2s", "", "", "node", "", "c", "", "60s", 9, "e"],
        ),
        ({}, ["<unknown>", "", "", "", "", "", "", "<unknown>", 1, "e"]),
    ],
)
def test_events(event: Any, row: list[Any]) -> None:
    obj = {"metadata": {"name": "e"}, **event}
    assert table(kinds.EVENT, None, [obj], NOW, "None")["rows"][0]["cells"] == row


def test_columns_of_a_definition() -> None:
    version = {
        "additionalPrinterColumns": [
            {"name": "State", "type": "string", "jsonPath": ".status.conditions[-1:].type"},
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
            {"name": "N", "type": "integer", "jsonPath": ".spec.n", "priority": 1},
            {"name": "Bad", "type": "string", "jsonPath": ".a[?(oops"},
            {"name": "Odd", "type": "integer", "jsonPath": ".metadata.name"},
            {"name": "Map", "type": "string", "jsonPath": ".spec"},
        ]
    }
    obj = {
        "metadata": METADATA,
        "spec": {"n": 3},
        "status": {"conditions": [{"type": "Created"}, {"type": "Running"}]},
    }
    columns = columns_of(version)
    assert shown(kinds.MPI_JOB, obj, columns) == {
        "Name": "x", "State": "Running", "Age": "3d", "N": 3, "Bad": None, "Odd": None,
        "Map": '{"n":3}',
    }  # fmt: skip
    assert [column.priority for column in columns] == [0, 0, 0, 1, 0, 0, 0]


def test_a_definition_without_columns_shows_the_age() -> None:
    assert shown(kinds.MPI_JOB, {"metadata": METADATA}, columns_of({})) == {
        "Name": "x",
        "Age": "3d",
    }


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".a.b", [1]), (".a['b']", [1]), ('.a["b"]', [1]), ("{.a.b}", [1]), ("$.a.b", [1]),
        (".l[0].v", ["x"]), (".l[-1].v", ["z"]), (".l[9]", []), (".l[1:].v", ["y", "z"]),
        (".l[-1:].t", ["C"]), (".l[0:2].v", ["x", "y"]), (".l[*].v", ["x", "y", "z"]),
        ('.l[?(@.t=="B")].v', ["y"]), (".l[?(@.t=='B')].v", ["y"]), (".l[?(@.n>1)].v", ["y", "z"]),
        (".l[?(@.absent)].v", []), ('.l[?(@.t!="B")].v', ["x", "z"]),
        (".missing.deep", []), (".a.b.c", []), (r".dotted\.key", [7]), ("['dotted.key']", [7]),
    ],
)  # fmt: skip
def test_json_paths(path: str, found: list[Any]) -> None:
    value = {
        "a": {"b": 1}, "dotted.key": 7,
        "l": [{"t": "A", "v": "x", "n": 1}, {"t": "B", "v": "y", "n": 2},
              {"t": "C", "v": "z", "n": 3}],
    }  # fmt: skip
    assert JsonPath(path).find(value) == found


@pytest.mark.parametrize("path", [".a[", ".a[?(@.b==)]x[", "a b[[", ".l[::-1]"])
def test_json_paths_that_cannot_be_read(path: str) -> None:
    with pytest.raises(JsonPathError):
        JsonPath(path)


@pytest.mark.parametrize(
    ("include", "expected"),
    [
        ("None", None),
        ("Object", {"metadata": {"name": "x"}, "data": {}}),
        (
            "Metadata",
            {
                "kind": "PartialObjectMetadata",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": {"name": "x"},
            },
        ),
    ],
)
def test_rows_carry_as_much_of_the_object_as_asked(include: str, expected: Any) -> None:
    obj = {"metadata": {"name": "x"}, "data": {}}
    made = table(kinds.CONFIG_MAP, None, [obj], NOW, include)
    assert (made["kind"], made["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert made["rows"][0]["object"] == expected


@pytest.mark.parametrize("kind", kinds.BUILT_IN, ids=lambda kind: kind.kind)
def test_the_barest_object_can_be_shown(kind: Kind) -> None:
    assert len(table(kind, None, [{"metadata": {}}, {}], NOW, "Metadata")["rows"]) == 2
