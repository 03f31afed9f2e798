"""What a reconciler may see and do."""

from __future__ import annotations

from dataclasses import dataclass

from posse.controllers.runtime.expectations import Expectations
from posse.controllers.runtime.informing import Informer
from posse.kube.connection import Connection
from posse.kube.events import Recorder
from posse.objects.kinds import Kind
from posse.objects.ownership import Key, Manifest
from posse.world import World


@dataclass(frozen=True, slots=True)
class Context:
    """The connection for writes, the caches for reads.

    Cached objects are shared: they are read, never changed. Only kinds that the controller
    declared (`kind`, `owns`, `watches`, `reads`) can be asked for.
    """

    connection: Connection
    world: World
    recorder: Recorder
    informers: dict[Kind, Informer]
    expectations: Expectations

    def get(self, kind: Kind, key: Key) -> Manifest | None:
        """The cached object; None when there is none, or not yet."""
        return self.informers[kind].get(key)

    def wrote(self, kind: Kind, base: Manifest, answer: Manifest) -> None:
        """The answer to a change of `base`: `get` shows it until the cache has moved on."""
        self.informers[kind].wrote(base, answer)

    def owned(self, kind: Kind, uid: str) -> list[Manifest]:
        """The cached objects controlled by that uid, sorted by name."""
        return self.informers[kind].owned(uid)

    def all(self, kind: Kind) -> list[Manifest]:
        """Every cached object of the kind, sorted by namespace and name."""
        return self.informers[kind].all()
