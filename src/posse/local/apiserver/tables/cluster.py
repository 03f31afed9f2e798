"""Nodes, services, events and the smaller kinds in a table."""

from __future__ import annotations

from typing import Any, TypeAlias

from posse.local.apiserver.tables.durations import age
from posse.local.apiserver.tables.layout import Cell, Column, Layout
from posse.local.apiserver.tables.reading import AGE, NAME, labels
from posse.objects.raw import mapping, mappings, number, strings, text, texts

Object: TypeAlias = dict[str, Any]

_ROLE_PREFIX = "node-role.kubernetes.io/"


def _text(*path: str, otherwise: str = "") -> Cell:
    return lambda obj, now: text(mapping(obj, *path[:-1]), path[-1]) or otherwise


def _size(*names: str) -> Cell:
    return lambda obj, now: sum(len(mapping(obj, name)) for name in names)


# Nodes


def _node_status(node: Object, now: float) -> str:
    conditions = mappings(node, "status", "conditions")
    ready = next((one for one in reversed(conditions) if one.get("type") == "Ready"), None)
    if ready is None:
        words = ["Unknown"]
    else:
        words = ["Ready" if ready.get("status") == "True" else "NotReady"]
    if mapping(node, "spec").get("unschedulable") is True:
        words.append("SchedulingDisabled")
    return ",".join(words)


def _roles(node: Object, now: float) -> str:
    roles = []
    for key, value in strings(node, "metadata", "labels").items():
        if key.startswith(_ROLE_PREFIX):
            roles.append(key.removeprefix(_ROLE_PREFIX))
        elif key == "kubernetes.io/role":
            roles.append(value)
    return ",".join(sorted({role for role in roles if role})) or "<none>"


def _address(kind: str) -> Cell:
    def read(node: Object, now: float) -> str:
        addresses = mappings(node, "status", "addresses")
        return next(
            (text(one, "address") for one in addresses if one.get("type") == kind), "<none>"
        )

    return read


def _kernel(node: Object, now: float) -> str:
    info = mapping(node, "status", "nodeInfo")
    version = text(info, "kernelVersion") or "<unknown>"
    architecture = text(info, "architecture")
    return f"{version} ({architecture})" if architecture else version


def _node_info(name: str) -> Cell:
    return _text("status", "nodeInfo", name, otherwise="<unknown>")


NODES = Layout(
    (
        NAME,
        Column("Status", _node_status),
        Column("Roles", _roles),
        AGE,
        Column("Version", _text("status", "nodeInfo", "kubeletVersion")),
        Column("Internal-IP", _address("InternalIP"), priority=1),
        Column("External-IP", _address("ExternalIP"), priority=1),
        Column("OS-Image", _node_info("osImage"), priority=1),
        Column("Kernel-Version", _kernel, priority=1),
        Column("Container-Runtime", _node_info("containerRuntimeVersion"), priority=1),
    )
)


# Services


def _cluster_ip(service: Object, now: float) -> str:
    spec = mapping(service, "spec")
    several = texts(spec, "clusterIPs")
    return (several[0] if several else text(spec, "clusterIP")) or "<none>"


def _external_ip(service: Object, now: float) -> str:
    spec = mapping(service, "spec")
    given = texts(spec, "externalIPs")
    match text(spec, "type"):
        case "ClusterIP" | "NodePort":
            return ",".join(given) or "<none>"
        case "LoadBalancer":
            ingress = mappings(service, "status", "loadBalancer", "ingress")
            points = {text(one, "ip") or text(one, "hostname") for one in ingress} - {""}
            return ",".join([*sorted(points), *given]) or "<pending>"
        case "ExternalName":
            return text(spec, "externalName")
        case _:
            return "<unknown>"


def _ports(service: Object, now: float) -> str:
    told = []
    for port in mappings(service, "spec", "ports"):
        node_port = number(port, "nodePort")
        number_told = f"{number(port, 'port') or 0}" + (f":{node_port}" if node_port else "")
        told.append(f"{number_told}/{text(port, 'protocol')}")
    return ",".join(told) or "<none>"


