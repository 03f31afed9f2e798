"""Volumes: what a pod's claims say about where it can run, and which of them have no volume yet.

A bound claim binds its pod to the nodes that reach its volume. A claim of a class that waits for
its first consumer binds it to the nodes where a volume is, or can be made; its volume is chosen
together with the node (see `claiming`). Any other claim without a volume keeps its pod waiting.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator
from itertools import product
from typing import Final, TypeVar

import msgspec

from posse.engine.facts import LARGEST, Requests
from posse.engine.fit.terms import Choice, NodeTerm, Requirement, Selector
from posse.objects.meta import Amount, Key
from posse.objects.pods import Pod
from posse.objects.quantity import QuantityError, base_units
from posse.objects.volumes import (
    READ_WRITE_ONCE_POD,
    SELECTED_NODE,
    CsiDriver,
    CsiNode,
    CsiStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from posse.scheduler.reading.affinities import choice, selector
from posse.scheduler.reading.assortment import Assortment

_ZONE: Final = "topology.kubernetes.io/zone"
_REGION: Final = "topology.kubernetes.io/region"
_NEWER: Final = {
    "failure-domain.beta.kubernetes.io/zone": _ZONE,
    "failure-domain.beta.kubernetes.io/region": _REGION,
}
_PLACES: Final = (*_NEWER, _ZONE, _REGION)
_BETWEEN: Final = "__"
_MODE: Final = "Filesystem"

K = TypeVar("K")
V = TypeVar("V")


class Volumes(msgspec.Struct, frozen=True):
    """What the claims of a pod add to its shape."""

    # Where its volumes can be reached, or made.
    choices: tuple[Choice, ...] = ()
    # Claims that no two pods may use.
    exclusive: tuple[str, ...] = ()
    # What they take of each driver's attach limit.
    attachments: Requests = ()


class _Offer(msgspec.Struct, frozen=True):
    """A volume that nobody has, as claims that look for one compare it."""

    volume: PersistentVolume
    size: int
    # The nodes that reach it; None for all.
    terms: tuple[NodeTerm, ...] | None

    def suits(self, ask: _Ask) -> bool:
        spec = self.volume.spec
        return (
            self.size >= ask.size
            and (spec.volume_mode or _MODE) == ask.mode
            and ask.access_modes <= set(spec.access_modes)
            and (ask.labels is None or ask.labels.matches(self.volume.metadata.labels))
        )


class _Room(msgspec.Struct, frozen=True):
    """The largest volume that can be made somewhere."""

    key: Key
    size: int
    where: tuple[Requirement, ...]


class _Ask(msgspec.Struct, frozen=True):
    """What a claim without a volume asks for: most claims of a class ask for the same."""

    class_name: str
    size: int
    mode: str
    access_modes: frozenset[str]
    labels: Selector | None


class NotYet(Exception):
    """A pod waits for one of its claims; the sentence, without a subject, names it."""


class Shelves:
    """Claims, volumes and classes as they are known, and which pods use which claim."""

    def __init__(self, nodes: Container[str]) -> None:
        """`nodes`: the names of those there are, at any time."""
        self.nodes = nodes
        self.claims: dict[Key, PersistentVolumeClaim] = {}
        self.volumes: dict[str, PersistentVolume] = {}
        self.classes: dict[str, StorageClass] = {}
        self._drivers: dict[str, CsiDriver] = {}
        self._offers: Assortment[str, _Offer] = Assortment(
            lambda offer: (offer.size, offer.volume.metadata.name)
        )
        self._rooms: Assortment[Key, _Room] = Assortment(lambda room: room.key)
        # Where what is asked for is, or can be made (None for everywhere), until that changes.
        self._found: dict[_Ask, tuple[NodeTerm, ...] | None] = {}
        self._limits: dict[str, dict[str, int]] = {}
        # On how many nodes each driver says how much it attaches, where it does on any.
        self._limiting: Counter[str] = Counter()
        self._users: dict[Key, dict[str, None]] = {}

    # -- what there is -----------------------------------------------------------------------

    def set_claim(self, key: Key, claim: PersistentVolumeClaim | None) -> None:
        _keep(self.claims, key, claim)

    def set_volume(self, name: str, volume: PersistentVolume | None) -> None:
        _keep(self.volumes, name, volume)
        if volume is not None and _is_free(volume):
            self._offers.put(name, volume.spec.storage_class_name, _offer(volume))
        else:
            self._offers.remove(name)
        self._found.clear()

    def set_class(self, name: str, known: StorageClass | None) -> None:
        _keep(self.classes, name, known)
        self._found.clear()

    def set_driver(self, name: str, driver: CsiDriver | None) -> None:
        _keep(self._drivers, name, driver)
        self._found.clear()

    def set_capacity(self, key: Key, capacity: CsiStorageCapacity | None) -> None:
        topology = None if capacity is None else selector(capacity.node_topology)
        if capacity is not None and topology is not None:
            room = _Room(key, _largest(capacity), topology.requirements)
            self._rooms.put(key, capacity.storage_class_name, room)
        else:
            self._rooms.remove(key)
        self._found.clear()

    # -- who uses what -----------------------------------------------------------------------

    def use(self, pod: Pod) -> None:
        for key in claims_of(pod):
            self._users.setdefault(key, {})[pod.metadata.uid] = None

    def leave(self, pod: Pod) -> None:
        for key in claims_of(pod):
            users = self._users.get(key, {})
            users.pop(pod.metadata.uid, None)
            if not users:
                self._users.pop(key, None)

    def users(self, keys: Iterable[Key]) -> list[str]:
        """The uids of pods that use any of these claims."""
        found: dict[str, None] = {}
        for key in keys:
            found |= self._users.get(key, {})
        return list(found)

    def unsettled(self, volumes: Container[str]) -> list[Key]:
        """The claims in use that have no volume for good, or one of these."""
        return [
            key
            for key in self._users
            if (claim := self.claims.get(key)) is None
            or not claim.bound
            or claim.spec.volume_name in volumes
        ]

    def in_use(self) -> list[Key]:
        return list(self._users)

    # -- attach limits -----------------------------------------------------------------------

    def set_limits(self, node: str, said: CsiNode | None) -> bool:
        """What a node's drivers can attach. True when another set of drivers has limits."""
        before = set(self._limiting)
        limits = {
            driver.name: driver.allocatable.count
            for driver in (() if said is None else said.spec.drivers)
            if driver.allocatable is not None and driver.allocatable.count is not None
        }
        self._limiting.update(limits.keys())
        self._limiting.subtract(self._limits.pop(node, {}).keys())
        self._limiting = +self._limiting
        if limits:
            self._limits[node] = limits
        return set(self._limiting) != before

    def attachable(self, node: str) -> dict[str, int]:
        """In the words of resources; a driver that says nothing here attaches any number."""
        limits = self._limits.get(node, {})
        return {
            _attachments(driver): limits.get(driver, LARGEST) for driver in sorted(self._limiting)
        }

    # -- what a pod's claims say -------------------------------------------------------------

    def read(self, pod: Pod) -> Volumes | None:
        """None for a pod that has no claims. NotYet while one of them is not ready for it."""
        keys = claims_of(pod)
        if not keys:
            return None
        choices: list[Choice] = []
        attached: dict[tuple[str, str], None] = {}
        alone: list[str] = []
        for key, own in keys.items():
            claim = self.claims.get(key)
            if claim is None or (own and not _belongs(claim, pod)):
                if pod.spec.node_name:
                    continue
                raise NotYet(_missing(key, own))
            if READ_WRITE_ONCE_POD in claim.spec.access_modes:
                alone.append("/".join(key))
            try:
                choices += self._where(claim)
            except NotYet:
                if not pod.spec.node_name:
                    raise
            if (volume := self._attachment(claim)) is not None:
                attached[volume] = None
        counts: dict[str, int] = {}
        for driver, _ in attached:
            counts[_attachments(driver)] = counts.get(_attachments(driver), 0) + 1
        return Volumes(
            tuple(dict.fromkeys(choices)), tuple(sorted(alone)), tuple(sorted(counts.items()))
        )

    def waiting(self, pod: Pod) -> list[PersistentVolumeClaim]:
        """Its claims whose volume is to be chosen together with its node."""
        found = [self.claims[key] for key in claims_of(pod) if key in self.claims]
        return [claim for claim in found if not claim.bound and not claim.spec.volume_name]

    def matching(self, claim: PersistentVolumeClaim) -> Iterator[PersistentVolume]:
        """Volumes that nobody has and that would do, the smallest first, then by name."""
        ask = _ask(claim)
        return (offer.volume for offer in self._offers.of(ask.class_name) if offer.suits(ask))

    def _where(self, claim: PersistentVolumeClaim) -> list[Choice]:
        name = "/".join(claim.key)
        if claim.metadata.deleting:
            raise NotYet(f"uses claim {claim.metadata.name}, which is being deleted")
        if claim.status.phase == "Lost":
            raise NotYet(
                f"uses claim {claim.metadata.name}, whose volume {claim.spec.volume_name} is lost"
            )
        if claim.bound:
            volume = self.volumes.get(claim.spec.volume_name)
            if volume is None:
                raise NotYet(
                    f"waits for volume {claim.spec.volume_name} of claim {claim.metadata.name},"
                    " which does not exist"
                )
            return reach(volume, name)
        known = self._class_of(claim)
        if known is None or not known.waits or claim.spec.volume_name:
            raise NotYet(f"waits for claim {claim.metadata.name}, which is not bound to a volume")
        chosen = claim.metadata.annotations.get(SELECTED_NODE)
        if chosen and chosen in self.nodes:
            here = NodeTerm(fields=(Requirement("metadata.name", "In", (chosen,)),))
            return [Choice((here,), name)]
        ask = _ask(claim)
        if ask not in self._found:
            self._found[ask] = self._to_be_bound(ask, known)
        terms = self._found[ask]
        return [] if terms is None else [Choice(terms, name)]

    def _class_of(self, claim: PersistentVolumeClaim) -> StorageClass | None:
        if not claim.class_name:
            return None
        known = self.classes.get(claim.class_name)
        if known is None:
            raise NotYet(
                f"waits for storage class {claim.class_name} of claim {claim.metadata.name},"
                " which does not exist"
            )
        return known

    def _to_be_bound(self, ask: _Ask, known: StorageClass) -> tuple[NodeTerm, ...] | None:
        """The nodes that reach a volume which would do, and those where one can be made; None for
        all."""
        terms: list[NodeTerm] = []
        for offer in self._offers.of(ask.class_name):
            if not offer.suits(ask):
                continue
            if offer.terms is None:
                return None
            terms += offer.terms
        if known.provisions:
            made = self._made(ask, known)
            if made is None:
                return None
            terms += made
        return tuple(dict.fromkeys(terms))

    def _made(self, ask: _Ask, known: StorageClass) -> list[NodeTerm] | None:
        """Where a volume can be made; None for everywhere."""
        allowed: list[tuple[Requirement, ...]] = [
            tuple(
                Requirement(each.key, "In", tuple(sorted(each.values)))
                for each in term.match_label_expressions
            )
            for term in known.allowed_topologies
        ]
        roomy: list[tuple[Requirement, ...]] = [()]
        driver = self._drivers.get(known.provisioner)
        if driver is not None and driver.spec.storage_capacity:
            rooms = self._rooms.of(ask.class_name)
            roomy = [room.where for room in rooms if room.size >= ask.size]
        joined = [one + other for one, other in product(allowed or [()], roomy)]
        return None if () in joined else [NodeTerm(each) for each in joined]

    def _attachment(self, claim: PersistentVolumeClaim) -> tuple[str, str] | None:
        """The driver and the volume that takes one of its places, where it counts them."""
        volume = self.volumes.get(claim.spec.volume_name) if claim.spec.volume_name else None
        if volume is not None:
            csi = volume.spec.csi
            found = None if csi is None else (csi.driver, csi.volume_handle or volume.metadata.name)
        else:
            known = self.classes.get(claim.class_name)
            found = None if known is None else (known.provisioner, "/".join(claim.key))
        return found if found is not None and found[0] in self._limiting else None


