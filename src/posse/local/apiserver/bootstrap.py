"""The objects a cluster has before anybody made any."""

from __future__ import annotations

from typing import Any

from posse.local.apiserver.cluster import Cluster
from posse.local.apiserver.strategies.namespaces import default_account
from posse.local.apiserver.strategies.services import KUBERNETES_ADDRESS
from posse.local.apiserver.writing import make
from posse.objects.kinds import NAMESPACE, PRIORITY_CLASS, SERVICE, SERVICE_ACCOUNT

_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
_PRIORITIES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_USED_FOR = {
    "system-cluster-critical": "Used for system critical pods that must run in the cluster, but can"
    " be moved to another node if necessary.",
    "system-node-critical": "Used for system critical pods that must not be moved from their"
    " current node.",
}


async def bootstrap(cluster: Cluster) -> None:
    """Idempotent, so that a store in which something of it is missing is made whole again."""
    last = None
    for name in _NAMESPACES:
        last = make(cluster, NAMESPACE, {"metadata": {"name": name}}) or last
    for stored in list(cluster.store.all_latest(NAMESPACE.qualified)):
        if stored.obj["metadata"].get("deletionTimestamp") is None:
            last = make(cluster, SERVICE_ACCOUNT, default_account(stored.key[1])) or last
    for name, value in _PRIORITIES.items():
        described: dict[str, Any] = {
            "metadata": {"name": name},
            "value": value,
            "description": _USED_FOR[name],
        }
        last = make(cluster, PRIORITY_CLASS, described) or last
    last = make(cluster, SERVICE, _kubernetes()) or last
    await cluster.durable(last)


def _kubernetes() -> dict[str, Any]:
    return {
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "clusterIP": KUBERNETES_ADDRESS,
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}],
        },
    }