SERVICES = Layout(
    (
        NAME,
        Column("Type", _text("spec", "type")),
        Column("Cluster-IP", _cluster_ip),
        Column("External-IP", _external_ip),
        Column("Port(s)", _ports),
        AGE,
        Column("Selector", lambda obj, now: labels(obj, "spec", "selector"), priority=1),
    )
)


# Events


def _first_seen(event: Object, now: float) -> str:
    return age(event.get("firstTimestamp") or event.get("eventTime"), now)


def _last_seen(event: Object, now: float) -> str:
    if isinstance(event.get("series"), dict):
        return age(mapping(event, "series").get("lastObservedTime"), now)
    if event.get("lastTimestamp"):
        return age(event["lastTimestamp"], now)
    return _first_seen(event, now)


def _times_seen(event: Object, now: float) -> int:
    if isinstance(event.get("series"), dict):
        return number(event["series"], "count") or 0
    return number(event, "count") or 1


def _regarding(event: Object, now: float) -> str:
    regarding = mapping(event, "involvedObject")
    kind, name = text(regarding, "kind").lower(), text(regarding, "name")
    return f"{kind}/{name}" if name else kind


def _source(event: Object, now: float) -> str:
    source = mapping(event, "source")
    component = text(source, "component") or text(event, "reportingComponent")
    host = text(source, "host") or text(event, "reportingInstance")
    return f"{component}, {host}" if host else component


EVENTS = Layout(
    (
        Column("Last Seen", _last_seen),
        Column("Type", _text("type")),
        Column("Reason", _text("reason")),
        Column("Object", _regarding),
        Column("Subobject", _text("involvedObject", "fieldPath"), priority=1),
        Column("Source", _source, priority=1),
        Column("Message", lambda obj, now: text(obj, "message").strip()),
        Column("First Seen", _first_seen, priority=1),
        Column("Count", _times_seen, priority=1),
        Column("Name", NAME.read, format="name", priority=1),
    )
)


# Quotas


def _used(limits: bool) -> Cell:
    """`cpu: 1/4, pods: 2/10`, for the limits or for all else."""

    def read(quota: Object, now: float) -> str:
        hard, used = mapping(quota, "status", "hard"), mapping(quota, "status", "used")
        told = [
            f"{resource}: {used.get(resource, '0')}/{hard[resource]}"
            for resource in sorted(hard)
            if resource.startswith("limits.") == limits
        ]
        return ", ".join(told)

    return read


RESOURCE_QUOTAS = Layout(
    (NAME, Column("Request", _used(limits=False)), Column("Limit", _used(limits=True)), AGE)
)


# Bindings of roles


def _role(binding: Object, now: float) -> str:
    role = mapping(binding, "roleRef")
    return f"{text(role, 'kind')}/{text(role, 'name')}"


def _subjects(kind: str) -> Cell:
    def read(binding: Object, now: float) -> str:
        named = []
        for subject in mappings(binding, "subjects"):
            if subject.get("kind") == kind:
                name = text(subject, "name")
                within = f"{text(subject, 'namespace')}/" if kind == "ServiceAccount" else ""
                named.append(f"{within}{name}")
        return ", ".join(named)

    return read


BINDINGS = Layout(
    (
        NAME,
        Column("Role", _role),
        AGE,
        Column("Users", _subjects("User"), priority=1),
        Column("Groups", _subjects("Group"), priority=1),
        Column("ServiceAccounts", _subjects("ServiceAccount"), priority=1),
    )
)


# The rest

NAMESPACES = Layout((NAME, Column("Status", _text("status", "phase")), AGE))
CONFIG_MAPS = Layout((NAME, Column("Data", _size("data", "binaryData")), AGE))
SECRETS = Layout((NAME, Column("Type", _text("type")), Column("Data", _size("data")), AGE))
SERVICE_ACCOUNTS = Layout((NAME, AGE))
LEASES = Layout((NAME, Column("Holder", _text("spec", "holderIdentity")), AGE))
PRIORITY_CLASSES = Layout(
    (
        NAME,
        Column("Value", lambda obj, now: number(obj, "value") or 0, type="integer"),
        Column("Global-Default", lambda obj, now: obj.get("globalDefault") is True, type="boolean"),
        AGE,
        Column("PreemptionPolicy", _text("preemptionPolicy")),
    )
)
