"""The requests and objects of which conversations are made."""

from __future__ import annotations

from typing import Any

from tests.golden.talking import JSON, Request

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
