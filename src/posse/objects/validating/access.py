"""Roles and who has them."""

from __future__ import annotations

from posse.objects.raw import Raw, listing, mapping, mappings, text, texts
from posse.objects.validating.report import Report, same

GROUP = "rbac.authorization.k8s.io"

_SUBJECTS = ("ServiceAccount", "User", "Group")


def check_role(report: Report, role: Raw) -> None:
    _check_rules(report, role, namespaced=True)


def check_cluster_role(report: Report, role: Raw) -> None:
    _check_rules(report, role, namespaced=False)


def check_role_binding(report: Report, binding: Raw) -> None:
    _check_binding(report, binding, ("Role", "ClusterRole"), namespaced=True)


def check_cluster_role_binding(report: Report, binding: Raw) -> None:
    _check_binding(report, binding, ("ClusterRole",), namespaced=False)


def check_binding_update(report: Report, new: Raw, old: Raw) -> None:
    """Whoever may change a binding's subjects must not thereby hand out another role."""
    role = mapping(new, "roleRef")
    if not same(role, mapping(old, "roleRef")):
        shown = {
            "APIGroup": text(role, "apiGroup"),
            "Kind": text(role, "kind"),
            "Name": text(role, "name"),
        }
        report.invalid("roleRef", shown, "cannot change roleRef")


def _check_rules(report: Report, role: Raw, *, namespaced: bool) -> None:
    for index, rule in enumerate(mappings(role, "rules")):
        field = f"rules[{index}]"
        if not listing(rule, "verbs"):
            report.required(f"{field}.verbs", "verbs must contain at least one value")
        if urls := texts(rule, "nonResourceURLs"):
            if namespaced:
                detail = "namespaced rules cannot apply to non-resource URLs"
                report.invalid(f"{field}.nonResourceURLs", urls, detail)
            if any(listing(rule, name) for name in ("apiGroups", "resources", "resourceNames")):
                detail = "rules cannot apply to both regular resources and non-resource URLs"
                report.invalid(f"{field}.nonResourceURLs", urls, detail)
            continue
        for name, what in (("apiGroups", "api group"), ("resources", "resource")):
            if not listing(rule, name):
                detail = f"resource rules must supply at least one {what}"
                report.required(f"{field}.{name}", detail)


def _check_binding(
    report: Report, binding: Raw, roles: tuple[str, ...], *, namespaced: bool
) -> None:
    role = mapping(binding, "roleRef")
    if text(role, "apiGroup") != GROUP:
        report.unsupported("roleRef.apiGroup", text(role, "apiGroup"), (GROUP,))
    if text(role, "kind") not in roles:
        report.unsupported("roleRef.kind", text(role, "kind"), roles)
    if not text(role, "name"):
        report.required("roleRef.name")
    for index, subject in enumerate(mappings(binding, "subjects")):
        field, kind = f"subjects[{index}]", text(subject, "kind")
        if not text(subject, "name"):
            report.required(f"{field}.name")
        if kind not in _SUBJECTS:
            report.unsupported(f"{field}.kind", kind, _SUBJECTS)
            continue
        group = "" if kind == "ServiceAccount" else GROUP
        if text(subject, "apiGroup") != group:
            report.unsupported(f"{field}.apiGroup", text(subject, "apiGroup"), (group,))
        if kind == "ServiceAccount" and not namespaced and not text(subject, "namespace"):
            report.required(f"{field}.namespace")
