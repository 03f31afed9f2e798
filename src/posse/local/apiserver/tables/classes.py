"""Classes of storage and drivers in a table."""

from __future__ import annotations

from typing import Any, TypeAlias

from posse.local.apiserver.tables.layout import Cell, Column, Layout
from posse.local.apiserver.tables.reading import AGE, NAME
from posse.objects.raw import mapping, mappings, text, texts
from posse.objects.volumes import is_default

Object: TypeAlias = dict[str, Any]


def _class_name(storage_class: Object, now: float) -> str:
    name = text(mapping(storage_class, "metadata"), "name")
    return f"{name} (default)" if is_default(storage_class) else name


def _said(name: str, otherwise: Any) -> Cell:
    def read(obj: Object, now: float) -> Any:
        value = obj.get(name)
        return otherwise if value is None else value

    return read


def _of_driver(name: str, otherwise: bool) -> Cell:
    def read(driver: Object, now: float) -> Any:
        value = mapping(driver, "spec").get(name)
        return otherwise if value is None else value

    return read


def _audiences(driver: Object, now: float) -> str:
    requests = mapping(driver, "spec").get("tokenRequests")
    if requests is None:
        return "<unset>"
    return ",".join(text(one, "audience") for one in mappings(driver, "spec", "tokenRequests"))


def _modes(driver: Object, now: float) -> str:
    return ",".join(texts(mapping(driver, "spec"), "volumeLifecycleModes")) or "<none>"


CLASSES = Layout(
    (
        Column("Name", _class_name, format="name"),
        Column("Provisioner", _said("provisioner", "")),
        Column("ReclaimPolicy", _said("reclaimPolicy", "Delete")),
        Column("VolumeBindingMode", _said("volumeBindingMode", "Immediate")),
        Column("AllowVolumeExpansion", _said("allowVolumeExpansion", False)),
        AGE,
    )
)
CSI_NODES = Layout(
    (
        NAME,
        Column("Drivers", lambda obj, now: len(mappings(obj, "spec", "drivers")), type="integer"),
        AGE,
    )
)
DRIVERS = Layout(
    (
        NAME,
        Column("AttachRequired", _of_driver("attachRequired", True), type="boolean"),
        Column("PodInfoOnMount", _of_driver("podInfoOnMount", False), type="boolean"),
        Column("StorageCapacity", _of_driver("storageCapacity", False), type="boolean"),
        Column("TokenRequests", _audiences),
        Column("RequiresRepublish", _of_driver("requiresRepublish", False), type="boolean"),
        Column("Modes", _modes),
        AGE,
    )
)
