"""Services. Addresses and address families are for the server to hand out."""

from __future__ import annotations

from posse.objects.defaulting.filling import fill, part
from posse.objects.raw import Raw, listing, mapping, mappings

_ROUTED = ("ClusterIP", "NodePort", "LoadBalancer")
_AFFINITY_SECONDS = 10800


def default_service(service: Raw) -> None:
    spec = part(service, "spec")
    fill(spec, "type", "ClusterIP")
    fill(spec, "sessionAffinity", "None")
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        config = mapping(spec, "sessionAffinityConfig", "clientIP")
        if config.get("timeoutSeconds") is None:
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": _AFFINITY_SECONDS}}
    for port in mappings(spec, "ports"):
        fill(port, "protocol", "TCP")
        if port.get("targetPort") in (None, 0, "") and port.get("port") is not None:
            port["targetPort"] = port["port"]
    if spec["type"] in _ROUTED:
        fill(spec, "internalTrafficPolicy", "Cluster")
    if _reached_from_outside(spec):
        fill(spec, "externalTrafficPolicy", "Cluster")
    if spec["type"] == "LoadBalancer":
        fill(spec, "allocateLoadBalancerNodePorts", True)
    _one_list_of_addresses(spec)
    balancer = part(part(service, "status"), "loadBalancer")
    for ingress in mappings(balancer, "ingress"):
        if ingress.get("ip"):
            fill(ingress, "ipMode", "VIP")


def _one_list_of_addresses(spec: Raw) -> None:
    """`clusterIP` is the first of `clusterIPs`; whoever gives one gives both."""
    address, addresses = spec.get("clusterIP"), listing(spec, "clusterIPs")
    if address and not addresses:
        spec["clusterIPs"] = [address]
    elif addresses and not address:
        spec["clusterIP"] = addresses[0]


def _reached_from_outside(spec: Raw) -> bool:
    if spec["type"] in ("NodePort", "LoadBalancer"):
        return True
    return spec["type"] == "ClusterIP" and bool(listing(spec, "externalIPs"))
