"""What kube-apiserver fills in when it reads an object of a core kind.

Clients see these values when they read back what they wrote, and later comparisons (is this the
spec that was applied?) rely on them. Filling in twice changes nothing. Quantities come out in the
form in which the server would write them.
"""

from __future__ import annotations

from collections.abc import Callable

from posse.objects import kinds
from posse.objects.defaulting import (
    access,
    budgets,
    claims,
    configs,
    nodes,
    pods,
    services,
    storage,
    workloads,
)
from posse.objects.defaulting.qos import qos_class
from posse.objects.defaulting.workloads import job_selector
from posse.objects.kinds import Kind
from posse.objects.raw import Raw

__all__ = ["default", "job_selector", "qos_class"]

_BY_KIND: dict[Kind, Callable[[Raw], None]] = {
    kinds.POD: pods.default_pod,
    kinds.SERVICE: services.default_service,
    kinds.JOB: workloads.default_job,
    kinds.DEPLOYMENT: workloads.default_deployment,
    kinds.REPLICA_SET: workloads.default_replica_set,
    kinds.NODE: nodes.default_node,
    kinds.NAMESPACE: configs.default_namespace,
    kinds.SECRET: configs.default_secret,
    kinds.PRIORITY_CLASS: configs.default_priority_class,
    kinds.LIMIT_RANGE: configs.default_limit_range,
    kinds.RESOURCE_QUOTA: configs.default_resource_quota,
    kinds.ROLE_BINDING: access.default_binding,
    kinds.CLUSTER_ROLE_BINDING: access.default_binding,
    kinds.POD_DISRUPTION_BUDGET: budgets.default_budget,
    kinds.ENDPOINTS: claims.default_endpoints,
    kinds.ENDPOINT_SLICE: claims.default_endpoint_slice,
    kinds.STORAGE_CLASS: storage.default_class,
    kinds.CSI_NODE: storage.default_csi_node,
    kinds.CSI_DRIVER: storage.default_driver,
    kinds.CSI_STORAGE_CAPACITY: storage.default_capacity,
    kinds.PERSISTENT_VOLUME: claims.default_volume,
    kinds.PERSISTENT_VOLUME_CLAIM: claims.default_claim,
}


def default(kind: Kind, obj: Raw) -> None:
    """Fill in, in place, what the object leaves open."""
    fill = _BY_KIND.get(kind)
    if fill is not None:
        fill(obj)