def claims_of(pod: Pod) -> dict[Key, bool]:
    """The claims that a pod uses; True for those that are made for it alone."""
    found: dict[Key, bool] = {}
    for volume in pod.spec.volumes:
        named = volume.persistent_volume_claim
        if isinstance(named, dict) and isinstance(named.get("claimName"), str):
            found[(pod.metadata.namespace, named["claimName"])] = False
        elif isinstance(volume.ephemeral, dict):
            found[(pod.metadata.namespace, f"{pod.metadata.name}-{volume.name}")] = True
    return found


def reach(volume: PersistentVolume, name: str) -> list[Choice]:
    """The nodes that reach a volume: by its node affinity, and by the zone it is labelled with."""
    found: list[Choice] = []
    affinity = volume.spec.node_affinity
    if affinity is not None and affinity.required is not None:
        found.append(choice(affinity.required, name))
    nowhere = NodeTerm(tuple(Requirement(key, "DoesNotExist") for key in _PLACES))
    for key in _PLACES:
        value = volume.metadata.labels.get(key)
        if value is None:
            continue
        values = tuple(sorted(set(value.split(_BETWEEN))))
        terms = [NodeTerm((Requirement(key, "In", values),))]
        if key in _NEWER:
            terms.append(
                NodeTerm((Requirement(key, "DoesNotExist"), Requirement(_NEWER[key], "In", values)))
            )
        # A node that says nothing of where it is is in every zone.
        found.append(Choice((*terms, nowhere), name))
    return found


