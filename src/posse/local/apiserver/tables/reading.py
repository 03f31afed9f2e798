"""Cells that many kinds share."""

from __future__ import annotations

from typing import Any, TypeAlias

from posse.local.apiserver.tables.durations import age
from posse.local.apiserver.tables.layout import Column
from posse.objects.raw import listing, mapping, mappings, strings, text

Object: TypeAlias = dict[str, Any]


def _name(obj: Object, now: float) -> str:
    return text(obj.get("metadata"), "name")


def _age(obj: Object, now: float) -> str:
    return age(mapping(obj, "metadata").get("creationTimestamp"), now)


def _created_at(obj: Object, now: float) -> str:
    return text(obj.get("metadata"), "creationTimestamp")


NAME = Column("Name", _name, format="name")
AGE = Column("Age", _age)
CREATED_AT = Column("Created At", _created_at, type="date")


def container_names(obj: Object, now: float) -> str:
    containers = mappings(obj, "spec", "template", "spec", "containers")
    return ",".join(text(container, "name") for container in containers)


def container_images(obj: Object, now: float) -> str:
    containers = mappings(obj, "spec", "template", "spec", "containers")
    return ",".join(text(container, "image") for container in containers)


def selector(obj: Object, now: float) -> str:
    """A label selector as people write it; `<none>` selects everything."""
    chosen = mapping(obj, "spec", "selector")
    terms = [(key, f"{key}={value}") for key, value in strings(chosen, "matchLabels").items()]
    for one in mappings(chosen, "matchExpressions"):
        key, values = text(one, "key"), ",".join(sorted(map(str, listing(one, "values"))))
        term = {
            "In": f"{key} in ({values})",
            "NotIn": f"{key} notin ({values})",
            "Exists": key,
            "DoesNotExist": f"!{key}",
        }.get(text(one, "operator"), "<invalid>")
        terms.append((key, term))
    return ",".join(term for _, term in sorted(terms)) or "<none>"


def labels(obj: Object, *path: str) -> str:
    """A map of labels as people write it."""
    return ",".join(f"{key}={value}" for key, value in strings(obj, *path).items()) or "<none>"


TEMPLATE = (
    Column("Containers", container_names, priority=1),
    Column("Images", container_images, priority=1),
    Column("Selector", selector, priority=1),
)
