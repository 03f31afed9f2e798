"""Endpoints and EndpointSlices.

kube-apiserver refuses addresses on loopback here. This cluster's pods live on loopback, so their
addresses are taken like any other.
"""

from __future__ import annotations

from posse.objects import names
from posse.objects.raw import Raw, mappings, number, text, texts
from posse.objects.validating.containers import PROTOCOLS
from posse.objects.validating.pods import check_address
from posse.objects.validating.report import Report

_ADDRESS_TYPES = ("FQDN", "IPv4", "IPv6")


def check_endpoints(report: Report, endpoints: Raw) -> None:
    for index, subset in enumerate(mappings(endpoints, "subsets")):
        field = f"subsets[{index}]"
        ready, other = mappings(subset, "addresses"), mappings(subset, "notReadyAddresses")
        if not ready and not other:
            report.required(field, "must specify `addresses` or `notReadyAddresses`")
        for name, addresses in (("addresses", ready), ("notReadyAddresses", other)):
            for place, address in enumerate(addresses):
                _check_endpoint_address(report, address, f"{field}.{name}[{place}]")
        ports = mappings(subset, "ports")
        for place, port in enumerate(ports):
            _check_endpoint_port(report, port, f"{field}.ports[{place}]", several=len(ports) > 1)


def check_endpoint_slice(report: Report, endpoint_slice: Raw) -> None:
    family = text(endpoint_slice, "addressType")
    report.one_of("addressType", family, _ADDRESS_TYPES)
    seen: dict[str, None] = {}
    for index, port in enumerate(mappings(endpoint_slice, "ports")):
        field, name = f"ports[{index}]", text(port, "name")
        if name:
            report.invalid(f"{field}.name", name, *names.dns_label_problems(name))
        if name in seen:
            report.duplicate(f"{field}.name", name)
        seen[name] = None
        report.one_of(f"{field}.protocol", text(port, "protocol"), PROTOCOLS)
    for index, endpoint in enumerate(mappings(endpoint_slice, "endpoints")):
        field, addresses = f"endpoints[{index}].addresses", texts(endpoint, "addresses")
        if not addresses:
            report.required(field, "must contain at least 1 address")
        elif len(addresses) > 100:
            report.too_many(field, len(addresses), 100)
        for place, address in enumerate(addresses):
            if family in ("IPv4", "IPv6"):
                check_address(report, address, f"{field}[{place}]")
        if hostname := text(endpoint, "hostname"):
            problems = names.dns_label_problems(hostname)
            report.invalid(f"endpoints[{index}].hostname", hostname, *problems)


def check_endpoint_slice_update(report: Report, new: Raw, old: Raw) -> None:
    report.unchanged("addressType", new.get("addressType"), old.get("addressType"))


def _check_endpoint_address(report: Report, address: Raw, field: str) -> None:
    check_address(report, text(address, "ip"), f"{field}.ip")
    if hostname := text(address, "hostname"):
        report.invalid(f"{field}.hostname", hostname, *names.dns_label_problems(hostname))
    if node := text(address, "nodeName"):
        report.invalid(f"{field}.nodeName", node, *names.dns_subdomain_problems(node))


def _check_endpoint_port(report: Report, port: Raw, field: str, *, several: bool) -> None:
    if name := text(port, "name"):
        report.invalid(f"{field}.name", name, *names.dns_label_problems(name))
    elif several:
        report.required(f"{field}.name")
    value = number(port, "port") or 0
    report.invalid(f"{field}.port", value, *names.port_number_problems(value))
    report.one_of(f"{field}.protocol", text(port, "protocol"), PROTOCOLS)