def _ask(claim: PersistentVolumeClaim) -> _Ask:
    spec = claim.spec
    return _Ask(
        claim.class_name,
        amount(spec.resources.requests.get("storage", 0)),
        spec.volume_mode or _MODE,
        frozenset(spec.access_modes),
        selector(spec.selector),
    )


def _offer(volume: PersistentVolume) -> _Offer:
    # A volume has one node affinity at most; zone labels come with volumes that are bound.
    reached = reach(volume, "")
    size = amount(volume.spec.capacity.get("storage", 0))
    return _Offer(volume, size, reached[0].terms if reached else None)


def _is_free(volume: PersistentVolume) -> bool:
    return (
        volume.spec.claim_ref is None
        and not volume.metadata.deleting
        and volume.status.phase in ("Available", "")
    )


def _keep(known: dict[K, V], key: K, value: V | None) -> None:
    if value is None:
        known.pop(key, None)
    else:
        known[key] = value


def amount(written: Amount) -> int:
    """Bytes; what cannot be read is nothing."""
    try:
        text = written if isinstance(written, (str, int)) else str(written)
        return base_units("storage", text, "storage")
    except QuantityError:
        return 0


def _largest(capacity: CsiStorageCapacity) -> int:
    said = capacity.maximum_volume_size
    said = capacity.capacity if said is None else said
    return -1 if said is None else amount(said)


def _attachments(driver: str) -> str:
    return f"attachable-volumes-csi-{driver}"


def _belongs(claim: PersistentVolumeClaim, pod: Pod) -> bool:
    return any(owner.uid == pod.metadata.uid for owner in claim.metadata.owner_references)


def _missing(key: Key, own: bool) -> str:
    if own:
        return f"waits for its claim {key[1]}, which is still to be made"
    return f"waits for claim {key[1]}, which does not exist"
