"""Classes of storage, drivers, and the claims that name a class or none."""

from __future__ import annotations

from typing import Any

from tests.golden.phrases import TABLE, delete, get, patch, post, put
from tests.golden.talking import Conversation, Request

CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
CSI_NODES = "/apis/storage.k8s.io/v1/csinodes"
DRIVERS = "/apis/storage.k8s.io/v1/csidrivers"
CAPACITIES = "/apis/storage.k8s.io/v1/namespaces/{ns}/csistoragecapacities"
CLAIMS = "/api/v1/namespaces/{ns}/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
VOLUME = {
    "capacity": {"storage": "1024Mi"},
    "accessModes": ["ReadWriteOnce"],
    "hostPath": {"path": "/d"},
}
BY_DEFAULT = {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}


def named(name: str, **fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}} | fields


def tried(label: str, path: str, **fields: Any) -> Request:
    return post(label, path, named("golden-x", **fields), dryRun="All")


def places(*terms: dict[str, list[str]]) -> list[dict[str, Any]]:
    return [
        {"matchLabelExpressions": [{"key": k, "values": v} for k, v in term.items()]}
        for term in terms
    ]


def driver(name: str = "example.com", **fields: Any) -> dict[str, Any]:
    return {"name": name, "nodeID": "n", "topologyKeys": ["zone"]} | fields


def claim(name: str, **spec: Any) -> dict[str, Any]:
    usual = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return named(name, spec=usual | spec)


