"""What is asked of a real API server and of the embedded one: the table behind the recordings."""

from __future__ import annotations

from typing import Any

from tests.golden.talking import JSON, Conversation, Request

PODS = "/api/v1/namespaces/{ns}/pods"
MAPS = "/api/v1/namespaces/{ns}/configmaps"
SERVICES = "/api/v1/namespaces/{ns}/services"
JOBS = "/apis/batch/v1/namespaces/{ns}/jobs"
DEPLOYMENTS = "/apis/apps/v1/namespaces/{ns}/deployments"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/{ns}/podgroups"
QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
MPI_JOBS = "/apis/kubeflow.org/v2beta1/namespaces/{ns}/mpijobs"
TF_JOBS = "/apis/kubeflow.org/v1/namespaces/{ns}/tfjobs"

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PATCHES = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}


def get(label: str, path: str, accept: str = JSON, **query: str) -> Request:
    return Request(label, "GET", path, query=query, accept=accept)


def post(label: str, path: str, body: Any, content_type: str = JSON, **query: str) -> Request:
    return Request(label, "POST", path, body, query, content_type)


def put(label: str, path: str, body: Any, **query: str) -> Request:
    return Request(label, "PUT", path, body, query)


def delete(label: str, path: str, body: Any = None, **query: str) -> Request:
    return Request(label, "DELETE", path, body, query)


def patch(label: str, path: str, body: Any, how: str = "merge", **query: str) -> Request:
    return Request(label, "PATCH", path, body, query, PATCHES.get(how, how))


def watch(label: str, path: str, **query: str) -> Request:
    asked = {"watch": "true", "timeoutSeconds": "1"} | query
    return Request(label, "GET", path, query=asked)


def pod(name: str = "p", container: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    main = {"name": "main", "image": "busybox"} | (container or {})
    # Accounts' tokens are mounted by a real cluster alone.
    return {
        "metadata": {"name": name},
        "spec": {"automountServiceAccountToken": False, "containers": [main]} | spec,
    }


def config_map(name: str = "c", labels: dict[str, str] | None = None, **data: str) -> Any:
    metadata = {"name": name} | ({"labels": labels} if labels else {})
    return {"metadata": metadata, "data": data}


def asking(**resources: Any) -> dict[str, Any]:
    return {"resources": resources}


def group(name: str = "g", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": spec,
    }


def replicas(count: Any, container: str) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": container, "image": "i", "bogus": 1}]}}
    return {"replicas": count, "template": template}


def mpi_job(name: str = "m", launcher: Any = 1, **spec: Any) -> dict[str, Any]:
    roles = {"Launcher": replicas(launcher, "mpi"), "Worker": replicas(2, "mpi")}
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": name},
        "spec": {"mpiReplicaSpecs": roles} | spec,
    }


def tf_job(version: str = "v1", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"kubeflow.org/{version}",
        "kind": "TFJob",
        "metadata": {"name": "t"},
        "spec": {"tfReplicaSpecs": {"Worker": replicas(1, "tensorflow")}} | spec,
    }


TEMPLATE = {
    "metadata": {"labels": {"app": "a"}},
    "spec": {"containers": [{"name": "main", "image": "i"}]},
}
APPLIED = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}}

