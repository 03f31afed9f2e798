"""Classes of storage, and what drivers say of themselves, of nodes and of the room they have."""

from __future__ import annotations

from typing import Any

from posse.objects import names
from posse.objects.quantity import QuantityError, milli_units
from posse.objects.raw import Raw, mapping, mappings, number, strings, text, texts
from posse.objects.validating.placement import check_selector
from posse.objects.validating.report import IMMUTABLE, NEGATIVE, Report, same

_RECLAIM = ("Delete", "Retain")
_BINDING = ("Immediate", "WaitForFirstConsumer")
_GROUP_POLICIES = ("File", "None", "ReadWriteOnceWithFSType")
_LIFECYCLES = ("Persistent", "Ephemeral")
_PARAMETERS = 512
_PARAMETERS_SIZE = 256 * 1024
_NODE_ID = 256
_DRIVER_NAME = 63
_SHORTEST_TOKEN, _LONGEST_TOKEN = 600, 1 << 32
_SHORTEST_PERIOD = 10


def check_class(report: Report, storage_class: Raw) -> None:
    provisioner = text(storage_class, "provisioner")
    if provisioner:
        problems = names.qualified_name_problems(provisioner.lower())
        report.invalid("provisioner", provisioner.lower(), *problems)
    else:
        report.required("provisioner")
    _check_parameters(report, strings(storage_class, "parameters"))
    policy, mode = storage_class.get("reclaimPolicy"), storage_class.get("volumeBindingMode")
    if policy and policy not in _RECLAIM:
        report.unsupported("reclaimPolicy", policy, _RECLAIM)
    if mode not in _BINDING:
        report.unsupported("volumeBindingMode", mode, _BINDING)
    _check_topologies(report, mappings(storage_class, "allowedTopologies"))


def check_class_update(report: Report, new: Raw, old: Raw) -> None:
    for name in ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"):
        report.unchanged(name, new.get(name), old.get(name))


def _check_parameters(report: Report, parameters: dict[str, str]) -> None:
    if len(parameters) > _PARAMETERS:
        report.too_long("parameters", _PARAMETERS)
        return
    if "" in parameters:
        report.invalid("parameters", "", "field can not be empty.")
    size = sum(len(key.encode()) + len(value.encode()) for key, value in parameters.items())
    if size > _PARAMETERS_SIZE:
        report.too_long("parameters", _PARAMETERS_SIZE)


def _check_topologies(report: Report, terms: list[Raw]) -> None:
    seen: list[dict[str, list[str]]] = []
    for index, term in enumerate(terms):
        path = f"allowedTopologies[{index}].matchLabelExpressions"
        places: dict[str, list[str]] = {}
        for position, wanted in enumerate(mappings(term, "matchLabelExpressions")):
            _check_place(report, wanted, f"{path}[{position}]", places)
        if places in seen:
            report.duplicate(path, "")
        seen.append(places)


def _check_place(report: Report, wanted: Raw, field: str, places: dict[str, list[str]]) -> None:
    key, values = text(wanted, "key"), texts(wanted, "values")
    if not values:
        report.required(f"{field}.values")
    for index, value in enumerate(values):
        if value in values[:index]:
            report.duplicate(f"{field}.values[{index}]", value)
    report.invalid(f"{field}.key", key, *names.qualified_name_problems(key))
    if key in places:
        report.duplicate(f"{field}.key", key)
    places[key] = sorted(dict.fromkeys(values))


def check_csi_node(report: Report, node: Raw) -> None:
    seen: dict[str, None] = {}
    for index, driver in enumerate(mappings(node, "spec", "drivers")):
        field, name = f"spec.drivers[{index}]", text(driver, "name")
        _check_driver_name(report, name, f"{field}.name")
        _check_node_id(report, text(driver, "nodeID"), f"{field}.nodeID")
        count = number(mapping(driver, "allocatable"), "count")
        report.not_negative(f"{field}.allocatable.count", count)
        if name in seen:
            report.duplicate(f"{field}.name", name)
        seen[name] = None
        _check_topology_keys(report, texts(driver, "topologyKeys"), field)


def check_csi_node_update(report: Report, new: Raw, old: Raw) -> None:
    """A driver that is there may say another number of attachments, and nothing else."""
    known = {text(one, "name"): one for one in mappings(old, "spec", "drivers")}
    for driver in mappings(new, "spec", "drivers"):
        was = known.get(text(driver, "name"))
        if was is None:
            continue
        after, before = ({**one, "allocatable": None} for one in (driver, was))
        if not same(after, before):
            report.invalid("spec.drivers", _driver_shown(after), IMMUTABLE)


