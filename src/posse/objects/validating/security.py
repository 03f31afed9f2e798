"""Security contexts of pods and containers."""

from __future__ import annotations

from posse.objects import names
from posse.objects.raw import Raw, listing, mapping, number, text
from posse.objects.validating.report import Report

_LARGEST_ID = 2**31 - 1
_SECCOMP = ("Localhost", "RuntimeDefault", "Unconfined")


def check_pod_security(report: Report, spec: Raw, path: str) -> None:
    context = mapping(spec, "securityContext")
    for name in ("fsGroup", "runAsUser", "runAsGroup"):
        _check_id(report, number(context, name), f"{path}.{name}")
    for index, group in enumerate(listing(context, "supplementalGroups")):
        _check_id(report, group, f"{path}.supplementalGroups[{index}]")
    if spec.get("shareProcessNamespace") is True and spec.get("hostPID") is True:
        detail = "ShareProcessNamespace and HostPID cannot both be enabled"
        report.invalid(f"{path}.shareProcessNamespace", True, detail)
    change = context.get("fsGroupChangePolicy")
    if change is not None and change not in ("Always", "OnRootMismatch"):
        supported = ("Always", "OnRootMismatch")
        report.unsupported(f"{path}.fsGroupChangePolicy", change, supported)
    _check_seccomp(report, mapping(context, "seccompProfile"), f"{path}.seccompProfile")


def check_container_security(report: Report, container: Raw, path: str) -> None:
    context = mapping(container, "securityContext")
    _check_id(report, number(context, "runAsUser"), f"{path}.runAsUser")
    _check_id(report, number(context, "runAsGroup"), f"{path}.runAsGroup")
    if (mount := text(context, "procMount")) and mount not in ("Default", "Unmasked"):
        report.unsupported(f"{path}.procMount", mount, ("Default", "Unmasked"))
    _check_seccomp(report, mapping(context, "seccompProfile"), f"{path}.seccompProfile")
    if context.get("allowPrivilegeEscalation") is False:
        detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
        if context.get("privileged") is True:
            report.invalid(path, context, detail)
        if "SYS_ADMIN" in listing(context, "capabilities", "add"):
            report.invalid(
                path,
                context,
                "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` "
                "CAP_SYS_ADMIN",
            )


def _check_id(report: Report, value: int | None, field: str) -> None:
    if isinstance(value, int):
        report.invalid(field, value, *names.range_problems(value, 0, _LARGEST_ID))


def _check_seccomp(report: Report, profile: Raw, path: str) -> None:
    if not profile:
        return
    kind = text(profile, "type")
    if kind not in _SECCOMP:
        if kind:
            report.unsupported(f"{path}.type", kind, _SECCOMP)
        else:
            report.required(f"{path}.type", "type is required when seccompProfile is set")
    given = profile.get("localhostProfile")
    if kind == "Localhost" and not given:
        report.required(f"{path}.localhostProfile", "must be set when seccomp type is Localhost")
    elif kind != "Localhost" and given:
        detail = "can only be set when seccomp type is Localhost"
        report.invalid(f"{path}.localhostProfile", given, detail)