STORAGE = (
    Conversation(
        "golden-storage",
        (
            tried("a class", CLASSES, provisioner="example.com/p"),
            tried(
                "a class with everything",
                CLASSES,
                provisioner="kubernetes.io/no-provisioner",
                parameters={"a": "b"},
                reclaimPolicy="Retain",
                mountOptions=["ro"],
                allowVolumeExpansion=True,
                volumeBindingMode="WaitForFirstConsumer",
                allowedTopologies=places({"zone": ["a", "b"]}),
            ),
            tried("of nobody", CLASSES),
            tried("of a bad name", CLASSES, provisioner="a/b/c"),
            tried("recycled", CLASSES, provisioner="p", reclaimPolicy="Recycle"),
            tried("bound some day", CLASSES, provisioner="p", volumeBindingMode="Someday"),
            tried("bound never", CLASSES, provisioner="p", volumeBindingMode=""),
            tried(
                "twice there", CLASSES, provisioner="p", allowedTopologies=places({"z": ["a", "a"]})
            ),
            tried(
                "there and there",
                CLASSES,
                provisioner="p",
                allowedTopologies=places({"z": ["a"]}, {"z": ["a"]}),
            ),
            tried("nowhere", CLASSES, provisioner="p", allowedTopologies=places({"": []})),
            tried("for nothing", CLASSES, provisioner="p", parameters={"": "x"}),
            post("kept", CLASSES, named("golden-kept", provisioner="p", parameters={"a": "b"})),
            patch("described", f"{CLASSES}/golden-kept", {"metadata": {"labels": {"a": "b"}}}),
            patch("of others", f"{CLASSES}/golden-kept", {"provisioner": "q", "parameters": None}),
            patch(
                "waiting",
                f"{CLASSES}/golden-kept",
                {"volumeBindingMode": "WaitForFirstConsumer", "reclaimPolicy": "Retain"},
            ),
            patch("larger", f"{CLASSES}/golden-kept", {"allowVolumeExpansion": True}),
            put(
                "overwritten",
                f"{CLASSES}/golden-kept",
                named("golden-kept", provisioner="p", parameters={"a": "b"}),
            ),
            get(
                "in a table",
                CLASSES,
                TABLE,
                includeObject="None",
                fieldSelector="metadata.name=golden-kept",
            ),
            post(
                "by default",
                CLASSES,
                {"metadata": {"name": "golden-default"} | BY_DEFAULT, "provisioner": "p"},
            ),
            get(
                "marked",
                CLASSES,
                TABLE,
                includeObject="None",
                fieldSelector="metadata.name=golden-default",
            ),
            delete("no default", f"{CLASSES}/golden-default"),
            delete("not kept", f"{CLASSES}/golden-kept"),
        ),
    ),
    Conversation(
        "golden-drivers",
        (
            tried("a node", CSI_NODES, spec={"drivers": [driver(allocatable={"count": 3})]}),
            tried("of no driver", CSI_NODES, spec={"drivers": []}),
            tried("of nothing", CSI_NODES),
            tried("twice", CSI_NODES, spec={"drivers": [driver(), driver()]}),
            tried(
                "of nonsense",
                CSI_NODES,
                spec={
                    "drivers": [
                        {"name": "", "nodeID": ""},
                        driver("a_b", allocatable={"count": -1}),
                        driver("x" * 64, topologyKeys=["", "z", "z"]),
                    ]
                },
            ),
            post("kept", CSI_NODES, named("golden-node", spec={"drivers": [driver()]})),
            put("unseen", f"{CSI_NODES}/golden-node", named("golden-node", spec={"drivers": []})),
            patch(
                "counted",
                f"{CSI_NODES}/golden-node",
                {"spec": {"drivers": [{"name": "example.com", "allocatable": {"count": 2}}]}},
                "strategic",
            ),
            patch(
                "moved",
                f"{CSI_NODES}/golden-node",
                {"spec": {"drivers": [{"name": "example.com", "nodeID": "m"}]}},
                "strategic",
            ),
            get(
                "nodes in a table",
                CSI_NODES,
                TABLE,
                includeObject="None",
                fieldSelector="metadata.name=golden-node",
            ),
            delete("not kept", f"{CSI_NODES}/golden-node"),
            tried("a driver", DRIVERS, spec={}),
            tried("a driver of nothing", DRIVERS),
            tried(
                "a wrong driver",
                DRIVERS,
                spec={
                    "fsGroupPolicy": "Some",
                    "volumeLifecycleModes": ["Forever"],
                    "nodeAllocatableUpdatePeriodSeconds": 9,
                    "serviceAccountTokenInSecrets": True,
                },
            ),
            tried(
                "tokens",
                DRIVERS,
                spec={
                    "tokenRequests": [
                        {"audience": "a", "expirationSeconds": 10},
                        {"audience": "a"},
                        {"audience": "", "expirationSeconds": 4294967297},
                    ]
                },
            ),
            tried("a warning", DRIVERS, spec={"tokenRequests": [{"audience": "a"}]}),
            post("driver", DRIVERS, named("golden.example.com", spec={"storageCapacity": True})),
            patch("changed", f"{DRIVERS}/golden.example.com", {"spec": {"storageCapacity": False}}),
            patch(
                "described", f"{DRIVERS}/golden.example.com", {"metadata": {"labels": {"a": "b"}}}
            ),
            patch(
                "fixed",
                f"{DRIVERS}/golden.example.com",
                {"spec": {"attachRequired": False, "volumeLifecycleModes": ["Ephemeral"]}},
            ),
            get(
                "drivers in a table",
                DRIVERS,
                TABLE,
                includeObject="None",
                fieldSelector="metadata.name=golden.example.com",
            ),
            delete("without it", f"{DRIVERS}/golden.example.com"),
            post(
                "room",
                CAPACITIES,
                named(
                    "r",
                    storageClassName="fast",
                    capacity="1024Mi",
                    maximumVolumeSize="0.5Gi",
                    nodeTopology={"matchLabels": {"zone": "a"}},
                ),
            ),
            post("no room", CAPACITIES, named("n", storageClassName="Bad_Name", capacity="-1")),
            post("no class", CAPACITIES, named("n")),
            put("room unseen", f"{CAPACITIES}/r", named("r", storageClassName="fast")),
            patch("less room", f"{CAPACITIES}/r", {"capacity": "1Gi"}),
            patch(
                "room elsewhere",
                f"{CAPACITIES}/r",
                {"nodeTopology": {"matchLabels": {"zone": "b"}}, "storageClassName": "slow"},
            ),
            delete("no room left", f"{CAPACITIES}/r"),
        ),
    ),
    Conversation(
        "golden-claims",
        (
            tried("a claim", CLAIMS, spec=claim("x")["spec"]),
            tried("of a class", CLAIMS, spec=claim("x", storageClassName="fast")["spec"]),
            tried("of no class", CLAIMS, spec=claim("x", storageClassName="")["spec"]),
            tried("for nothing", CLAIMS, spec={}),
            tried("of no mode", CLAIMS, spec=claim("x", accessModes=["Mine"])["spec"]),
            tried(
                "alone and together",
                CLAIMS,
                spec=claim("x", accessModes=["ReadWriteOncePod", "ReadWriteMany"])["spec"],
            ),
            tried(
                "of no size",
                CLAIMS,
                spec=claim("x", resources={"requests": {"storage": "0"}})["spec"],
            ),
            tried("a volume", VOLUMES, spec=VOLUME),
            tried(
                "a local one", VOLUMES, spec=VOLUME | {"hostPath": None, "local": {"path": "/d"}}
            ),
            tried("nothing", VOLUMES, spec={}),
            tried("two", VOLUMES, spec=VOLUME | {"nfs": {"server": "s", "path": "/p"}}),
            post(
                "by default",
                CLASSES,
                {
                    "metadata": {"name": "golden-first"} | BY_DEFAULT,
                    "provisioner": "kubernetes.io/no-provisioner",
                },
            ),
            tried("a claim by default", CLAIMS, spec=claim("x")["spec"]),
            tried("of no class still", CLAIMS, spec=claim("x", storageClassName="")["spec"]),
            delete("no default", f"{CLASSES}/golden-first"),
        ),
    ),
)
