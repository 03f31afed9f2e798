"""Pods that are about to exist, and pod templates."""

from __future__ import annotations

import ipaddress

import msgspec

from posse.objects import names
from posse.objects.meta import from_raw
from posse.objects.pods import PodSpec
from posse.objects.quantity import QuantityError, canonical, format_base_units, milli_units
from posse.objects.raw import Raw, listing, mapping, mappings, number, strings, text, texts
from posse.objects.requests import container_requests
from posse.objects.validating.containers import (
    Surroundings,
    check_containers,
    check_ephemeral_forbidden,
    check_host_network,
    check_init_containers,
    check_only_in_pods,
)
from posse.objects.validating.metadata import check_annotations, check_labels
from posse.objects.validating.placement import (
    check_affinity,
    check_gates,
    check_spreading,
    check_tolerations,
)
from posse.objects.validating.report import Report
from posse.objects.validating.resources import check_resources
from posse.objects.validating.security import check_pod_security
from posse.objects.validating.volumes import check_volumes

PREEMPTION = ("PreemptLowerPriority", "Never")

_RESTART = ("Always", "OnFailure", "Never")
_DNS = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_LARGEST = 2**31 - 1


def check_pod(report: Report, pod: Raw) -> None:
    """What a pod needs on creation and on every update."""
    spec = mapping(pod, "spec")
    check_pod_spec(report, spec, "spec", in_pod=True)
    check_only_in_pods(report, spec, "spec")


def check_new_pod(report: Report, pod: Raw) -> None:
    check_pod(report, pod)
    spec = mapping(pod, "spec")
    check_ephemeral_forbidden(report, spec, "spec", "cannot be set on create")
    if text(spec, "nodeName") and listing(spec, "schedulingGates"):
        detail = "cannot be set until all schedulingGates have been cleared"
        report.forbidden("spec.nodeName", detail)


def check_template(report: Report, template: Raw, path: str) -> None:
    meta = mapping(template, "metadata")
    check_labels(report, strings(meta, "labels"), f"{path}.labels")
    check_annotations(report, strings(meta, "annotations"), f"{path}.annotations")
    spec = mapping(template, "spec")
    check_pod_spec(report, spec, f"{path}.spec", in_pod=False)
    detail = "ephemeral containers not allowed in pod template"
    check_ephemeral_forbidden(report, spec, f"{path}.spec", detail)


def check_pod_spec(report: Report, spec: Raw, path: str, *, in_pod: bool) -> None:
    grace = number(spec, "terminationGracePeriodSeconds")
    if grace is None:
        report.required(f"{path}.terminationGracePeriodSeconds")
    around = Surroundings(spec, check_volumes(report, spec, f"{path}.volumes"))
    _check_claims(report, spec, f"{path}.resourceClaims")
    check_containers(report, spec, f"{path}.containers", around)
    check_init_containers(report, spec, f"{path}.initContainers", around)
    _check_pod_level(report, spec, f"{path}.resources", around.claims)
    check_host_network(report, spec, path, in_pod=in_pod)
    report.one_of(f"{path}.restartPolicy", text(spec, "restartPolicy"), _RESTART)
    report.one_of(f"{path}.dnsPolicy", text(spec, "dnsPolicy"), _DNS)
    check_labels(report, strings(spec, "nodeSelector"), f"{path}.nodeSelector")
    check_pod_security(report, spec, f"{path}.securityContext")
    check_affinity(report, spec, f"{path}.affinity")
    _check_dns(report, spec, f"{path}.dnsConfig")
    for index, gate in enumerate(mappings(spec, "readinessGates")):
        condition = text(gate, "conditionType")
        field = f"{path}.readinessGates[{index}].conditionType"
        report.invalid(field, condition, *names.qualified_name_problems(condition))
    check_gates(report, spec, f"{path}.schedulingGates")
    check_spreading(report, spec, f"{path}.topologySpreadConstraints")
    _check_references(report, spec, path)
    check_tolerations(report, spec, f"{path}.tolerations")
    _check_host_aliases(report, spec, f"{path}.hostAliases")
    _check_classes(report, spec, path)
    _check_overhead(report, spec, f"{path}.overhead")


def _check_claims(report: Report, spec: Raw, path: str) -> None:
    seen: dict[str, None] = {}
    for index, claim in enumerate(mappings(spec, "resourceClaims")):
        field, name = f"{path}[{index}]", text(claim, "name")
        if not name:
            report.required(f"{field}.name")
        elif name in seen:
            report.duplicate(f"{field}.name", name)
        else:
            report.invalid(f"{field}.name", name, *names.dns_label_problems(name))
            seen[name] = None
        given = [n for n in ("resourceClaimName", "resourceClaimTemplateName") if claim.get(n)]
        choice = "`resourceClaimName`", "`resourceClaimTemplateName`"
        shown = {
            "Name": name,
            "ResourceClaimName": claim.get("resourceClaimName"),
            "ResourceClaimTemplateName": claim.get("resourceClaimTemplateName"),
        }
        if len(given) == 2:
            detail = f"at most one of {' or '.join(choice)} may be specified"
            report.invalid(field, shown, detail)
        elif not given:
            report.invalid(field, shown, f"must specify one of: {', '.join(choice)}")
        for source in given:
            referred = text(claim, source)
            problems = names.dns_subdomain_problems(referred)
            report.invalid(f"{field}.{source}", referred, *problems)