CONVERSATIONS = (
    Conversation(
        "golden-pods",
        (
            post("plain", PODS, pod()),
            post("again", PODS, pod()),
            post("gpus in limits", PODS, pod("l", asking(limits={"nvidia.com/gpu": 2}))),
            post(
                "amounts as people write them",
                PODS,
                pod("a", asking(requests={"cpu": 0.5, "memory": "1.5Gi"}, limits={"cpu": "1"})),
            ),
            post(
                "guaranteed",
                PODS,
                pod("q", asking(limits={"cpu": "1", "memory": "1Gi"}), restartPolicy="Never"),
            ),
            post("generated", PODS, {"metadata": {"generateName": "g-"}, "spec": pod()["spec"]}),
            post("status is not the user's", PODS, pod("s") | {"status": {"phase": "Failed"}}),
            post(
                "init containers, tolerations and ports",
                PODS,
                pod(
                    "i",
                    {"ports": [{"containerPort": 80}], "livenessProbe": {"exec": {"command": []}}},
                    initContainers=[{"name": "x", "image": "i:v1", "restartPolicy": "Always"}],
                    tolerations=[{"key": "k", "operator": "Exists"}],
                    schedulerName="posse",
                ),
            ),
            post("no containers", PODS, {"metadata": {"name": "n"}, "spec": {"containers": []}}),
            post("no spec", PODS, {"metadata": {"name": "n"}}),
            post("a bad name", PODS, pod("Bad_Name")),
            post("no name", PODS, {"metadata": {}, "spec": pod()["spec"]}),
            post("half a GPU", PODS, pod("h", asking(limits={"nvidia.com/gpu": "500m"}))),
            post("unequal GPUs", PODS, pod("u", asking(requests={"nvidia.com/gpu": 1}))),
            post(
                "more than its limit",
                PODS,
                pod("m", asking(requests={"cpu": "2"}, limits={"cpu": "1"})),
            ),
            post("negative", PODS, pod("n", asking(requests={"cpu": "-1"}))),
            post("no amount", PODS, pod("n", asking(requests={"cpu": "much"}))),
            post("two of one name", PODS, pod("t") | {"spec": {"containers": [{"name": "a"}] * 2}}),
            post("an unknown policy", PODS, pod("o", restartPolicy="Sometimes")),
            post("another namespace", PODS, {"metadata": {"name": "x", "namespace": "other"}}),
            post("no namespace", "/api/v1/namespaces/none/pods", pod()),
            post("of another kind", PODS, pod() | {"kind": "Node", "apiVersion": "v1"}),
            post("strictly", PODS, pod("s2", odd=1), fieldValidation="Strict"),
            post("with a warning", PODS, pod("w", odd=1)),
            post("as if", PODS, pod("dry"), dryRun="All"),
            get("as if not", f"{PODS}/dry"),
        ),
    ),
    Conversation(
        "golden-updates",
        (
            post("pod", PODS, pod()),
            patch("nothing", f"{PODS}/p", {"metadata": {"annotations": None}}),
            patch("annotated", f"{PODS}/p", {"metadata": {"annotations": {"a": "1"}}}),
            patch("immutable", f"{PODS}/p", {"spec": {"schedulerName": "other"}}),
            patch(
                "image",
                f"{PODS}/p",
                {"spec": {"containers": [{"name": "main", "image": "new"}]}},
                "strategic",
            ),
            patch("status by the way", f"{PODS}/p", {"status": {"phase": "Running"}}),
            patch(
                "condition",
                f"{PODS}/p/status",
                {"status": {"conditions": [{"type": "PodScheduled", "status": "False"}]}},
                "strategic",
            ),
            patch("another uid", f"{PODS}/p", {"metadata": {"uid": "x"}}),
            patch(
                "a stale version", f"{PODS}/p", {"metadata": {"resourceVersion": "1", "labels": {}}}
            ),
            post("map", MAPS, config_map(a="1")),
            put("replaced", f"{MAPS}/c", config_map(a="2")),
            put(
                "stale",
                f"{MAPS}/c",
                {
                    "metadata": {"name": "c", "resourceVersion": "{map.metadata.resourceVersion}"},
                    "data": {"a": "3"},
                },
            ),
            put("the same", f"{MAPS}/c", config_map(a="2")),
            put("another name", f"{MAPS}/c", config_map("d")),
            put("missing", f"{MAPS}/missing", config_map("missing")),
            patch("json", f"{MAPS}/c", [{"op": "add", "path": "/data/b", "value": "1"}], "json"),
            patch(
                "json test",
                f"{MAPS}/c",
                [{"op": "test", "path": "/data/b", "value": "2"}],
                "json",
            ),
            patch("json nowhere", f"{MAPS}/c", [{"op": "remove", "path": "/data/z"}], "json"),
            patch("a number", f"{MAPS}/c", {"data": {"a": 5}}),
            patch("of nothing", f"{MAPS}/none", {"data": {}}),
            patch("in no format", f"{MAPS}/c", {}, "application/unknown"),
            patch(
                "applied",
                f"{MAPS}/applied",
                APPLIED | {"data": {"a": "1"}},
                "apply",
                fieldManager="one",
            ),
            patch(
                "in conflict",
                f"{MAPS}/applied",
                APPLIED | {"data": {"a": "2"}},
                "apply",
                fieldManager="two",
            ),
            patch(
                "forced",
                f"{MAPS}/applied",
                APPLIED | {"data": {"a": "2"}},
                "apply",
                fieldManager="two",
                force="true",
            ),
            patch("by nobody", f"{MAPS}/applied", APPLIED, "apply"),
        ),
    ),
    Conversation(
        "golden-binding",
        (
            post("pod", PODS, pod(schedulerName="posse")),
            post(
                "to another uid",
                f"{PODS}/p/binding",
                {"metadata": {"name": "p", "uid": "other"}, "target": {"name": "n1"}},
            ),
            post(
                "of another version",
                f"{PODS}/p/binding",
                {"metadata": {"name": "p", "resourceVersion": "1"}, "target": {"name": "n1"}},
            ),
            post(
                "bound",
                f"{PODS}/p/binding",
                {
                    "metadata": {
                        "name": "p",
                        "uid": "{pod.metadata.uid}",
                        "resourceVersion": "{pod.metadata.resourceVersion}",
                    },
                    "target": {"kind": "Node", "name": "n1"},
                },
            ),
            get("with a node", f"{PODS}/p"),
            post(
                "bound again",
                f"{PODS}/p/binding",
                {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n2"}},
            ),
            post("no target", f"{PODS}/p/binding", {"metadata": {"name": "p"}}),
            post(
                "no pod",
                f"{PODS}/none/binding",
                {"metadata": {"name": "none"}, "target": {"name": "n"}},
            ),
            post("gated", PODS, pod("gated", schedulingGates=[{"name": "wait"}])),
            post(
                "behind a gate",
                f"{PODS}/gated/binding",
                {"metadata": {"name": "gated"}, "target": {"name": "n1"}},
            ),
            patch("opened", f"{PODS}/gated", {"spec": {"schedulingGates": []}}),
            delete("another uid", f"{PODS}/p", {"preconditions": {"uid": "other"}}),
            post("evicted", f"{PODS}/p/eviction", {"metadata": {"name": "p"}}),
            get("on its way out", f"{PODS}/p", "application/json"),
            delete("at once", f"{PODS}/p", {"gracePeriodSeconds": 0}),
            get("gone", f"{PODS}/p"),
            delete("without a node", f"{PODS}/gated"),
        ),
    ),
    Conversation(
        "golden-lists",
        (
            *(
                post(f"c{n}", MAPS, config_map(f"c{n}", {"n": str(n), "odd": str(n % 2)}))
                for n in range(4)
            ),
            get("by label", MAPS, labelSelector="odd=1"),
            get("by a set", MAPS, labelSelector="n in (0,3),odd!=1"),
            get("by name", MAPS, fieldSelector="metadata.name=c2"),
            get("by nothing known", MAPS, fieldSelector="data.a=1"),
            get("by nonsense", MAPS, labelSelector="a b"),
            get("no such version", MAPS, resourceVersion="abc"),
            get("a page", MAPS, limit="2", labelSelector="odd"),
            watch(
                "what came after",
                MAPS,
                resourceVersion="{c1.metadata.resourceVersion}",
                labelSelector="odd",
            ),
            watch("of nonsense", MAPS, resourceVersion="abc"),
            delete("some", MAPS, labelSelector="odd=1"),
            get("the rest", MAPS, labelSelector="odd"),
            post("pod", PODS, pod()),
            get("pods of no node", PODS, fieldSelector="spec.nodeName=,status.phase=Pending"),
            get("pods by nonsense", PODS, fieldSelector="spec.image=x"),
            post("held", MAPS, {"metadata": {"name": "held", "finalizers": ["example.com/hold"]}}),
            delete("marked", f"{MAPS}/held"),
            patch("let go", f"{MAPS}/held", {"metadata": {"finalizers": []}}),
            get("let go and gone", f"{MAPS}/held"),
        ),
    ),
    Conversation(
        "golden-kinds",
        (
            post("job", JOBS, {"metadata": {"name": "j"}, "spec": {"template": TEMPLATE}}),
            post(
                "job that ends",
                JOBS,
                {
                    "metadata": {"name": "j"},
                    "spec": {
                        "suspend": True,
                        "template": {
                            "spec": {
                                "restartPolicy": "Never",
                                "containers": [{"name": "main", "image": "i"}],
                            }
                        },
                    },
                },
                dryRun="All",
            ),
            post(
                "deployment",
                DEPLOYMENTS,
                {
                    "metadata": {"name": "d"},
                    "spec": {"selector": {"matchLabels": {"app": "a"}}, "template": TEMPLATE},
                },
                dryRun="All",
            ),
            post(
                "deployment of others",
                DEPLOYMENTS,
                {
                    "metadata": {"name": "e"},
                    "spec": {"selector": {"matchLabels": {"app": "b"}}, "template": TEMPLATE},
                },
            ),
            post(
                "service", SERVICES, {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}
            ),
            post(
                "headless",
                SERVICES,
                {"metadata": {"name": "h"}, "spec": {"clusterIP": "None", "selector": {"a": "b"}}},
            ),
            post(
                "on every node",
                SERVICES,
                {"metadata": {"name": "n"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}},
            ),
            post("no ports", SERVICES, {"metadata": {"name": "x"}, "spec": {}}),
            post(
                "lease",
                LEASES,
                {
                    "metadata": {"name": "l"},
                    "spec": {
                        "holderIdentity": "me",
                        "leaseDurationSeconds": 15,
                        "renewTime": "2024-01-01T00:00:00.000001Z",
                    },
                },
            ),
            put("lease of nobody", f"{LEASES}/l", {"metadata": {"name": "l"}, "spec": {}}),
            post(
                "lease of no time",
                LEASES,
                {"metadata": {"name": "l2"}, "spec": {"leaseDurationSeconds": 0}},
            ),
            post("class", CLASSES, {"metadata": {"name": "golden-high"}, "value": 1000}),
            post("class too high", CLASSES, {"metadata": {"name": "top"}, "value": 2000000000}),
            patch("class changed", f"{CLASSES}/golden-high", {"value": 5}),
            delete("class removed", f"{CLASSES}/golden-high"),
            post("no such class", PODS, pod("c", priorityClassName="no-such-class")),
            post(
                "system class",
                PODS,
                pod("c", priorityClassName="system-node-critical"),
                dryRun="All",
            ),
        ),
    ),
    Conversation(
        "golden-custom",
        (
            post("group", GROUPS, group(minMember=2, minResources={"cpu": "2"}, queue="default")),
            post("group of nothing said", GROUPS, group("bare")),
            post("group of too few", GROUPS, group("few", minMember=-1)),
            post("group of words", GROUPS, group("words", minMember="two")),
            post("group with more", GROUPS, group("more", minMember=1, odd=1)),
            post("group strictly", GROUPS, group("s", odd=1), fieldValidation="Strict"),
            patch("status by the way", f"{GROUPS}/g", {"status": {"phase": "Running"}}),
            patch("status", f"{GROUPS}/g/status", {"status": {"phase": "Inqueue"}}),
            patch("spec by status", f"{GROUPS}/g/status", {"spec": {"minMember": 9}}),
            patch("spec", f"{GROUPS}/g", {"spec": {"minMember": 3}}),
            patch("strategic", f"{GROUPS}/g", {"spec": {"minMember": 3}}, "strategic"),
            get("listed", GROUPS),
            get("as a table", GROUPS, TABLE),
            post("queue", QUEUES, {"metadata": {"name": "golden"}, "spec": {"weight": 2}}),
            get("queue as a table", f"{QUEUES}/golden", TABLE),
            delete("queue removed", f"{QUEUES}/golden"),
            post("mpi", MPI_JOBS, mpi_job(slotsPerWorker=2)),
            post("mpi of two launchers", MPI_JOBS, mpi_job("two", launcher=2)),
            post("mpi of words", MPI_JOBS, mpi_job("words", launcher="one")),
            post("mpi without roles", MPI_JOBS, mpi_job("none") | {"spec": {}}),
            post(
                "mpi of another policy",
                MPI_JOBS,
                mpi_job("p", runPolicy={"cleanPodPolicy": "Some"}),
            ),
            get("mpi as a table", MPI_JOBS, TABLE),
            post("tf", TF_JOBS, tf_job()),
            post("tf of another version", TF_JOBS, tf_job("v1beta2")),
            get("tf in its old version", TF_JOBS.replace("/v1/", "/v1beta1/") + "/t"),
            delete("tf removed", f"{TF_JOBS}/t"),
            get("version of a group", "/apis/kubeflow.org/v2beta1"),
            get("no such version", "/apis/kubeflow.org/v9"),
            get("no such kind", "/apis/kubeflow.org/v1/namespaces/{ns}/cats"),
        ),
    ),
    Conversation(
        "golden-requests",
        (
            post("no JSON", MAPS, "{"),
            post("a list", MAPS, []),
            post("nothing", MAPS, ""),
            post("yaml", MAPS, "metadata: {name: y}\ndata: {a: '1'}\n", "application/yaml"),
            post("of no format", MAPS, "x", "text/plain"),
            get("in no format", MAPS, "text/plain"),
            post("doubled", MAPS, '{"metadata":{"name":"d"},"data":{"a":"1","a":"2"}}'),
            post("not a number", PODS, '{"metadata":{"name":"n","generation":1e999}}'),
            Request("no method", "PATCH", MAPS, {}, content_type=PATCHES["merge"]),
            get("nowhere", "/nowhere"),
            get("no resource", "/api/v1/namespaces/{ns}/cats"),
            get("no subresource", f"{MAPS}/c/tail"),
            get("core", "/api"),
            delete("nothing there", f"{MAPS}/none"),
            post(
                "too many annotations",
                MAPS,
                {"metadata": {"name": "a", "annotations": {"a": "x" * 262145}}},
            ),
            post("a long label", MAPS, config_map("l", {"a": "x" * 64})),
        ),
    ),
)
