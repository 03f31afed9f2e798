"""Requests and limits: which resources may be asked for, and how much of them."""

from __future__ import annotations

from typing import Any

from posse.objects import names
from posse.objects.quantity import QuantityError, canonical, milli_units, parse
from posse.objects.raw import Raw, mapping, mappings, text
from posse.objects.requests import is_pod_level
from posse.objects.validating.report import NEGATIVE, Report

_CONTAINER = ("cpu", "memory", "ephemeral-storage")
_HUGE_PAGES = "hugepages-"
_COUNTED = (
    "pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps",
    "persistentvolumeclaims", "services.nodeports", "services.loadbalancers",
)  # fmt: skip
_STANDARD = (
    *_COUNTED, *_CONTAINER, "requests.cpu", "requests.memory", "requests.ephemeral-storage",
    "limits.cpu", "limits.memory", "limits.ephemeral-storage", "storage", "requests.storage",
)  # fmt: skip


def check_resources(
    report: Report, resources: Raw, path: str, *, claims: list[str], pod_level: bool = False
) -> None:
    """`spec.containers[*].resources`, or with `pod_level` those of the whole pod."""
    check_name = _check_pod_resource if pod_level else _check_container_resource
    limits, requests = mapping(resources, "limits"), mapping(resources, "requests")
    for resource in sorted(limits):
        field = f"{path}.limits[{resource}]"
        check_name(report, resource, field)
        check_quantity(report, resource, limits[resource], field)
    for resource in sorted(requests):
        field = f"{path}.requests[{resource}]"
        check_name(report, resource, field)
        check_quantity(report, resource, requests[resource], field)
        _check_against_limit(report, resource, requests, limits, path)
    named = [*limits, *requests]
    if any(r.startswith(_HUGE_PAGES) for r in named) and not any(r in _CONTAINER for r in named):
        report.forbidden(path, "HugePages require cpu or memory")
    _check_claims(report, resources, f"{path}.claims", claims)


def check_quantity(report: Report, resource: str, value: Any, field: str) -> None:
    """A quantity, not negative, whole where the resource is counted."""
    try:
        milli = milli_units(value, field)
    except QuantityError as error:
        report.invalid(field, value, error.why)
        return
    if milli < 0:
        report.invalid(field, canonical(value), NEGATIVE)
    if is_whole(resource) and milli % 1000:
        report.invalid(field, canonical(value), "must be an integer")
    if resource.startswith(_HUGE_PAGES) and not _divisible(resource, value):
        detail = f"{canonical(value)} is not positive integer multiple of {resource}"
        report.invalid(field, canonical(value), detail)


def check_resource_name(report: Report, resource: str, field: str) -> bool:
    """Whether the name is right; what is wrong is reported."""
    problems = names.qualified_name_problems(resource)
    if not problems and "/" not in resource:
        standard = resource in _STANDARD or resource.startswith(
            (_HUGE_PAGES, "requests.hugepages-")
        )
        if not standard:
            problems = ["must be a standard resource type or fully qualified"]
    report.invalid(field, resource, *problems)
    return not problems


def is_native(resource: str) -> bool:
    """Named by Kubernetes itself rather than by a device's vendor."""
    return "/" not in resource or "kubernetes.io/" in resource


def is_extended(resource: str) -> bool:
    if is_native(resource) or resource.startswith("requests."):
        return False
    return not names.qualified_name_problems(f"requests.{resource}")


def is_standard(resource: str) -> bool:
    """Whether a quota may count it by this bare name."""
    return resource in _STANDARD or resource.removeprefix("requests.").startswith(_HUGE_PAGES)


def is_whole(resource: str) -> bool:
    return resource in _COUNTED or is_extended(resource)


def may_overcommit(resource: str) -> bool:
    return is_native(resource) and not resource.startswith(_HUGE_PAGES)


def _check_container_resource(report: Report, resource: str, field: str) -> None:
    check_resource_name(report, resource, field)
    if "/" not in resource:
        if resource not in _CONTAINER and not resource.startswith(_HUGE_PAGES):
            report.invalid(field, resource, "must be a standard resource for containers")
    elif not is_native(resource) and not is_extended(resource):
        report.invalid(field, resource, "doesn't follow extended resource name standard")


def _check_pod_resource(report: Report, resource: str, field: str) -> None:
    if check_resource_name(report, resource, field) and not is_pod_level(resource):
        report.unsupported(field, resource, ("cpu", "hugepages-", "memory"))


def _check_against_limit(
    report: Report, resource: str, requests: Raw, limits: Raw, path: str
) -> None:
    if resource not in limits:
        if not may_overcommit(resource):
            detail = "Limit must be set for non overcommitable resources"
            report.required(f"{path}.limits", detail)
        return
    try:
        asked, limit = parse(requests[resource]), parse(limits[resource])
    except QuantityError:
        return
    shown, bound = canonical(requests[resource]), canonical(limits[resource])
    if asked != limit and not may_overcommit(resource):
        report.invalid(f"{path}.requests", shown, f"must be equal to {resource} limit of {bound}")
    elif asked > limit:
        detail = f"must be less than or equal to {resource} limit of {bound}"
        report.invalid(f"{path}.requests", shown, detail)


def _divisible(resource: str, value: Any) -> bool:
    try:
        page = parse(resource.removeprefix(_HUGE_PAGES))
    except QuantityError:
        return False
    if page.nano <= 0 or page.milli % 1000:
        return False
    return parse(value).value % page.value == 0


def _check_claims(report: Report, resources: Raw, path: str, claims: list[str]) -> None:
    seen: dict[str, None] = {}
    for index, claim in enumerate(mappings(resources, "claims")):
        field = f"{path}[{index}]"
        name, request = text(claim, "name"), text(claim, "request")
        if not name:
            report.required(field)
            continue
        key = f"{name}/{request}" if request else name
        if name in seen or key in seen:
            report.duplicate(field, name if name in seen else key)
        elif not request and any(known.startswith(f"{name}/") for known in seen):
            report.duplicate(field, name)
        if request:
            report.invalid(f"{field}.request", request, *names.dns_label_problems(request))
        seen[key] = None
        if name not in claims:
            known = f": {', '.join(sorted(claims))}" if claims else " which is empty"
            detail = f"must be one of the names in pod.spec.resourceClaims{known}"
            report.not_found(field, name, detail)
