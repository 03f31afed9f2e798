"""LimitRanges and ResourceQuotas: bounds that must not contradict each other."""

from __future__ import annotations

from posse.objects import names
from posse.objects.quantity import Quantity, QuantityError, canonical, parse
from posse.objects.raw import Raw, mapping, mappings, text, texts
from posse.objects.validating.report import Report
from posse.objects.validating.resources import check_quantity, is_standard

_KINDS = ("Pod", "Container", "PersistentVolumeClaim")
_BOUNDS = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
_COMPUTE = (
    "pods", "cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory",
)  # fmt: skip
_SCOPES: dict[str, tuple[str, ...]] = {
    "BestEffort": ("pods",),
    "NotBestEffort": _COMPUTE,
    "Terminating": _COMPUTE,
    "NotTerminating": _COMPUTE,
    "PriorityClass": _COMPUTE,
    "CrossNamespacePodAffinity": _COMPUTE,
}
_OPPOSITES = (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating"))


def check_limit_range(report: Report, limit_range: Raw) -> None:
    seen: dict[str, None] = {}
    for index, item in enumerate(mappings(limit_range, "spec", "limits")):
        field, kind = f"spec.limits[{index}]", text(item, "type")
        problems = names.qualified_name_problems(kind)
        if not problems and "/" not in kind and kind not in _KINDS:
            problems = ["must be a standard limit type or fully qualified"]
        report.invalid(f"{field}.type", kind, *problems)
        if kind in seen:
            report.duplicate(f"{field}.type", kind)
        seen[kind] = None
        _check_item(report, item, field, kind)


def check_resource_quota(report: Report, quota: Raw) -> None:
    spec = mapping(quota, "spec")
    hard = mapping(spec, "hard")
    for resource, amount in hard.items():
        field = f"spec.hard[{resource}]"
        if problems := names.qualified_name_problems(resource):
            report.invalid(field, resource, *problems)
        elif "/" not in resource and not is_standard(resource):
            detail = "must be a standard resource type or fully qualified"
            report.invalid(field, resource, detail)
        if "/" not in resource and not is_standard(resource):
            report.invalid(field, resource, "must be a standard resource for quota")
        check_quantity(report, resource, amount, field)
    _check_scopes(report, spec, list(hard))


def check_resource_quota_update(report: Report, new: Raw, old: Raw) -> None:
    report.unchanged(
        "spec.scopes", mapping(new, "spec").get("scopes"), mapping(old, "spec").get("scopes")
    )


def _check_item(report: Report, item: Raw, field: str, kind: str) -> None:
    given = {name: mapping(item, name) for name in _BOUNDS}
    if kind == "Pod":
        for name in ("default", "defaultRequest"):
            if given[name]:
                report.forbidden(f"{field}.{name}", "may not be specified when `type` is 'Pod'")
    if kind == "PersistentVolumeClaim" and not any(
        "storage" in given[name] for name in ("min", "max")
    ):
        detail = "either minimum or maximum storage value is required, but neither was provided"
        report.required(f"{field}.limits", detail)
    resources = sorted({resource for amounts in given.values() for resource in amounts})
    for resource in resources:
        try:
            bounds = {n: parse(given[n][resource]) for n in _BOUNDS if resource in given[n]}
        except QuantityError as error:
            report.invalid(f"{field}[{resource}]", error.value, error.why)
            continue
        shown = {name: canonical(given[name][resource]) for name in bounds}
        _check_bounds(report, field, resource, bounds, shown)


def _check_bounds(
    report: Report, field: str, resource: str, bounds: dict[str, Quantity], shown: dict[str, str]
) -> None:
    words = {
        "max": "max value",
        "min": "min value",
        "default": "default value",
        "defaultRequest": "default request value",
    }
    rules = (
        ("min", "max", "min", "min"),
        ("min", "defaultRequest", "defaultRequest", "defaultRequest"),
        ("defaultRequest", "max", "defaultRequest", "defaultRequest"),
        ("defaultRequest", "default", "defaultRequest", "defaultRequest"),
        ("min", "default", "default", "min"),
        ("default", "max", "default", "max"),
    )
    for low, high, where, value in rules:
        if low in bounds and high in bounds and bounds[low] > bounds[high]:
            bound = "default limit value" if (low, high) == rules[3][:2] else words[high]
            detail = f"{words[low]} {shown[low]} is greater than {bound} {shown[high]}"
            report.invalid(f"{field}.{where}[{resource}]", shown[value], detail)
    ratio = bounds.get("maxLimitRequestRatio")
    if ratio is not None and ratio < parse(1):
        text_ = shown["maxLimitRequestRatio"]
        where = f"{field}.maxLimitRequestRatio[{resource}]"
        report.invalid(where, text_, f"ratio {text_} is less than 1")


def _check_scopes(report: Report, spec: Raw, resources: list[str]) -> None:
    scopes = texts(spec, "scopes")
    for scope in scopes:
        if scope not in _SCOPES:
            report.invalid("spec.scopes", scopes, "unsupported scope")
        elif any(is_standard(one) and one not in _SCOPES[scope] for one in resources):
            report.invalid("spec.scopes", scopes, "unsupported scope applied to resource")
    if any(one in scopes and other in scopes for one, other in _OPPOSITES):
        report.invalid("spec.scopes", scopes, "conflicting scopes")
