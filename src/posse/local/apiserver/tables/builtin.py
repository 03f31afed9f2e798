"""The columns of the built-in kinds, as kube-apiserver prints them."""

from __future__ import annotations

from posse.local.apiserver.tables import classes, cluster, storage, workloads
from posse.local.apiserver.tables.layout import Layout
from posse.local.apiserver.tables.pods import PODS
from posse.local.apiserver.tables.reading import CREATED_AT, NAME
from posse.objects import kinds

LAYOUTS: dict[tuple[str, str], Layout] = {
    (kind.group, kind.kind): layout
    for kind, layout in {
        kinds.POD: PODS,
        kinds.NODE: cluster.NODES,
        kinds.NAMESPACE: cluster.NAMESPACES,
        kinds.SERVICE: cluster.SERVICES,
        kinds.CONFIG_MAP: cluster.CONFIG_MAPS,
        kinds.SECRET: cluster.SECRETS,
        kinds.SERVICE_ACCOUNT: cluster.SERVICE_ACCOUNTS,
        kinds.EVENT: cluster.EVENTS,
        kinds.RESOURCE_QUOTA: cluster.RESOURCE_QUOTAS,
        kinds.PRIORITY_CLASS: cluster.PRIORITY_CLASSES,
        kinds.POD_DISRUPTION_BUDGET: workloads.BUDGETS,
        kinds.LEASE: cluster.LEASES,
        kinds.ROLE_BINDING: cluster.BINDINGS,
        kinds.CLUSTER_ROLE_BINDING: cluster.BINDINGS,
        kinds.ENDPOINTS: storage.ENDPOINTS,
        kinds.ENDPOINT_SLICE: storage.ENDPOINT_SLICES,
        kinds.PERSISTENT_VOLUME: storage.VOLUMES,
        kinds.PERSISTENT_VOLUME_CLAIM: storage.CLAIMS,
        kinds.STORAGE_CLASS: classes.CLASSES,
        kinds.CSI_NODE: classes.CSI_NODES,
        kinds.CSI_DRIVER: classes.DRIVERS,
        kinds.JOB: workloads.JOBS,
        kinds.DEPLOYMENT: workloads.DEPLOYMENTS,
        kinds.REPLICA_SET: workloads.REPLICA_SETS,
    }.items()
}


def plain() -> Layout:
    """Kinds without columns of their own: limit ranges, roles, definitions."""
    return Layout((NAME, CREATED_AT))
