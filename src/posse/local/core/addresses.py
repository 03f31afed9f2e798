"""Where a service leads, computed from its pods. Pure."""

from __future__ import annotations

from typing import Any

from posse.controllers.runtime import Manifest, metadata_of, owner_reference, uid_of
from posse.local.core.pods import deleting, ready, terminal
from posse.objects.kinds import ENDPOINT_SLICE, ENDPOINTS, SERVICE
from posse.objects.raw import mapping, mappings, text

SERVICE_NAME = "kubernetes.io/service-name"
_HEADLESS = "service.kubernetes.io/headless"
_MANAGED = {"endpoints.kubernetes.io/managed-by": "endpoint-controller"}
_SLICE_MANAGED = {"endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"}

Ports = tuple[tuple[str, int, str, str], ...]
"""Name, number, protocol and application protocol of each port that a pod answers on."""


def selects(service: Manifest, pod: Manifest) -> bool:
    """A service without a selector has no pods: its endpoints are somebody else's to write."""
    wanted = mapping(service, "spec", "selector")
    labels = mapping(pod, "metadata", "labels")
    return bool(wanted) and all(labels.get(name) == value for name, value in wanted.items())


def is_headless(service: Manifest) -> bool:
    return text(mapping(service, "spec"), "clusterIP") == "None"


def endpoints_of(service: Manifest, pods: list[Manifest]) -> Manifest:
    """The Endpoints of the service's pods: one subset for each set of ports they have."""
    subsets: dict[Ports, dict[str, list[Manifest]]] = {}
    for pod in _reachable(pods):
        ports = _ports(service, pod)
        if deleting(pod) or (not ports and not is_headless(service)):
            continue
        subset = subsets.setdefault(ports, {})
        place = "addresses" if _shown_ready(service, pod) else "notReadyAddresses"
        subset.setdefault(place, []).append(_address(service, pod))
    return {
        "kind": ENDPOINTS.kind,
        "apiVersion": ENDPOINTS.api_version,
        "metadata": _metadata(service, metadata_of(service)["name"], _MANAGED),
        "subsets": [
            {**subsets[ports], **({"ports": [_port(one) for one in ports]} if ports else {})}
            for ports in sorted(subsets)
        ],
    }


def slices_of(service: Manifest, pods: list[Manifest]) -> list[Manifest]:
    """The same as EndpointSlices, in which pods on their way out are shown as such.

    The first is always there. Their names follow from the service's uid, so that a service made
    anew under an old name has slices of its own.
    """
    by_ports: dict[Ports, list[Manifest]] = {}
    for pod in _reachable(pods):
        ports = _ports(service, pod)
        if ports or is_headless(service):
            by_ports.setdefault(ports, []).append(_endpoint(service, pod))
    if not by_ports:
        by_ports[()] = []
    name, suffix = metadata_of(service)["name"], uid_of(service)[-5:]
    made = []
    for index, ports in enumerate(sorted(by_ports)):
        called = f"{name}-{suffix}" + (f"-{index}" if index else "")
        metadata = _metadata(service, called, {SERVICE_NAME: name} | _SLICE_MANAGED)
        metadata["ownerReferences"] = [owner_reference(SERVICE, service)]
        made.append(
            {
                "kind": ENDPOINT_SLICE.kind,
                "apiVersion": ENDPOINT_SLICE.api_version,
                "metadata": metadata,
                "addressType": "IPv4",
                "endpoints": by_ports[ports],
                "ports": [_port(one) for one in ports],
            }
        )
    return made


def _reachable(pods: list[Manifest]) -> list[Manifest]:
    """Those with an address that are not over, in the order of their addresses."""
    found = [pod for pod in pods if not terminal(pod) and _ip(pod)]
    return sorted(found, key=lambda pod: (_ip(pod), uid_of(pod)))


def _ip(pod: Manifest) -> str:
    return text(mapping(pod, "status"), "podIP")


def _shown_ready(service: Manifest, pod: Manifest) -> bool:
    return ready(pod) or mapping(service, "spec").get("publishNotReadyAddresses") is True


def _metadata(service: Manifest, name: str, labels: dict[str, str]) -> Manifest:
    metadata = metadata_of(service)
    all_labels = {**mapping(metadata, "labels"), **labels}
    if is_headless(service):
        all_labels[_HEADLESS] = ""
    return {"name": name, "namespace": metadata["namespace"], "labels": all_labels}


def _ports(service: Manifest, pod: Manifest) -> Ports:
    found = []
    for port in mappings(service, "spec", "ports"):
        number = _target(port, pod)
        if number is not None:
            protocol = text(port, "protocol") or "TCP"
            found.append((text(port, "name"), number, protocol, text(port, "appProtocol")))
    return tuple(found)


def _target(port: Manifest, pod: Manifest) -> int | None:
    """The number behind a port: a named one is looked up among the pod's containers."""
    target: Any = port.get("targetPort")
    if isinstance(target, int) and not isinstance(target, bool):
        return target or port.get("port")
    for container in mappings(pod, "spec", "containers"):
        for one in mappings(container, "ports"):
            if text(one, "name") == target and one.get("protocol") == port.get("protocol"):
                number: int | None = one.get("containerPort")
                return number
    return None


def _port(port: tuple[str, int, str, str]) -> Manifest:
    name, number, protocol, application = port
    made: Manifest = {"name": name, "port": number, "protocol": protocol}
    if application:
        made["appProtocol"] = application
    return made


def _reference(pod: Manifest) -> Manifest:
    metadata = metadata_of(pod)
    return {
        "kind": "Pod",
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "uid": metadata["uid"],
    }


def _placed(service: Manifest, pod: Manifest) -> Manifest:
    """Where the pod is, and the name it has under the service, if it asked for one."""
    spec, made = mapping(pod, "spec"), {}
    if text(spec, "subdomain") == metadata_of(service)["name"] and text(spec, "hostname"):
        made["hostname"] = text(spec, "hostname")
    if text(spec, "nodeName"):
        made["nodeName"] = text(spec, "nodeName")
    return made


def _address(service: Manifest, pod: Manifest) -> Manifest:
    return {"ip": _ip(pod), **_placed(service, pod), "targetRef": _reference(pod)}


def _endpoint(service: Manifest, pod: Manifest) -> Manifest:
    serving, ending = _shown_ready(service, pod), deleting(pod)
    return {
        "addresses": [_ip(pod)],
        "conditions": {
            "ready": serving and not ending,
            "serving": serving,
            "terminating": ending,
        },
        **_placed(service, pod),
        "targetRef": _reference(pod),
    }
