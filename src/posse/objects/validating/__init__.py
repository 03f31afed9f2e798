"""What kube-apiserver refuses, and in which words.

Objects are checked after they have been filled in (`posse.objects.defaulting`): a field that the
server would have set counts as missing here. Errors come in the server's order; of a mapping's
members, in the order of their keys.
"""

from __future__ import annotations

from collections.abc import Callable

from posse.objects import kinds
from posse.objects.errors import FieldError
from posse.objects.kinds import Kind
from posse.objects.raw import Raw
from posse.objects.validating import (
    access,
    budgets,
    claims,
    cluster,
    configs,
    endpoints,
    events,
    limits,
    pod_updates,
    pods,
    reported,
    services,
    storage,
    workloads,
)
from posse.objects.validating.metadata import (
    check_descriptions,
    check_metadata,
    check_metadata_update,
)
from posse.objects.validating.report import Report, same

__all__ = ["validate_create", "validate_status", "validate_update"]

_Check = Callable[[Report, Raw], None]
_CheckChange = Callable[[Report, Raw, Raw], None]

_NEW: dict[Kind, _Check] = {
    kinds.POD: pods.check_new_pod,
    kinds.JOB: workloads.check_job,
    kinds.DEPLOYMENT: workloads.check_deployment,
    kinds.REPLICA_SET: workloads.check_replica_set,
    kinds.SERVICE: services.check_service,
    kinds.NODE: cluster.check_node,
    kinds.NAMESPACE: cluster.check_namespace,
    kinds.PRIORITY_CLASS: cluster.check_priority_class,
    kinds.LEASE: cluster.check_lease,
    kinds.CONFIG_MAP: configs.check_config_map,
    kinds.SECRET: configs.check_secret,
    kinds.EVENT: events.check_event,
    kinds.LIMIT_RANGE: limits.check_limit_range,
    kinds.RESOURCE_QUOTA: limits.check_resource_quota,
    kinds.ROLE: access.check_role,
    kinds.CLUSTER_ROLE: access.check_cluster_role,
    kinds.ROLE_BINDING: access.check_role_binding,
    kinds.CLUSTER_ROLE_BINDING: access.check_cluster_role_binding,
    kinds.POD_DISRUPTION_BUDGET: budgets.check_budget,
    kinds.ENDPOINTS: endpoints.check_endpoints,
    kinds.ENDPOINT_SLICE: endpoints.check_endpoint_slice,
    kinds.PERSISTENT_VOLUME: claims.check_volume,
    kinds.PERSISTENT_VOLUME_CLAIM: claims.check_claim,
    kinds.STORAGE_CLASS: storage.check_class,
    kinds.CSI_NODE: storage.check_csi_node,
    kinds.CSI_DRIVER: storage.check_driver,
    kinds.CSI_STORAGE_CAPACITY: storage.check_capacity,
}
_CHANGED: dict[Kind, _Check] = {
    **_NEW,
    kinds.POD: pods.check_pod,
    kinds.NODE: lambda report, node: None,
    kinds.PRIORITY_CLASS: lambda report, priority_class: None,
}
_CHANGES: dict[Kind, _CheckChange] = {
    kinds.POD: pod_updates.check_pod_update,
    kinds.JOB: workloads.check_job_update,
    kinds.DEPLOYMENT: workloads.check_selector_update,
    kinds.REPLICA_SET: workloads.check_selector_update,
    kinds.SERVICE: services.check_service_update,
    kinds.NODE: cluster.check_node_update,
    kinds.PRIORITY_CLASS: cluster.check_priority_class_update,
    kinds.CONFIG_MAP: configs.check_config_map_update,
    kinds.SECRET: configs.check_secret_update,
    kinds.RESOURCE_QUOTA: limits.check_resource_quota_update,
    kinds.ROLE_BINDING: access.check_binding_update,
    kinds.CLUSTER_ROLE_BINDING: access.check_binding_update,
    kinds.ENDPOINT_SLICE: endpoints.check_endpoint_slice_update,
    kinds.PERSISTENT_VOLUME: claims.check_volume_update,
    kinds.PERSISTENT_VOLUME_CLAIM: claims.check_claim_update,
    kinds.STORAGE_CLASS: storage.check_class_update,
    kinds.CSI_NODE: storage.check_csi_node_update,
    kinds.CSI_DRIVER: storage.check_driver_update,
    kinds.CSI_STORAGE_CAPACITY: storage.check_capacity_update,
}
_REPORTED: dict[Kind, _CheckChange] = {
    kinds.POD: reported.check_pod_status,
    kinds.JOB: reported.check_job_status,
    kinds.DEPLOYMENT: reported.check_replicas,
    kinds.REPLICA_SET: reported.check_replicas,
    kinds.NODE: reported.check_node_status,
    kinds.POD_DISRUPTION_BUDGET: budgets.check_budget_status,
}


def validate_create(kind: Kind, obj: Raw) -> list[FieldError]:
    """What is wrong with a new object; metadata alone for kinds that are not built in."""
    report = Report()
    check_metadata(report, kind, obj)
    check = _NEW.get(kind)
    if check is not None:
        check(report, obj)
    return report.errors


def validate_update(kind: Kind, new: Raw, old: Raw) -> list[FieldError]:
    """What is wrong with a change. Parts that did not change are not judged again."""
    report = Report()
    check_metadata_update(report, new, old)
    check_descriptions(report, kind, new)
    if _same_but_for(new, old, ("metadata", "status", "apiVersion", "kind")) and kind != kinds.NODE:
        return report.errors
    check = _CHANGED.get(kind)
    if check is not None:
        check(report, new)
    check_change = _CHANGES.get(kind)
    if check_change is not None:
        check_change(report, new, old)
    return report.errors


def validate_status(kind: Kind, new: Raw, old: Raw) -> list[FieldError]:
    """What is wrong with a change of the status, and of the metadata that came with it."""
    report = Report()
    check_metadata_update(report, new, old)
    check_descriptions(report, kind, new)
    check = _REPORTED.get(kind)
    if check is not None:
        check(report, new, old)
    return report.errors


def _same_but_for(new: Raw, old: Raw, parts: tuple[str, ...]) -> bool:
    members = [name for name in {**new, **old} if name not in parts]
    return all(same(new.get(name), old.get(name)) for name in members)