def _driver_shown(driver: Raw) -> Raw:
    return {
        "Name": text(driver, "name"),
        "NodeID": text(driver, "nodeID"),
        "TopologyKeys": driver.get("topologyKeys"),
        "Allocatable": None,
    }


def _check_driver_name(report: Report, name: str, field: str) -> None:
    if not name:
        report.required(field)
        return
    if len(name.encode()) > _DRIVER_NAME:
        report.too_long(field, _DRIVER_NAME)
    report.invalid(field, name, *names.dns_subdomain_problems(name.lower()))


def _check_node_id(report: Report, node_id: str, field: str) -> None:
    if not node_id:
        report.required(field)
    if len(node_id.encode()) > _NODE_ID:
        report.invalid(field, node_id, f"must be {_NODE_ID} characters or less")


def _check_topology_keys(report: Report, keys: list[str], field: str) -> None:
    for index, key in enumerate(keys):
        if not key:
            report.required(field)
        if key in keys[:index]:
            report.duplicate(field, key)
        report.invalid(field, key, *names.qualified_name_problems(key))


def check_driver(report: Report, driver: Raw) -> None:
    spec = mapping(driver, "spec")
    policy = spec.get("fsGroupPolicy")
    if policy is not None and policy not in _GROUP_POLICIES:
        report.unsupported("spec.fsGroupPolicy", policy, _GROUP_POLICIES)
    _check_tokens(report, mappings(spec, "tokenRequests"))
    for mode in texts(spec, "volumeLifecycleModes"):
        if mode not in _LIFECYCLES:
            report.unsupported("spec.volumeLifecycleModes", mode, _LIFECYCLES)
    period = number(spec, "nodeAllocatableUpdatePeriodSeconds")
    if period is not None and period < _SHORTEST_PERIOD:
        detail = "must be greater than or equal to 10 seconds"
        report.invalid("spec.nodeAllocatableUpdatePeriodSeconds", period, detail)
    in_secrets = spec.get("serviceAccountTokenInSecrets")
    if in_secrets is not None and not mappings(spec, "tokenRequests"):
        detail = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
        report.invalid("spec.serviceAccountTokenInSecrets", in_secrets, detail)


def check_driver_update(report: Report, new: Raw, old: Raw) -> None:
    after, before = mapping(new, "spec"), mapping(old, "spec")
    fixed = (("attachRequired", "attachedRequired"), ("volumeLifecycleModes",) * 2)
    for name, field in fixed:
        report.unchanged(f"spec.{field}", after.get(name), before.get(name))


def _check_tokens(report: Report, requests: list[Raw]) -> None:
    seen: dict[str, None] = {}
    for index, request in enumerate(requests):
        field, audience = f"spec.tokenRequests[{index}]", text(request, "audience")
        if audience in seen:
            report.duplicate(f"{field}.audience", audience)
            continue
        seen[audience] = None
        seconds = number(request, "expirationSeconds")
        if seconds is not None and seconds < _SHORTEST_TOKEN:
            detail = "may not specify a duration less than 10 minutes"
            report.invalid(f"{field}.expirationSeconds", seconds, detail)
        if seconds is not None and seconds > _LONGEST_TOKEN:
            detail = "may not specify a duration larger than 2^32 seconds"
            report.invalid(f"{field}.expirationSeconds", seconds, detail)


def check_capacity(report: Report, capacity: Raw) -> None:
    check_selector(report, mapping(capacity, "nodeTopology"), "nodeTopology")
    name = text(capacity, "storageClassName")
    report.invalid("storageClassName", name, *names.dns_subdomain_problems(name))
    if capacity.get("capacity") is not None:
        _check_not_negative(report, capacity["capacity"], "capacity")


def check_capacity_update(report: Report, new: Raw, old: Raw) -> None:
    for name in ("nodeTopology", "storageClassName"):
        report.unchanged(name, new.get(name), old.get(name))


def _check_not_negative(report: Report, value: Any, field: str) -> None:
    try:
        if milli_units(value, field) < 0:
            report.invalid(field, value, NEGATIVE)
    except QuantityError as error:
        report.invalid(field, value, error.why)
