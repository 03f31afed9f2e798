"""Classes of storage, drivers and their capacities."""

from __future__ import annotations

from posse.objects.defaulting.filling import part
from posse.objects.quantity import QuantityError, canonical_milli
from posse.objects.raw import Raw

_DRIVERS = {
    "attachRequired": True,
    "podInfoOnMount": False,
    "storageCapacity": False,
    "fsGroupPolicy": "ReadWriteOnceWithFSType",
    "requiresRepublish": False,
    "seLinuxMount": False,
}


def default_class(storage_class: Raw) -> None:
    for name, value in (("reclaimPolicy", "Delete"), ("volumeBindingMode", "Immediate")):
        if storage_class.get(name) is None:
            storage_class[name] = value


def default_csi_node(node: Raw) -> None:
    spec = part(node, "spec")
    if not spec.get("drivers"):
        spec["drivers"] = None


def default_driver(driver: Raw) -> None:
    spec = part(driver, "spec")
    for name, value in _DRIVERS.items():
        if spec.get(name) is None:
            spec[name] = value
    if not spec.get("volumeLifecycleModes"):
        spec["volumeLifecycleModes"] = ["Persistent"]


def default_capacity(capacity: Raw) -> None:
    for name in ("capacity", "maximumVolumeSize"):
        if capacity.get(name) is None:
            continue
        try:
            capacity[name] = canonical_milli(capacity[name])
        except QuantityError:  # stays, to be refused
            continue
