"""The claims of a gang that wait for their first consumer: given their nodes together.

A volume is made, or taken, where its pod is going to be, so the claims of all members get their
node before the first member is bound, and the binds wait until every claim has its volume. What
does not come about in time, or comes about elsewhere, is the end of the decision, not of the gang:
the nodes are taken back from claims that have no volume yet, and it is decided again. A node where
no volume was made, whether the provisioner said so or not, would be chosen again and again: the
gang is to try others first.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence

import msgspec

from posse.engine.decisions import Seat
from posse.kube.connection import Connection
from posse.kube.errors import KubeError
from posse.objects.kinds import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM
from posse.objects.meta import Key
from posse.objects.pods import Pod
from posse.objects.volumes import (
    BOUND_BY_CONTROLLER,
    SELECTED_NODE,
    PersistentVolume,
    PersistentVolumeClaim,
)
from posse.scheduler.reading.volumes import Shelves, claims_of, reach
from posse.world import World

_log = logging.getLogger(__name__)

_LOOK_AGAIN = 0.25
# So long a claim that has been given its freedom may take to be seen free.
_SEEN_WITHIN = 5.0


class _Errand(msgspec.Struct, frozen=True):
    """One claim, the node of the first of its pods, and the volume there, if one exists."""

    claim: PersistentVolumeClaim
    node: str
    volume: PersistentVolume | None = None


class Failed(Exception):
    """Why claims could not be seen to, and the nodes to which that is due."""

    def __init__(self, why: str, *nodes: str) -> None:
        super().__init__(why)
        self.nodes = nodes


class Claimer:
    def __init__(
        self,
        connection: Connection,
        world: World,
        shelves: Shelves,
        pod_of: Callable[[str], Pod | None],
        labels_of: Callable[[str], Mapping[str, str]],
        *,
        patience: float,
    ) -> None:
        self._connection = connection
        self._world = world
        self._shelves = shelves
        self._pod_of = pod_of
        self._labels_of = labels_of
        self._patience = patience
        # Volumes that an errand is about to take; their cache does not tell yet.
        self._promised: dict[str, None] = {}

    def wants(self, seats: Sequence[Seat]) -> bool:
        """Whether any of these pods has a claim whose volume is to be chosen with its node."""
        return any(
            self._shelves.waiting(pod)
            for seat in seats
            if (pod := self._pod_of(seat.uid)) is not None and pod.spec.volumes
        )

    def awaited(self, seats: Sequence[Seat]) -> str:
        """What these pods wait for, as a sentence without a subject."""
        nodes: dict[str, str] = {}
        for seat in seats:
            pod = self._pod_of(seat.uid)
            for claim in () if pod is None else self._shelves.waiting(pod):
                nodes.setdefault(claim.metadata.name, seat.node)
        if not nodes:
            return ""
        first, node = next(iter(nodes.items()))
        others = f" and {len(nodes) - 1} more" if len(nodes) > 1 else ""
        return f"waits for the volume of claim {first} on node {node}{others}; its room is kept"

    async def claim(self, seats: Sequence[Seat]) -> Failed | None:
        """See to all claims of these pods; why that did not succeed, or nothing."""
        errands: dict[Key, _Errand] = {}
        try:
            self._plan(seats, errands)
            begun = await asyncio.gather(*map(self._begin, errands.values()))
            if why := next(filter(None, begun), ""):
                raise Failed(why)
            await self._until_bound(list(errands.values()))
            self._check(seats)
        except Failed as failure:
            await self._take_back(list(errands.values()))
            return failure
        finally:
            for errand in errands.values():
                if errand.volume is not None:
                    self._promised.pop(errand.volume.metadata.name, None)
        return None

    def _plan(self, seats: Sequence[Seat], errands: dict[Key, _Errand]) -> None:
        for seat in seats:
            pod = self._pod_of(seat.uid)
            for claim in () if pod is None else self._shelves.waiting(pod):
                if claim.key not in errands:
                    errands[claim.key] = self._errand(claim, seat.node)

    def _errand(self, claim: PersistentVolumeClaim, node: str) -> _Errand:
        if claim.metadata.annotations.get(SELECTED_NODE) == node:
            return _Errand(claim, node)
        for volume in self._shelves.matching(claim):
            if volume.metadata.name not in self._promised and self._reaches(volume, node):
                self._promised[volume.metadata.name] = None
                return _Errand(claim, node, volume)
        known = self._shelves.classes.get(claim.class_name)
        if known is None or not known.provisions:
            raise Failed(f"no volume on node {node} is left for claim {claim.metadata.name}")
        return _Errand(claim, node)

    async def _begin(self, errand: _Errand) -> str:
        """Why it could not be begun, or nothing."""
        try:
            await self._give(errand)
        except KubeError as error:
            return f"claim {errand.claim.metadata.name} could not be given its node: {error}"
        return ""

    async def _give(self, errand: _Errand) -> None:
        meta = errand.claim.metadata
        if errand.volume is None:
            if meta.annotations.get(SELECTED_NODE) != errand.node:
                await self._select(errand.claim, errand.node)
            return
        volume = errand.volume.metadata
        reference = {
            "apiVersion": PERSISTENT_VOLUME_CLAIM.api_version,
            "kind": PERSISTENT_VOLUME_CLAIM.kind,
            "namespace": meta.namespace,
            "name": meta.name,
            "uid": meta.uid,
        }
        await self._connection.patch(
            PERSISTENT_VOLUME,
            volume.name,
            {
                "metadata": {
                    "uid": volume.uid,
                    # Somebody else may have taken it.
                    "resourceVersion": volume.resource_version,
                    "annotations": {BOUND_BY_CONTROLLER: "yes"},
                },
                "spec": {"claimRef": reference},
            },
        )

    async def _select(self, claim: PersistentVolumeClaim, node: str | None) -> None:
        await self._connection.patch(
            PERSISTENT_VOLUME_CLAIM,
            claim.metadata.name,
            {"metadata": {"uid": claim.metadata.uid, "annotations": {SELECTED_NODE: node}}},
            claim.metadata.namespace,
        )

    async def _until_bound(self, errands: list[_Errand]) -> None:
        deadline = self._world.monotonic() + self._patience
        selected: dict[Key, None] = {}
        while True:
            left = [errand for errand in errands if not self._bound(errand, selected)]
            if not left:
                return
            if self._world.monotonic() >= deadline:
                raise Failed(
                    f"claim {left[0].claim.metadata.name} got no volume on node {left[0].node}"
                    f" within {self._patience:g} s",
                    *(errand.node for errand in left),
                )
            await asyncio.sleep(_LOOK_AGAIN)

    def _bound(self, errand: _Errand, selected: dict[Key, None]) -> bool:
        claim = self._shelves.claims.get(errand.claim.key)
        name = errand.claim.metadata.name
        if claim is None or claim.metadata.uid != errand.claim.metadata.uid:
            raise Failed(f"claim {name} is gone")
        if claim.bound:
            return True
        if errand.volume is None:
            on = claim.metadata.annotations.get(SELECTED_NODE)
            if on == errand.node:
                selected[claim.key] = None
            elif claim.key in selected:
                why = f"no volume could be made for claim {name} on node {errand.node}"
                raise Failed(why, errand.node)
        return False

    def _check(self, seats: Sequence[Seat]) -> None:
        """A claim that several pods share may have got a volume that not all of them reach."""
        for seat in seats:
            pod = self._pod_of(seat.uid)
            for key in () if pod is None else claims_of(pod):
                claim = self._shelves.claims.get(key)
                volume = None
                if claim is not None:
                    volume = self._shelves.volumes.get(claim.spec.volume_name)
                if volume is not None and not self._reaches(volume, seat.node):
                    raise Failed(f"node {seat.node} cannot reach the volume of claim {key[1]}")

    def _reaches(self, volume: PersistentVolume, node: str) -> bool:
        labels = self._labels_of(node)
        return all(choice.matches(node, labels) for choice in reach(volume, ""))

    async def _take_back(self, errands: list[_Errand]) -> None:
        """Claims without a volume are free to be given another node, and are known to be: whoever
        decides before that is seen can but choose the same node again."""
        freed: list[_Errand] = []
        for errand in errands:
            claim = self._shelves.claims.get(errand.claim.key)
            if errand.volume is not None or claim is None or claim.bound:
                continue
            try:
                await self._select(errand.claim, None)
                freed.append(errand)
            except KubeError as error:
                _log.info("claim %s keeps its node: %s", errand.claim.metadata.name, error)
        deadline = self._world.monotonic() + _SEEN_WITHIN
        while any(map(self._is_pinned, freed)):
            if self._world.monotonic() >= deadline:
                return
            await asyncio.sleep(_LOOK_AGAIN)

    def _is_pinned(self, errand: _Errand) -> bool:
        """Whether the claim, as it is known, has the node of the errand, and no volume."""
        claim = self._shelves.claims.get(errand.claim.key)
        if claim is None or claim.metadata.uid != errand.claim.metadata.uid or claim.bound:
            return False
        return claim.metadata.annotations.get(SELECTED_NODE) == errand.node
