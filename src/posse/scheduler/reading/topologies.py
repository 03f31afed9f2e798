"""How near a gang's members are to sit, and which nodes are near each other."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from posse.engine.facts import Topology
from posse.engine.fit.hypernodes import HyperNodeFacts, Membership
from posse.objects import keys
from posse.objects.groups import PodGroupSpec
from posse.objects.hypernodes import HyperNode, HyperNodeMember
from posse.objects.pods import Pod
from posse.scheduler.reading.affinities import selector
from posse.scheduler.reading.quarantine import Unreadable

_LONGEST_PATTERN = 1024


class _NetworkTopology(msgspec.Struct, rename="camel"):
    mode: str = ""
    highest_tier_allowed: int | None = None
    highest_tier_name: str = ""


def read_topology(spec: PodGroupSpec) -> Topology | None:
    """Volcano's `networkTopology`, or Kubernetes' own `schedulingConstraints`."""
    if spec.scheduling_constraints:
        return _native(spec.scheduling_constraints)
    return read_network_topology(spec.network_topology, "spec.networkTopology")


def read_network_topology(written: dict[str, Any] | None, field: str) -> Topology | None:
    if written is None:
        return None
    try:
        asked = msgspec.convert(written, _NetworkTopology)
    except msgspec.ValidationError as error:
        raise Unreadable(field, str(error)) from error
    if asked.mode not in ("", "hard", "soft"):
        raise Unreadable(f"{field}.mode", f"{asked.mode!r} is neither hard nor soft")
    if asked.highest_tier_allowed is not None and asked.highest_tier_name:
        raise Unreadable(field, "names both a highestTierAllowed and a highestTierName")
    # Without a bound even the whole cluster will do: the nearer the better.
    bounded = asked.highest_tier_allowed is not None or bool(asked.highest_tier_name)
    return Topology(
        required=asked.mode != "soft" and bounded,
        tier=asked.highest_tier_allowed,
        tier_name=asked.highest_tier_name,
    )


def topology_named_by(pods: Iterable[Pod]) -> Topology | None:
    """How near they sit as the pods themselves say, for a group without an object.

    As Volcano reads it: whoever says a tier means it, and what is no tier bounds nothing.
    """
    said: set[tuple[str, str]] = set()
    for pod in pods:
        annotations = pod.metadata.annotations
        mode = annotations.get(keys.NETWORK_TOPOLOGY_MODE, "")
        if mode or keys.NETWORK_TOPOLOGY_TIER in annotations:
            said.add((annotations.get(keys.NETWORK_TOPOLOGY_TIER, ""), mode.lower()))
    if not said:
        return None
    text, mode = max(said)
    tier = int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None
    return Topology(required=mode != "soft" and tier is not None, tier=tier)


def _native(constraints: dict[str, Any]) -> Topology | None:
    field = "spec.schedulingConstraints.topology"
    topology = constraints.get("topology")
    if not topology:
        return None
    if not isinstance(topology, list) or len(topology) != 1 or not isinstance(topology[0], dict):
        raise Unreadable(field, "is not a list of one key")
    key = topology[0].get("key")
    if not isinstance(key, str) or not key:
        raise Unreadable(f"{field}[0].key", f"{key!r} is not the key of a node label")
    return Topology(key=key)


def read_hypernode(node: HyperNode) -> HyperNodeFacts:
    return HyperNodeFacts(
        name=node.metadata.name,
        tier=node.spec.tier,
        tier_name=node.spec.tier_name,
        members=tuple(_member(each, at) for at, each in enumerate(node.spec.members)),
    )


def _member(member: HyperNodeMember, at: int) -> Membership:
    field = f"spec.members[{at}]"
    if member.type not in ("Node", "HyperNode"):
        raise Unreadable(f"{field}.type", f"{member.type!r} is neither Node nor HyperNode")
    domains = member.type == "HyperNode"
    by = member.selector
    if by.exact_match is not None:
        if not by.exact_match.name:
            raise Unreadable(f"{field}.selector.exactMatch.name", "is empty")
        return Membership(domains, name=by.exact_match.name)
    if by.regex_match is not None:
        return Membership(domains, pattern=_pattern(by.regex_match.pattern, f"{field}.selector"))
    if by.label_match is not None and not domains:
        return Membership(labels=selector(by.label_match))
    raise Unreadable(f"{field}.selector", "selects neither by name, by pattern nor by label")


def _pattern(pattern: str, field: str) -> str:
    field = f"{field}.regexMatch.pattern"
    if not pattern or len(pattern) > _LONGEST_PATTERN:
        raise Unreadable(field, f"has {len(pattern)} characters, not from 1 to {_LONGEST_PATTERN}")
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise Unreadable(field, str(error)) from error
    return pattern
