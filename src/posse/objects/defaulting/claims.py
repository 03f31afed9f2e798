"""Persistent volumes, claims, and where services lead."""

from __future__ import annotations

from posse.objects.defaulting.filling import fill, part, tidy_quantities
from posse.objects.raw import Raw, mapping, mappings


def default_volume(volume: Raw) -> None:
    spec = part(volume, "spec")
    fill(spec, "persistentVolumeReclaimPolicy", "Retain")
    fill(spec, "volumeMode", "Filesystem")
    if isinstance(spec.get("hostPath"), dict) and spec["hostPath"].get("type") is None:
        spec["hostPath"]["type"] = ""
    tidy_quantities(spec.get("capacity"))
    fill(part(volume, "status"), "phase", "Pending")


def default_claim(claim: Raw) -> None:
    spec = part(claim, "spec")
    fill(spec, "volumeMode", "Filesystem")
    resources = mapping(spec, "resources")
    for name in ("limits", "requests"):
        tidy_quantities(resources.get(name))
    fill(part(claim, "status"), "phase", "Pending")


def default_endpoints(endpoints: Raw) -> None:
    for subset in mappings(endpoints, "subsets"):
        for port in mappings(subset, "ports"):
            fill(port, "protocol", "TCP")


def default_endpoint_slice(endpoint_slice: Raw) -> None:
    for port in mappings(endpoint_slice, "ports"):
        if port.get("name") is None:
            port["name"] = ""
        fill(port, "protocol", "TCP")
