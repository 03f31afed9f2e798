"""Volumes, claims and endpoints in a table."""

from __future__ import annotations

from typing import Any, TypeAlias

from posse.local.apiserver.tables.layout import Column, Layout
from posse.local.apiserver.tables.reading import AGE, NAME
from posse.objects.raw import mapping, mappings, number, text, texts

Object: TypeAlias = dict[str, Any]

_SHOWN = 3
_SHORT_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def _some(told: list[str]) -> str:
    """The first few, and how many more there are."""
    rest = f" + {len(told) - _SHOWN} more..." if len(told) > _SHOWN else ""
    return ",".join(told[:_SHOWN]) + rest


def _modes(modes: list[str]) -> str:
    return ",".join(short for mode, short in _SHORT_MODES.items() if mode in modes)


def _phase(obj: Object, now: float) -> str:
    if mapping(obj, "metadata").get("deletionTimestamp") is not None:
        return "Terminating"
    return text(mapping(obj, "status"), "phase")


def _attributes_class(obj: Object, now: float) -> str:
    return text(mapping(obj, "spec"), "volumeAttributesClassName") or "<unset>"


def _volume_mode(obj: Object, now: float) -> str:
    return text(mapping(obj, "spec"), "volumeMode") or "<unset>"


def _storage_class(obj: Object, now: float) -> str:
    annotated = mapping(obj, "metadata", "annotations")
    return text(annotated, "volume.beta.kubernetes.io/storage-class") or text(
        mapping(obj, "spec"), "storageClassName"
    )


# Endpoints


def _addresses(endpoints: Object, now: float) -> str:
    told = []
    if not mappings(endpoints, "subsets"):
        return "<none>"
    for subset in mappings(endpoints, "subsets"):
        ports = [f":{number(port, 'port') or 0}" for port in mappings(subset, "ports")] or [""]
        told += [
            f"[{ip}]{port}" if ":" in (ip := text(address, "ip")) and port else f"{ip}{port}"
            for port in ports
            for address in mappings(subset, "addresses")
        ]
    return _some(told)


def _slice_ports(endpoint_slice: Object, now: float) -> str:
    ports = mappings(endpoint_slice, "ports")
    told = [str(number(port, "port") or port.get("name", "*")) for port in ports]
    return _some(told) or "<unset>"


def _slice_addresses(endpoint_slice: Object, now: float) -> str:
    found = [a for one in mappings(endpoint_slice, "endpoints") for a in texts(one, "addresses")]
    return _some(found) or "<unset>"


ENDPOINTS = Layout((NAME, Column("Endpoints", _addresses), AGE))
ENDPOINT_SLICES = Layout(
    (
        NAME,
        Column("AddressType", lambda obj, now: text(obj, "addressType")),
        Column("Ports", _slice_ports),
        Column("Endpoints", _slice_addresses),
        AGE,
    )
)


# Volumes and claims


def _claim(volume: Object, now: float) -> str:
    reference = mapping(volume, "spec", "claimRef")
    return f"{text(reference, 'namespace')}/{text(reference, 'name')}" if reference else ""


def _capacity(volume: Object, now: float) -> str:
    return str(mapping(volume, "spec", "capacity").get("storage") or "0")


def _granted_size(claim: Object, now: float) -> str:
    if not text(mapping(claim, "spec"), "volumeName"):
        return ""
    return str(mapping(claim, "status", "capacity").get("storage") or "0")


def _granted_modes(claim: Object, now: float) -> str:
    if not text(mapping(claim, "spec"), "volumeName"):
        return ""
    return _modes(texts(mapping(claim, "status"), "accessModes"))


VOLUMES = Layout(
    (
        NAME,
        Column("Capacity", _capacity),
        Column("Access Modes", lambda obj, now: _modes(texts(mapping(obj, "spec"), "accessModes"))),
        Column(
            "Reclaim Policy",
            lambda obj, now: text(mapping(obj, "spec"), "persistentVolumeReclaimPolicy"),
        ),
        Column("Status", _phase),
        Column("Claim", _claim),
        Column("StorageClass", _storage_class),
        Column("VolumeAttributesClass", _attributes_class),
        Column("Reason", lambda obj, now: text(mapping(obj, "status"), "reason")),
        AGE,
        Column("VolumeMode", _volume_mode, priority=1),
    )
)
CLAIMS = Layout(
    (
        NAME,
        Column("Status", _phase),
        Column("Volume", lambda obj, now: text(mapping(obj, "spec"), "volumeName")),
        Column("Capacity", _granted_size),
        Column("Access Modes", _granted_modes),
        Column("StorageClass", _storage_class),
        Column("VolumeAttributesClass", _attributes_class),
        AGE,
        Column("VolumeMode", _volume_mode, priority=1),
    )
)
