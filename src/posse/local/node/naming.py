"""The cluster's own names, and where they lead on this machine.

A Service's name leads to the pods that it selects, and a pod with a hostname and a subdomain has a
name of its own, as a cluster's DNS has them. `NameBook` is one reading of the objects; it answers
for a hosts file, and for texts that hold such names.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from posse.objects import raw

Manifest = dict[str, Any]

_LABEL = r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
_TOKEN = re.compile(
    rf"(?<![A-Za-z0-9_.-])({_LABEL}(?:\.{_LABEL})*)(?::(\d{{1,5}}))?(?![A-Za-z0-9_-])"
)
_SUFFIXES = (".svc.cluster.local", ".svc")


class Reach(msgspec.Struct, frozen=True):
    """How a pod is reached: its address, and which port stands for each that it declares."""

    address: str
    ports: dict[int, int] = {}


class Member(msgspec.Struct, frozen=True):
    reach: Reach
    named: dict[str, int] = {}  # ports by the names that its containers give them


class Record(msgspec.Struct, frozen=True):
    """One name: `key` is it without its suffix, the namespace last."""

    key: str
    namespace: str
    members: tuple[Member, ...]
    targets: dict[int, int | str] = {}  # a Service's ports, and what they mean in its pods
    external: bool = False  # it selects no pods: where it leads is somebody else's business

    def port(self, asked: int) -> int:
        member = self.members[0]
        target = self.targets.get(asked, asked)
        number = member.named.get(target, asked) if isinstance(target, str) else target
        return member.reach.ports.get(number, number)


class Unknown(LookupError):
    """A name of this cluster that leads nowhere yet."""

    def __init__(self, name: str, *, declared: bool) -> None:
        super().__init__(name)
        self.name = name
        self.declared = declared  # some Service bears it; only its pods are missing


class NameBook:
    def __init__(self, records: Iterable[Record], *, strict: bool = True) -> None:
        self._records = {record.key: record for record in records}
        self._strict = strict

    def lenient(self) -> NameBook:
        """The same book; a name that it does not know is nobody's."""
        return NameBook(self._records.values(), strict=False)

    def find(self, name: str, namespace: str) -> Record | None:
        """The record that a pod of that namespace means by the name; None: not this cluster's."""
        for suffix in _SUFFIXES:
            if name.endswith(suffix):
                key = name.removesuffix(suffix)
                if "." not in key:
                    return None
                record = self._records.get(key)
                if record is None:
                    # The host part of a pod whose Service is known, or something not yet there.
                    above = self._records.get(key.partition(".")[2])
                    declared = above is not None and key.count(".") > 1
                    if self._strict or declared:
                        raise Unknown(name, declared=declared)
                return record
        return self._records.get(f"{name}.{namespace}") or self._records.get(name)

    def hosts(self, namespace: str) -> list[tuple[str, list[str]]]:
        """Lines of a hosts file: an address, and the names by which that namespace knows it."""
        lines = []
        for key in sorted(self._records):
            record = self._records[key]
            names = [f"{key}.svc.cluster.local", f"{key}.svc", key]
            if record.namespace == namespace:
                names.append(key.removesuffix(f".{namespace}"))
            lines += [(member.reach.address, names) for member in record.members]
        return lines

    def resolve(self, text: str, namespace: str) -> str:
        """The text with every name of this cluster replaced by its address, ports with it.

        Raises Unknown where a name is certainly this cluster's and leads nowhere yet. A name of one
        label is replaced only before a port: alone it may be any word.
        """

        def put(match: re.Match[str]) -> str:
            name, port = match[1], match[2]
            if "." not in name and port is None:
                return match[0]
            record = self.find(name, namespace)
            if record is None or (record.external and not record.members):
                return match[0]
            if not record.members:
                raise Unknown(name, declared=True)
            address = record.members[0].reach.address
            return address if port is None else f"{address}:{record.port(int(port))}"

        return _TOKEN.sub(put, text)


def read(
    pods: Iterable[Manifest],
    services: Iterable[Manifest],
    reach: Callable[[Manifest], Reach | None],
    api_server: Reach | None = None,
) -> NameBook:
    """`reach` says how an admitted pod is reached; None while it is not admitted."""
    standing = [
        pod
        for pod in pods
        if raw.text(raw.mapping(pod, "status"), "phase") not in ("Succeeded", "Failed")
    ]
    standing.sort(key=lambda pod: (pod["metadata"]["namespace"], pod["metadata"]["name"]))
    members = [(pod, Member(r, _named(pod))) for pod in standing if (r := reach(pod)) is not None]
    records = [_service(service, members) for service in services]
    records += [record for pod, member in members if (record := _host(pod, member)) is not None]
    if api_server is not None:
        records.append(
            Record("kubernetes.default", "default", (Member(api_server),), external=True)
        )
    return NameBook(records)


def hostname(pod: Manifest) -> str:
    """What the pod calls itself."""
    return (raw.text(pod["spec"], "hostname") or str(pod["metadata"]["name"]))[:63].rstrip("-.")


def _service(service: Manifest, members: Iterable[tuple[Manifest, Member]]) -> Record:
    spec, metadata = raw.mapping(service, "spec"), service["metadata"]
    selector = raw.strings(spec, "selector")
    namespace = metadata["namespace"]
    if not selector or raw.text(spec, "type") == "ExternalName":
        return Record(f"{metadata['name']}.{namespace}", namespace, (), external=True)
    chosen = tuple(
        member
        for pod, member in members
        if pod["metadata"]["namespace"] == namespace
        and selector.items() <= (pod["metadata"].get("labels") or {}).items()
    )
    targets: dict[int, int | str] = {}
    for entry in raw.mappings(spec, "ports"):
        port, target = entry.get("port"), entry.get("targetPort")
        if isinstance(port, int) and isinstance(target, int | str) and target:
            targets[port] = int(target) if str(target).isdecimal() else target
    return Record(f"{metadata['name']}.{namespace}", namespace, chosen, targets)


def _host(pod: Manifest, member: Member) -> Record | None:
    subdomain = raw.text(pod["spec"], "subdomain")
    if not subdomain:
        return None
    namespace = pod["metadata"]["namespace"]
    return Record(f"{hostname(pod)}.{subdomain}.{namespace}", namespace, (member,))


def _named(pod: Manifest) -> dict[str, int]:
    return {
        raw.text(port, "name"): number
        for container in raw.mappings(pod, "spec", "containers")
        for port in raw.mappings(container, "ports")
        if raw.text(port, "name") and (number := raw.number(port, "containerPort")) is not None
    }


def declared_ports(pod: Manifest) -> Mapping[int, int]:
    """Every containerPort of the pod, with the hostPort it asks for (0: any)."""
    return {
        number: raw.number(port, "hostPort") or 0
        for field in ("initContainers", "containers")
        for container in raw.mappings(pod, "spec", field)
        for port in raw.mappings(container, "ports")
        if (number := raw.number(port, "containerPort")) is not None
    }


def node_name(hostname: str | None = None) -> str:
    """The host's name in lower case, cleaned until it is one that Kubernetes takes."""
    told = socket.gethostname() if hostname is None else hostname
    name = re.sub(r"[^a-z0-9.-]+", "-", told.lower())[:63]
    name = re.sub(r"[-.]*\.[-.]*", ".", name).strip("-.")
    return name or "localhost"
