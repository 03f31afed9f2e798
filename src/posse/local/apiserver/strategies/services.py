"""Services: the cluster hands out their addresses and node ports.

Nothing routes these addresses; they are what clients of Kubernetes expect to find in the object.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import TypeVar

from posse.local.apiserver import statuses
from posse.local.apiserver.store import Object
from posse.local.apiserver.strategies.strategy import Context, Strategy
from posse.objects import errors
from posse.objects.errors import FieldError
from posse.objects.kinds import Kind
from posse.objects.raw import mapping, mappings

NETWORK = ipaddress.ip_network("10.96.0.0/12")
KUBERNETES_ADDRESS = str(NETWORK[1])
T = TypeVar("T")
_FIRST_PORT, _LAST_PORT = 30000, 32767
_WITH_NODE_PORTS = ("NodePort", "LoadBalancer")


class Services(Strategy):
    status_apart = True
    create_on_update = True
    returns_deleted = True

    def prepare_create(self, context: Context, kind: Kind, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        if spec.get("type") != "ExternalName":
            _give_address(context, kind, obj)
            # Nobody fills a headless service without a selector but its author, in any family.
            free = spec.get("clusterIP") == "None" and not spec.get("selector")
            spec.setdefault("ipFamilies", ["IPv4", "IPv6"] if free else ["IPv4"])
            spec.setdefault("ipFamilyPolicy", "RequireDualStack" if free else "SingleStack")
        _give_node_ports(context, kind, obj)

    def prepare_update(self, context: Context, kind: Kind, new: Object, old: Object) -> None:
        spec, before = new.setdefault("spec", {}), mapping(old, "spec")
        _drop_what_the_type_had(spec, before)
        if spec.get("type") != "ExternalName" and before.get("type") != "ExternalName":
            for field in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
                if not spec.get(field) and field in before:
                    spec[field] = before[field]
        elif spec.get("type") == "ExternalName":
            for field in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
                spec.pop(field, None)
        else:
            _give_address(context, kind, new)
        if spec.get("type") in _WITH_NODE_PORTS:
            ports = {_port(port): port.get("nodePort") for port in mappings(before, "ports")}
            for port in mappings(spec, "ports"):
                if not port.get("nodePort") and (kept := ports.get(_port(port))):
                    port["nodePort"] = kept
        _give_node_ports(context, kind, new)


def _drop_what_the_type_had(spec: Object, before: Object) -> None:
    """A change of type takes along what only the old type had, if it was sent back unchanged."""
    kind, was = spec.get("type"), before.get("type")
    if was in _WITH_NODE_PORTS and kind not in _WITH_NODE_PORTS:
        had = {_port(port): port.get("nodePort") for port in mappings(before, "ports")}
        for port in mappings(spec, "ports"):
            if port.get("nodePort") == had.get(_port(port)):
                port.pop("nodePort", None)
        if not spec.get("externalIPs"):
            _drop_unchanged(spec, before, "externalTrafficPolicy")
    if was == "LoadBalancer" != kind:
        _drop_unchanged(spec, before, "allocateLoadBalancerNodePorts")
        _drop_unchanged(spec, before, "loadBalancerClass")
    if was != "ExternalName" == kind:
        _drop_unchanged(spec, before, "internalTrafficPolicy")
    if was == "ExternalName" != kind:
        _drop_unchanged(spec, before, "externalName")


def _drop_unchanged(spec: Object, before: Object, field: str) -> None:
    if field in spec and spec[field] == before.get(field):
        del spec[field]


def _port(port: Object) -> tuple[object, object]:
    return port.get("port"), port.get("protocol")


def _give_address(context: Context, kind: Kind, obj: Object) -> None:
    spec = obj["spec"]
    listed = spec.get("clusterIPs") or []
    asked = spec.get("clusterIP") or (listed[0] if listed else "")
    if asked != "None":
        taken = _taken_addresses(context, kind, obj)
        if asked:
            _check_address(kind, obj, asked, taken)
        else:
            asked = _first_free((str(address) for address in NETWORK.hosts()), taken)
            if asked is None:
                raise statuses.internal_error("failed to allocate a serviceIP: range is full")
    spec["clusterIP"] = asked
    spec["clusterIPs"] = listed or [asked]


def _check_address(kind: Kind, obj: Object, asked: str, taken: dict[str, None]) -> None:
    try:
        inside = ipaddress.ip_address(asked) in NETWORK
    except ValueError:
        return  # refused in other words, where every field is checked
    if not inside:
        why = f"failed to allocate IP {asked}: the provided network does not match the current"
        why += " range"
    elif asked in taken:
        why = f"failed to allocate IP {asked}: provided IP is already allocated"
    else:
        return
    problem = FieldError("spec.clusterIPs", errors.INVALID, f'Invalid value: ["{asked}"]: {why}')
    raise statuses.invalid_object(kind, obj["metadata"]["name"], [problem])


def _taken_addresses(context: Context, kind: Kind, obj: Object) -> dict[str, None]:
    """KUBERNETES_ADDRESS is the server's own, whether or not its service is there."""
    taken: dict[str, None] = {}
    metadata = obj["metadata"]
    own = (metadata.get("namespace"), metadata["name"])
    if own != ("default", "kubernetes"):
        taken[KUBERNETES_ADDRESS] = None
    for other in context.store.all_latest(kind.qualified):
        if other.key != own and (address := mapping(other.obj, "spec").get("clusterIP")):
            taken[address] = None
    return taken


def _give_node_ports(context: Context, kind: Kind, obj: Object) -> None:
    spec = obj["spec"]
    wanting = [port for port in mappings(spec, "ports") if not port.get("nodePort")]
    if spec.get("type") not in _WITH_NODE_PORTS:
        return
    for index, port in enumerate(mappings(spec, "ports")):
        number = port.get("nodePort")
        if number and not _FIRST_PORT <= number <= _LAST_PORT:
            why = "provided port is not in the valid range. The range of valid ports is"
            why = f"Invalid value: {number}: {why} {_FIRST_PORT}-{_LAST_PORT}"
            problem = FieldError(f"spec.ports[{index}].nodePort", errors.INVALID, why)
            raise statuses.invalid_object(kind, obj["metadata"]["name"], [problem])
    if not wanting:
        return
    taken: dict[int, None] = {}
    for other in context.store.all_latest(kind.qualified):
        for port in mappings(other.obj, "spec", "ports"):
            if number := port.get("nodePort"):
                taken[number] = None
    for port in mappings(spec, "ports"):
        if number := port.get("nodePort"):
            taken[number] = None
    for port in wanting:
        number = _first_free(range(_FIRST_PORT, _LAST_PORT + 1), taken)
        if number is None:
            raise statuses.internal_error("failed to allocate a nodePort: range is full")
        port["nodePort"] = number
        taken[number] = None


def _first_free(candidates: Iterable[T], taken: dict[T, None]) -> T | None:
    return next((one for one in candidates if one not in taken), None)
