"""Services. Which address one gets is for the server; that it is an address is checked here."""

from __future__ import annotations

from posse.objects import names
from posse.objects.raw import Raw, listing, mapping, mappings, number, strings, text, texts
from posse.objects.validating.containers import PROTOCOLS
from posse.objects.validating.metadata import check_labels
from posse.objects.validating.pods import check_address
from posse.objects.validating.probes import check_port
from posse.objects.validating.report import Report

_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_FAMILIES = ("IPv4", "IPv6")
_POLICIES = ("PreferDualStack", "RequireDualStack", "SingleStack")
_DISTRIBUTIONS = ("PreferClose", "PreferSameZone", "PreferSameNode")
_BLANK_PORT = {
    "Name": "", "Protocol": "", "AppProtocol": None, "Port": 0, "TargetPort": 0, "NodePort": 0,
}  # fmt: skip
_ALLOCATING = ("allocateLoadBalancerNodePorts", "loadBalancerClass")


def check_service(report: Report, service: Raw) -> None:
    spec = mapping(service, "spec")
    kind = text(spec, "type")
    headless = texts(spec, "clusterIPs") == ["None"]
    ports = mappings(spec, "ports")
    if not ports and not headless and kind != "ExternalName":
        report.required("spec.ports")
    if headless and kind in ("LoadBalancer", "NodePort"):
        detail = f"may not be set to 'None' for {kind} services"
        report.invalid("spec.clusterIPs[0]", "None", detail)
    if kind == "ExternalName":
        _check_external_name(report, spec)
    seen: dict[str, None] = {}
    for index, port in enumerate(ports):
        _check_service_port(report, port, f"spec.ports[{index}]", len(ports) > 1, seen)
    check_labels(report, strings(spec, "selector"), "spec.selector")
    report.one_of("spec.sessionAffinity", text(spec, "sessionAffinity"), ("ClientIP", "None"))
    _check_affinity_seconds(report, spec)
    if kind != "ExternalName":
        _check_addresses(report, spec)
    for index, address in enumerate(texts(spec, "externalIPs")):
        check_address(report, address, f"spec.externalIPs[{index}]")
    report.one_of("spec.type", kind, _TYPES)
    _check_distinct_ports(report, ports, kind)
    if kind != "LoadBalancer":
        _check_no_balancer(report, spec)
    _check_traffic(report, spec)


def check_service_update(report: Report, new: Raw, old: Raw) -> None:
    """The address of a service is its identity: it stays."""
    after, before = mapping(new, "spec"), mapping(old, "spec")
    if "ExternalName" in (after.get("type"), before.get("type")):
        return
    given, had = texts(after, "clusterIPs"), texts(before, "clusterIPs")
    if had and not given:
        report.invalid("spec.clusterIPs[0]", given, "primary clusterIP can not be unset")
    for index, (address, was) in enumerate(zip(given, had, strict=False)):
        if address != was:
            report.invalid(f"spec.clusterIPs[{index}]", given, "may not change once set")
    if len(had) > len(given) == 1 and after.get("ipFamilyPolicy") != "SingleStack":
        detail = "must be set to 'SingleStack' when releasing the secondary clusterIP"
        report.invalid("spec.ipFamilyPolicy", after.get("ipFamilyPolicy"), detail)