def _check_pod_level(report: Report, spec: Raw, path: str, claims: list[str]) -> None:
    resources = spec.get("resources")
    if not isinstance(resources, dict):
        return
    if resources.get("claims") is not None:
        report.forbidden(f"{path}.claims", "claims may not be set for Resources at pod-level")
    check_resources(report, resources, path, claims=claims, pod_level=True)
    try:
        asked = container_requests(from_raw(spec, PodSpec))
    except (ValueError, msgspec.ValidationError):
        return
    for resource, amount in mapping(resources, "requests").items():
        together = asked.get(resource, 0)
        try:
            allowed = milli_units(amount) if resource == "cpu" else milli_units(amount) / 1000
        except QuantityError:
            continue
        if together > allowed:
            shown = format_base_units(resource, together)
            detail = f"must be greater than or equal to aggregate container requests of {shown}"
            report.invalid(f"{path}.requests[{resource}]", canonical(amount), detail)
    _check_container_limits(report, spec, path)


def _check_container_limits(report: Report, spec: Raw, path: str) -> None:
    bounds = mapping(spec, "resources", "limits")
    for index, container in enumerate(mappings(spec, "containers")):
        for resource, amount in sorted(mapping(container, "resources", "limits").items()):
            if resource not in bounds:
                continue
            try:
                over = milli_units(amount) > milli_units(bounds[resource])
            except QuantityError:
                continue
            if over:
                report.invalid(
                    f"{path}.containers[{index}][{resource}].limits",
                    canonical(amount),
                    f"must be less than or equal to pod limits of {canonical(bounds[resource])}",
                )


def _check_dns(report: Report, spec: Raw, path: str) -> None:
    config = mapping(spec, "dnsConfig")
    servers, searches = texts(config, "nameservers"), texts(config, "searches")
    if spec.get("dnsPolicy") == "None" and not servers:
        if not config:
            report.required(path, "must provide `dnsConfig` when `dnsPolicy` is None")
        else:
            detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            report.required(f"{path}.nameservers", detail)
        return
    if len(servers) > 3:
        report.invalid(f"{path}.nameservers", servers, "must not have more than 3 nameservers")
    for index, server in enumerate(servers):
        check_address(report, server, f"{path}.nameservers[{index}]")
    if len(searches) > 32:
        report.invalid(f"{path}.searches", searches, "must not have more than 32 search paths")
    if len(" ".join(searches)) > 2048:
        detail = "must not have more than 2048 characters (including spaces) in the search list"
        report.invalid(f"{path}.searches", searches, detail)
    for index, search in enumerate(searches):
        if search != ".":
            domain = search.removesuffix(".")
            problems = names.underscored_subdomain_problems(domain)
            report.invalid(f"{path}.searches[{index}]", domain, *problems)
    for index, option in enumerate(mappings(config, "options")):
        if not text(option, "name"):
            report.required(f"{path}.options[{index}]", "must not be empty")


def check_address(report: Report, address: str, field: str) -> None:
    try:
        ipaddress.ip_address(address)
    except ValueError:
        detail = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
        report.invalid(field, address, detail)


def _check_references(report: Report, spec: Raw, path: str) -> None:
    for name in ("serviceAccountName", "nodeName"):
        if referred := text(spec, name):
            report.invalid(f"{path}.{name}", referred, *names.dns_subdomain_problems(referred))
    deadline = number(spec, "activeDeadlineSeconds")
    if deadline is not None:
        problems = names.range_problems(deadline, 1, _LARGEST)
        report.invalid(f"{path}.activeDeadlineSeconds", deadline, *problems)
    for name in ("hostname", "subdomain"):
        if given := text(spec, name):
            report.invalid(f"{path}.{name}", given, *names.dns_label_problems(given))


def _check_host_aliases(report: Report, spec: Raw, path: str) -> None:
    for index, alias in enumerate(mappings(spec, "hostAliases")):
        check_address(report, text(alias, "ip"), f"{path}[{index}].ip")
        for position, host in enumerate(texts(alias, "hostnames")):
            problems = names.dns_subdomain_problems(host)
            report.invalid(f"{path}[{index}].hostnames[{position}]", host, *problems)


def _check_classes(report: Report, spec: Raw, path: str) -> None:
    for name in ("priorityClassName", "runtimeClassName"):
        if referred := text(spec, name):
            report.invalid(f"{path}.{name}", referred, *names.dns_subdomain_problems(referred))
    if spec.get("preemptionPolicy") is not None:
        policy = text(spec, "preemptionPolicy")
        report.one_of(f"{path}.preemptionPolicy", policy, PREEMPTION)


def _check_overhead(report: Report, spec: Raw, path: str) -> None:
    overhead = {"limits": mapping(spec, "overhead")}
    check_resources(report, overhead, path, claims=[])
