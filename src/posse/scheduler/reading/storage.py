"""Keeps what is known of storage in step with its caches, and says whom changes concern.

One volume may concern every claim that waits for one, and volumes come by the thousand: an event
marks what it concerns, and pods are read again once per round.
"""

from __future__ import annotations

from collections.abc import Callable, Container

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


class Storage:
    """`limits_changed` is told which node attaches another number of volumes, None for all."""

    def __init__(self, nodes: Container[str], limits_changed: Callable[[str | None], None]) -> None:
        self.shelves = Shelves(nodes)
        self._limits_changed = limits_changed
        # Claims that say something else now; volumes whose claim nobody has named; and whether all
        # claims without a volume may.
        self._claims: dict[Key, None] = {}
        self._volumes: set[str] = set()
        self._unsettled = False

    def stale(self) -> list[Key]:
        """The claims whose pods may have another shape than when this was last asked."""
        found = self._claims
        if self._unsettled:
            found |= dict.fromkeys(self.shelves.unsettled(self._volumes))
        self._claims, self._volumes, self._unsettled = {}, set(), False
        return list(found)

    def claim(self, change: Change[PersistentVolumeClaim]) -> None:
        claim = change.new or change.old
        if claim is not None:
            self.shelves.set_claim(claim.key, change.new)
            self._claims[claim.key] = None

    def volume(self, change: Change[PersistentVolume]) -> None:
        volume = change.new or change.old
        if volume is None:
            return
        name, owner = volume.metadata.name, volume.spec.claim_ref
        self.shelves.set_volume(name, change.new)
        if owner is not None:
            self._claims[(owner.namespace, owner.name)] = None
        else:
            self._volumes.add(name)
            self._unsettled = True

    def storage_class(self, change: Change[StorageClass]) -> None:
        if (known := change.new or change.old) is not None:
            self.shelves.set_class(known.metadata.name, change.new)
            self._unsettled = True

    def csi_driver(self, change: Change[CsiDriver]) -> None:
        if (driver := change.new or change.old) is not None:
            self.shelves.set_driver(driver.metadata.name, change.new)
            self._unsettled = True

    def csi_capacity(self, change: Change[CsiStorageCapacity]) -> None:
        if (capacity := change.new or change.old) is not None:
            self.shelves.set_capacity(capacity.key, change.new)
            self._unsettled = True

    def csi_node(self, change: Change[CsiNode]) -> None:
        """How many volumes a node takes. Most drivers say so on all their nodes or on none."""
        if (node := change.new or change.old) is None:
            return
        if self.shelves.set_limits(node.metadata.name, change.new):
            self._limits_changed(None)
            self._claims |= dict.fromkeys(self.shelves.in_use())
        else:
            self._limits_changed(node.metadata.name)

    def node_gone(self) -> None:
        """A claim that was to get its volume there may get it elsewhere."""
        self._unsettled = True
