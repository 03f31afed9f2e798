"""Affinities, spread constraints and host ports: from the words of a pod to those of the engine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from posse.engine.fit.terms import (
    ANY_ADDRESS,
    Attraction,
    Choice,
    HostPort,
    NodeTerm,
    PodTerm,
    Preference,
    Relations,
    Requirement,
    Selector,
    Spread,
)
from posse.objects.affinities import (
    Affinity,
    Expression,
    LabelSelector,
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    PodAffinity,
    PodAffinityTerm,
    TopologySpreadConstraint,
)
from posse.objects.pods import Pod, PodSpec
from posse.scheduler.reading.quarantine import Unreadable

T = TypeVar("T")

# What a spread at will weighs beside preferred affinities, which weigh from 1 to 100.
_AT_WILL = -50


def read_affinity(spec: PodSpec) -> Affinity:
    return Affinity() if spec.affinity is None else _read(spec.affinity, Affinity, "spec.affinity")


def choices(nodes: NodeAffinity | None) -> tuple[Choice, ...]:
    """The required node affinity, if there is one."""
    return () if nodes is None or nodes.required is None else (choice(nodes.required),)


def choice(selector: NodeSelector, volume: str = "") -> Choice:
    return Choice(tuple(_node_term(each) for each in selector.node_selector_terms), volume)


def preferences(nodes: NodeAffinity | None) -> tuple[Preference, ...]:
    return tuple(
        Preference(each.weight, _node_term(each.preference))
        for each in (() if nodes is None else nodes.preferred)
        if each.weight
    )


def relations(
    pod: Pod, affinity: Affinity, ports: tuple[HostPort, ...] = (), claims: tuple[str, ...] = ()
) -> Relations | None:
    """None where the pod asks nothing of the company it keeps: the case that costs nothing."""
    avoids = affinity.pod_anti_affinity or PodAffinity()
    joins = affinity.pod_affinity or PodAffinity()
    spreads, at_will = _spreads(pod)
    found = Relations(
        ports=ports,
        avoids=_pod_terms(avoids.required, pod),
        joins=_pod_terms(joins.required, pod),
        spreads=spreads,
        claims=claims,
        prefers=(*_attractions(joins, pod, 1), *_attractions(avoids, pod, -1), *at_will),
    )
    return None if found == Relations() else found


def host_ports(spec: PodSpec) -> tuple[HostPort, ...]:
    """Those of the containers that run as long as the pod does."""
    lasting = [each for each in spec.init_containers if each.restart_policy == "Always"]
    ports = {
        HostPort(port.host_port, port.protocol or "TCP", port.host_ip or ANY_ADDRESS): None
        for container in (*lasting, *spec.containers)
        for port in container.ports
        if port.host_port > 0
    }
    return tuple(sorted(ports, key=lambda port: (port.port, port.protocol, port.address)))


def selector(written: LabelSelector | None) -> Selector | None:
    """None matches nothing, an empty one everything."""
    if written is None:
        return None
    labels = [Requirement(key, "In", (value,)) for key, value in written.match_labels.items()]
    return _selector([*labels, *map(_requirement, written.match_expressions)])


def _pod_terms(terms: Iterable[PodAffinityTerm], pod: Pod) -> tuple[PodTerm, ...]:
    return tuple(_pod_term(term, pod) for term in terms)


def _pod_term(term: PodAffinityTerm, pod: Pod) -> PodTerm:
    namespaces = sorted(set(term.namespaces))
    if not namespaces and term.namespace_selector is None:
        namespaces = [pod.metadata.namespace]
    labels = pod.metadata.labels
    return PodTerm(
        term.topology_key,
        _narrowed(
            selector(term.label_selector),
            [*_like(labels, term.match_label_keys, "In")],
            [*_like(labels, term.mismatch_label_keys, "NotIn")],
        ),
        tuple(namespaces),
        selector(term.namespace_selector),
    )


def _attractions(affinity: PodAffinity, pod: Pod, sign: int) -> list[Attraction]:
    return [
        Attraction(sign * each.weight, _pod_term(each.pod_affinity_term, pod))
        for each in affinity.preferred
        if each.weight
    ]


def _spreads(pod: Pod) -> tuple[tuple[Spread, ...], list[Attraction]]:
    """Those that must be kept to, and those that are kept to at will."""
    found: list[Spread] = []
    at_will: list[Attraction] = []
    for index, raw in enumerate(pod.spec.topology_spread_constraints):
        field = f"spec.topologySpreadConstraints[{index}]"
        each = _read(raw, TopologySpreadConstraint, field)
        alike = _narrowed(
            selector(each.label_selector),
            _like(pod.metadata.labels, each.match_label_keys, "In"),
        )
        if each.when_unsatisfiable == "ScheduleAnyway":
            near = PodTerm(each.topology_key, alike, (pod.metadata.namespace,))
            at_will.append(Attraction(_AT_WILL, near))
            continue
        found.append(
            Spread(
                each.topology_key,
                each.max_skew,
                alike,
                1 if each.min_domains is None else each.min_domains,
                by_affinity=each.node_affinity_policy != "Ignore",
                by_taints=each.node_taints_policy == "Honor",
            )
        )
    return tuple(found), at_will


def _like(labels: Mapping[str, str], keys: Iterable[str], operator: str) -> list[Requirement]:
    """The pod's own values of these labels, where it has them."""
    return [Requirement(key, operator, (labels[key],)) for key in keys if key in labels]


def _narrowed(found: Selector | None, *more: list[Requirement]) -> Selector | None:
    if found is None:
        return None
    return _selector([*found.requirements, *(each for some in more for each in some)])


def _selector(requirements: list[Requirement]) -> Selector:
    """In one order, each once: equal selectors compare equal however they were written."""
    distinct = dict.fromkeys(requirements)
    return Selector(tuple(sorted(distinct, key=lambda r: (r.key, r.operator, r.values))))


def _node_term(term: NodeSelectorTerm) -> NodeTerm:
    return NodeTerm(
        tuple(map(_requirement, term.match_expressions)),
        tuple(map(_requirement, term.match_fields)),
    )


def _requirement(written: Expression) -> Requirement:
    return Requirement(written.key, written.operator, tuple(sorted(set(written.values))))


def _read(raw: Any, model: type[T], field: str) -> T:
    try:
        return msgspec.convert(raw, model)
    except (msgspec.ValidationError, RecursionError) as error:
        raise Unreadable(field, str(error)) from error
