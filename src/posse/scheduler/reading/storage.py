"""Keeps what is known of storage in step with its caches, and says whom a change concerns."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import TypeVar

from posse.kube.cache import Change
from posse.objects.meta import Key
from posse.objects.volumes import (
    CsiDriver,
    CsiNode,
    CsiStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from posse.scheduler.reading.volumes import Shelves

K = TypeVar("K")
V = TypeVar("V")


class Storage:
    """`read_again` is told the claims whose pods may have another shape now; `limits_changed` the
    node that attaches another number of volumes, or None for all."""

    def __init__(
        self,
        nodes: Container[str],
        read_again: Callable[[list[Key]], None],
        limits_changed: Callable[[str | None], None],
    ) -> None:
        self.shelves = Shelves(nodes)
        self._read_again = read_again
        self._limits_changed = limits_changed

    def claim(self, change: Change[PersistentVolumeClaim]) -> None:
        claim = change.new or change.old
        if claim is not None:
            _keep(self.shelves.claims, claim.key, change.new)
            self._read_again([claim.key])

    def volume(self, change: Change[PersistentVolume]) -> None:
        volume = change.new or change.old
        if volume is None:
            return
        _keep(self.shelves.volumes, volume.metadata.name, change.new)
        owner = volume.spec.claim_ref
        if owner is not None:
            self._read_again([(owner.namespace, owner.name)])
        else:
            self._read_again(self.shelves.naming(volume.metadata.name))

    def storage_class(self, change: Change[StorageClass]) -> None:
        if (known := change.new or change.old) is not None:
            _keep(self.shelves.classes, known.metadata.name, change.new)
            self._read_again(self.shelves.unbound())

    def csi_driver(self, change: Change[CsiDriver]) -> None:
        if (driver := change.new or change.old) is not None:
            _keep(self.shelves.drivers, driver.metadata.name, change.new)
            self._read_again(self.shelves.unbound())

    def csi_capacity(self, change: Change[CsiStorageCapacity]) -> None:
        if (capacity := change.new or change.old) is not None:
            _keep(self.shelves.capacities, capacity.key, change.new)
            self._read_again(self.shelves.unbound())

    def csi_node(self, change: Change[CsiNode]) -> None:
        """How many volumes a node takes. Most drivers say so on all their nodes or on none."""
        if (node := change.new or change.old) is None:
            return
        if self.shelves.set_limits(node.metadata.name, change.new):
            self._limits_changed(None)
            self._read_again(self.shelves.in_use())
        else:
            self._limits_changed(node.metadata.name)


def _keep(known: dict[K, V], key: K, value: V | None) -> None:
    if value is None:
        known.pop(key, None)
    else:
        known[key] = value
