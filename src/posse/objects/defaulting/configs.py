"""Namespaces, secrets, priority classes and limits: a field or two each."""

from __future__ import annotations

import base64

from posse.objects.defaulting.filling import fill, part, tidy_quantities
from posse.objects.raw import Raw, mapping, mappings, text


def default_namespace(namespace: Raw) -> None:
    if name := text(mapping(namespace, "metadata"), "name"):
        part(part(namespace, "metadata"), "labels")["kubernetes.io/metadata.name"] = name
    spec = part(namespace, "spec")
    finalizers = spec.get("finalizers") or []
    if isinstance(finalizers, list) and "kubernetes" not in finalizers:
        spec["finalizers"] = [*finalizers, "kubernetes"]
    fill(part(namespace, "status"), "phase", "Active")


def default_secret(secret: Raw) -> None:
    """`stringData` is for writing only: it ends up in `data`, over what was there."""
    fill(secret, "type", "Opaque")
    plain = secret.get("stringData")
    if not isinstance(plain, dict):
        if plain is None:
            secret.pop("stringData", None)
        return
    data = part(secret, "data")
    for key, value in plain.items():
        if not isinstance(value, str):
            return
        data[key] = base64.b64encode(value.encode("utf-8", "surrogatepass")).decode("ascii")
    del secret["stringData"]


def default_priority_class(priority_class: Raw) -> None:
    fill(priority_class, "preemptionPolicy", "PreemptLowerPriority")
    priority_class.setdefault("value", 0)


def default_limit_range(limit_range: Raw) -> None:
    """For containers, a bound that is not given follows from those that are."""
    for item in mappings(limit_range, "spec", "limits"):
        if item.get("type") == "Container":
            limits, requests = part(item, "default"), part(item, "defaultRequest")
            for source, target in (("max", limits), ("default", requests), ("min", requests)):
                for resource, amount in mapping(item, source).items():
                    target.setdefault(resource, amount)
            for name in ("default", "defaultRequest"):
                if not item[name]:
                    del item[name]
        for name in ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio"):
            tidy_quantities(item.get(name))


def default_resource_quota(quota: Raw) -> None:
    tidy_quantities(mapping(quota, "spec").get("hard"))
    part(quota, "status")
