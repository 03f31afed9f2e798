"""Persistent volumes and the claims to them."""

from __future__ import annotations

from typing import Any

from posse.objects import names
from posse.objects.quantity import QuantityError, milli_units
from posse.objects.raw import Raw, mapping, text, texts
from posse.objects.schemas.core import STRUCTS
from posse.objects.validating.placement import check_selector
from posse.objects.validating.report import Report, same
from posse.objects.validating.volumes import check_host_path

_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_VOLUME_MODES = ("Block", "Filesystem")
_POLICIES = ("Delete", "Recycle", "Retain")
_SOURCES = tuple(
    name for name, field in STRUCTS["PersistentVolumeSpec"].fields.items() if len(field.number) > 1
)
_IMMUTABLE = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for"
    " bound claims"
)
_SEVERAL = "may not specify more than 1 volume type"


def check_volume(report: Report, volume: Raw) -> None:
    spec = mapping(volume, "spec")
    if not texts(spec, "accessModes"):
        report.required("spec.accessModes")
    _check_modes(report, spec)
    capacity = mapping(spec, "capacity")
    if not capacity:
        report.required("spec.capacity")
    if list(capacity) != ["storage"]:
        report.unsupported("spec.capacity", spec.get("capacity"), ["storage"])
    for resource in sorted(capacity):
        _check_positive(report, capacity[resource], f"spec.capacity[{resource}]")
    if policy := text(spec, "persistentVolumeReclaimPolicy"):
        report.one_of("spec.persistentVolumeReclaimPolicy", policy, _POLICIES)
    _check_source(report, spec)
    _check_names(report, spec)


def check_volume_update(report: Report, new: Raw, old: Raw) -> None:
    after, before = mapping(new, "spec"), mapping(old, "spec")
    if any(not same(after.get(name), before.get(name)) for name in _SOURCES):
        detail = "spec.persistentvolumesource is immutable after creation"
        report.forbidden("spec.persistentvolumesource", detail)
    report.unchanged("volumeMode", after.get("volumeMode"), before.get("volumeMode"))


def check_claim(report: Report, claim: Raw) -> None:
    spec = mapping(claim, "spec")
    if not texts(spec, "accessModes"):
        report.required("spec.accessModes", "at least 1 access mode is required")
    if spec.get("selector") is not None:
        check_selector(report, mapping(spec, "selector"), "spec.selector")
    _check_modes(report, spec)
    asked = mapping(spec, "resources", "requests").get("storage")
    if asked is None:
        report.required("spec.resources[storage]")
    else:
        _check_positive(report, asked, "spec.resources[storage]")
    _check_names(report, spec)


def check_claim_update(report: Report, new: Raw, old: Raw) -> None:
    """A claim's volume is named once; what else it asks for can grow only once it is bound."""
    after, before = dict(mapping(new, "spec")), dict(mapping(old, "spec"))
    if not text(before, "volumeName"):
        before["volumeName"] = after.get("volumeName")
    if before.get("storageClassName") is None:
        before["storageClassName"] = after.get("storageClassName")
    if mapping(new, "status").get("phase") == "Bound":
        before["volumeAttributesClassName"] = after.get("volumeAttributesClassName")
        requests = {**mapping(before, "resources", "requests")}
        requests["storage"] = mapping(after, "resources", "requests").get("storage")
        before["resources"] = {**mapping(before, "resources"), "requests": requests}
    if not same(after, before):
        report.forbidden("spec", _IMMUTABLE)
    field = "spec.resources.requests.storage"
    size, was = (_size(mapping(one, "spec", "resources", "requests")) for one in (new, old))
    if size < was and size <= _size(mapping(old, "status", "capacity")):
        report.forbidden(field, "field can not be less than status.capacity")
    report.unchanged("volumeMode", after.get("volumeMode"), mapping(old, "spec").get("volumeMode"))


def _check_modes(report: Report, spec: Raw) -> None:
    modes = texts(spec, "accessModes")
    for mode in modes:
        if mode not in _MODES:
            report.unsupported("spec.accessModes", mode, _MODES)
    if "ReadWriteOncePod" in modes and any(m in _MODES[:3] for m in modes):
        detail = "may not use ReadWriteOncePod with other access modes"
        report.forbidden("spec.accessModes", detail)


def _check_source(report: Report, spec: Raw) -> None:
    sources = [name for name in _SOURCES if spec.get(name) is not None]
    for surplus in sources[1:]:
        report.forbidden(f"spec.{surplus}", _SEVERAL)
    if not sources:
        report.required("spec", "must specify a volume type")
    elif sources[0] == "hostPath":
        check_host_path(report, mapping(spec, "hostPath"), "spec.hostPath")
        path, policy = text(spec["hostPath"], "path"), text(spec, "persistentVolumeReclaimPolicy")
        if path == "/" and policy == "Recycle":
            detail = "may not be 'recycle' for a hostPath mount of '/'"
            report.forbidden("spec.persistentVolumeReclaimPolicy", detail)
    elif sources[0] == "local":
        if not text(mapping(spec, "local"), "path"):
            report.required("spec.local.path")
        if not mapping(spec, "nodeAffinity", "required"):
            report.required("spec.nodeAffinity", "Local volume requires node affinity")


def _check_names(report: Report, spec: Raw) -> None:
    """The class and the mode, which volumes and claims share."""
    if name := text(spec, "storageClassName"):
        report.invalid("spec.storageClassName", name, *names.dns_subdomain_problems(name))
    if spec.get("volumeMode") is not None:
        report.one_of("spec.volumeMode", text(spec, "volumeMode"), _VOLUME_MODES)


def _check_positive(report: Report, value: Any, field: str) -> None:
    try:
        if milli_units(value, field) <= 0:
            report.invalid(field, value, "must be greater than zero")
    except QuantityError as error:
        report.invalid(field, value, error.why)


def _size(amounts: Raw) -> int:
    try:
        return milli_units(amounts.get("storage") or 0, "storage")
    except QuantityError:
        return 0
