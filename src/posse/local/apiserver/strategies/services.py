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
            spec.setdefault("ipFamilies", ["IPv4"])
            spec.setdefault("ipFamilyPolicy", "SingleStack")
        _give_node_ports(context, kind, obj)

    def prepare_update(self, context: Context, kind: Kind, new: Object, old: Object) -> None:
        spec, before = new.setdefault("spec", {}), mapping(old, "spec")
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
        inside = False
    if not inside:
        why = f"failed to allocate IP {asked}: the provided IP is not in the valid range"
        why += f". The range of valid IPs is {NETWORK}"
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
    if spec.get("type") not in _WITH_NODE_PORTS or not wanting:
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
