"""What pods say about nodes and about one another, in the words of Kubernetes.

Plain values that compare and hash: pods of one template say the same, and are the same to the
engine. A term that makes no sense (an operator nobody knows, a bound that is no number) matches
nothing, as in kube-scheduler.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

ANY_ADDRESS: Final = "0.0.0.0"
_LARGEST_BOUND: Final = 1 << 63


class Requirement(Struct, frozen=True, cache_hash=True):
    """One label (or field) and what is asked of it."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def met(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":
                return bool(self.values) and (value is None or value not in self.values)
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case "Gt" | "Lt":
                return self._beyond(value)
            case _:
                return False

    def _beyond(self, value: str | None) -> bool:
        has = _integer(value)
        bound = _integer(self.values[0]) if len(self.values) == 1 else None
        if has is None or bound is None:
            return False
        return has > bound if self.operator == "Gt" else has < bound


def _integer(text: str | None) -> int | None:
    """Digits alone: a sign is no part of a label's value, and 64 bits must hold it."""
    if not text or not text.isascii() or not text.isdigit() or len(text) > 40:
        return None
    number = int(text)
    return number if number < _LARGEST_BOUND else None


class Selector(Struct, frozen=True, cache_hash=True):
    """All of these; an empty one matches everything."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(each.met(labels) for each in self.requirements)


class NodeTerm(Struct, frozen=True, cache_hash=True):
    """All of these labels and fields; an empty term matches no node."""

    labels: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        if not self.labels and not self.fields:
            return False
        return all(each.met(labels) for each in self.labels) and all(
            each.met({"metadata.name": name}) for each in self.fields
        )


class Choice(Struct, frozen=True, cache_hash=True):
    """A node that matches any one of these terms. `volume` names the claim that asks for it,
    `queue` the queue that does; otherwise the pod itself."""

    terms: tuple[NodeTerm, ...] = ()
    volume: str = ""
    queue: str = ""

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        return any(term.matches(name, labels) for term in self.terms)


class Preference(Struct, frozen=True, cache_hash=True):
    weight: int
    term: NodeTerm


class PodTerm(Struct, frozen=True, cache_hash=True):
    """Pods of some namespaces and labels, within one domain of a node label.

    No selector matches no pod. The pod's own namespace is among the names where it is meant.
    """

    key: str
    selector: Selector | None
    namespaces: tuple[str, ...] = ()
    namespace_selector: Selector | None = None

    def matches(
        self, namespace: str, labels: Mapping[str, str], of_namespace: Mapping[str, str]
    ) -> bool:
        if self.selector is None or not self.selector.matches(labels):
            return False
        if namespace in self.namespaces:
            return True
        return self.namespace_selector is not None and self.namespace_selector.matches(of_namespace)


class Attraction(Struct, frozen=True, cache_hash=True):
    """Not required, but better (or, where the weight is below zero, worse): the more, the more."""

    weight: int
    term: PodTerm


class Spread(Struct, frozen=True, cache_hash=True):
    """No domain of the node label has more than `max_skew` such pods more than the emptiest."""

    key: str
    max_skew: int
    selector: Selector | None
    min_domains: int = 1
    # Whether nodes the pod may not use by label, or by taint, count as domains at all.
    by_affinity: bool = True
    by_taints: bool = False


class HostPort(Struct, frozen=True, cache_hash=True):
    port: int
    protocol: str = "TCP"
    address: str = ANY_ADDRESS

    def clashes(self, other: HostPort) -> bool:
        if (self.port, self.protocol) != (other.port, other.protocol):
            return False
        return self.address == other.address or ANY_ADDRESS in (self.address, other.address)

    def __str__(self) -> str:
        where = "" if self.address == ANY_ADDRESS else f" of {self.address}"
        return f"{self.protocol} {self.port}{where}"


class Relations(Struct, frozen=True, cache_hash=True):
    """What a pod asks of the company it keeps. Most pods have none at all (see `Shape`)."""

    ports: tuple[HostPort, ...] = ()
    # Required anti-affinity: none of these near it, nor it near them.
    avoids: tuple[PodTerm, ...] = ()
    # Required affinity: pods that match all of these, in the domain of each.
    joins: tuple[PodTerm, ...] = ()
    spreads: tuple[Spread, ...] = ()
    # Claims that one pod alone may use (ReadWriteOncePod).
    claims: tuple[str, ...] = ()
    # Heeded where there is a choice: preferred affinity and anti-affinity, spread at will.
    prefers: tuple[Attraction, ...] = ()

    @property
    def binding(self) -> bool:
        """Whether any of it must be."""
        return bool(self.ports or self.avoids or self.joins or self.spreads or self.claims)