def _check_external_name(report: Report, spec: Raw) -> None:
    for name in ("clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if spec.get(name):
            report.forbidden(f"spec.{name}", "may not be set for ExternalName services")
    target = text(spec, "externalName").removesuffix(".")
    if target:
        report.invalid("spec.externalName", target, *names.dns_subdomain_problems(target))
    else:
        report.required("spec.externalName")


def _check_service_port(
    report: Report, port: Raw, field: str, several: bool, seen: dict[str, None]
) -> None:
    if name := text(port, "name"):
        report.invalid(f"{field}.name", name, *names.dns_label_problems(name))
        if name in seen:
            report.duplicate(f"{field}.name", name)
        seen[name] = None
    elif several:
        report.required(f"{field}.name")
    value = number(port, "port") or 0
    report.invalid(f"{field}.port", value, *names.port_number_problems(value))
    report.one_of(f"{field}.protocol", text(port, "protocol"), PROTOCOLS)
    check_port(report, port.get("targetPort"), f"{field}.targetPort")
    if protocol := text(port, "appProtocol"):
        report.invalid(f"{field}.appProtocol", protocol, *names.qualified_name_problems(protocol))


def _check_affinity_seconds(report: Report, spec: Raw) -> None:
    affinity = spec.get("sessionAffinity")
    config = spec.get("sessionAffinityConfig")
    if affinity == "ClientIP":
        seconds = number(mapping(config, "clientIP"), "timeoutSeconds")
        if seconds is not None and not 0 < seconds <= 86400:
            field = "spec.sessionAffinityConfig.clientIP.timeoutSeconds"
            report.invalid(field, seconds, "must be greater than 0 and less than 86400")
    elif affinity == "None" and config is not None:
        detail = "must not be set when session affinity is None"
        report.forbidden("spec.sessionAffinityConfig", detail)


def _check_addresses(report: Report, spec: Raw) -> None:
    first, addresses = text(spec, "clusterIP"), texts(spec, "clusterIPs")
    if first and not addresses:
        report.required("spec.clusterIPs")
    elif first and addresses[0] != first:
        report.invalid("spec.clusterIPs", addresses, "first value must match `clusterIP`")
    elif addresses and not first:
        detail = "must be empty when `clusterIP` is not specified"
        report.invalid("spec.clusterIPs", addresses, detail)
    seen: dict[str, None] = {}
    for index, family in enumerate(texts(spec, "ipFamilies")):
        if family not in _FAMILIES:
            report.unsupported(f"spec.ipFamilies[{index}]", family, _FAMILIES)
        if family in seen:
            report.duplicate(f"spec.ipFamilies[{index}]", family)
        seen[family] = None
    policy = spec.get("ipFamilyPolicy")
    if policy is not None and policy not in _POLICIES:
        report.unsupported("spec.ipFamilyPolicy", policy, _POLICIES)
    for index, address in enumerate(addresses):
        if index == 0 and address == "None":
            if len(addresses) > 1:
                detail = "'None' must be the first and only value"
                report.invalid("spec.clusterIPs", addresses, detail)
        else:
            check_address(report, address, f"spec.clusterIPs[{index}]")
    if len(addresses) > 2:
        report.invalid("spec.clusterIPs", addresses, "may only hold up to 2 values")


def _check_distinct_ports(report: Report, ports: list[Raw], kind: str) -> None:
    outside: dict[tuple[str, int], None] = {}
    inside: dict[tuple[str, int], None] = {}
    for index, port in enumerate(ports):
        protocol, opened = text(port, "protocol"), number(port, "nodePort")
        if opened:
            if kind == "ClusterIP":
                detail = "may not be used when `type` is 'ClusterIP'"
                report.forbidden(f"spec.ports[{index}].nodePort", detail)
            if (protocol, opened) in outside:
                report.duplicate(f"spec.ports[{index}].nodePort", opened)
            outside[protocol, opened] = None
    for index, port in enumerate(ports):
        key = text(port, "protocol"), number(port, "port") or 0
        if key in inside:
            field = f"spec.ports[{index}]"
            report.duplicate(field, {**_BLANK_PORT, "Protocol": key[0], "Port": key[1]})
        inside[key] = None


def _check_no_balancer(report: Report, spec: Raw) -> None:
    detail = "may only be used when `type` is 'LoadBalancer'"
    if listing(spec, "loadBalancerSourceRanges"):
        report.forbidden("spec.LoadBalancerSourceRanges", detail)
    for name in _ALLOCATING:
        if spec.get(name) is not None:
            report.forbidden(f"spec.{name}", detail)


def _check_traffic(report: Report, spec: Raw) -> None:
    kind, external = text(spec, "type"), text(spec, "externalTrafficPolicy")
    by_address = kind == "ClusterIP" and bool(listing(spec, "externalIPs"))
    if kind in ("NodePort", "LoadBalancer") or by_address:
        report.one_of("spec.externalTrafficPolicy", external, ("Cluster", "Local"))
    elif external:
        detail = "may only be set for externally-accessible services"
        report.invalid("spec.externalTrafficPolicy", external, detail)
    internal = spec.get("internalTrafficPolicy")
    if internal is None:
        if kind in ("ClusterIP", "NodePort", "LoadBalancer"):
            report.required("spec.internalTrafficPolicy")
    elif internal not in ("Cluster", "Local"):
        report.unsupported("spec.internalTrafficPolicy", internal, ("Cluster", "Local"))
    distribution = spec.get("trafficDistribution")
    if distribution is not None and distribution not in _DISTRIBUTIONS:
        report.unsupported("spec.trafficDistribution", distribution, _DISTRIBUTIONS)
