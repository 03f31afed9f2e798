"""Parts of a gang that sit nearer to each other than the whole: Volcano's `subGroupPolicy`.

A policy selects pods by their labels; those of them with the same values of its keys are one part.
The first policy that selects a pod counts. As many pods of a part as it says start together, or
none of them; and so many parts are needed for a start of the gang.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from posse.engine.facts import Topology
from posse.engine.fit.terms import Selector
from posse.engine.squads import kind_of
from posse.objects.affinities import LabelSelector
from posse.objects.groups import PodGroupSpec
from posse.scheduler.reading.affinities import selector
from posse.scheduler.reading.quarantine import Unreadable
from posse.scheduler.reading.topologies import read_network_topology

_MOST = 1_000_000


class Partition(msgspec.Struct, frozen=True):
    """One policy; `name` is its place among them."""

    name: str
    chosen: Selector | None
    keys: tuple[str, ...]
    topology: Topology | None
    size: int
    number: int

    @property
    def least(self) -> int:
        """How many pods the gang needs for that."""
        return self.size * self.number

    def part_of(self, labels: Mapping[str, str]) -> str:
        """The part that a pod of these labels is in; "": none of this policy's."""
        if self.chosen is not None and not self.chosen.matches(labels):
            return ""
        values = [labels.get(key, "") for key in self.keys]
        return "" if not all(values) else "/".join([self.name, *values])


class _Policy(msgspec.Struct, rename="camel"):
    network_topology: dict[str, Any] | None = None
    sub_group_size: int | None = None
    min_sub_groups: int | None = None
    label_selector: LabelSelector | None = None
    match_label_keys: list[str] | None = None


def read_partitions(spec: PodGroupSpec) -> tuple[Partition, ...]:
    found: list[Partition] = []
    for at, written in enumerate(spec.sub_group_policy or ()):
        field = f"spec.subGroupPolicy[{at}]"
        try:
            policy = msgspec.convert(written, _Policy)
        except msgspec.ValidationError as error:
            raise Unreadable(field, str(error)) from error
        size, number = policy.sub_group_size, policy.min_sub_groups
        for name, value in (("subGroupSize", size), ("minSubGroups", number)):
            if value is not None and not 0 <= value <= _MOST:
                raise Unreadable(f"{field}.{name}", f"{value} is not from 0 to {_MOST}")
        found.append(
            Partition(
                str(at),
                None if policy.label_selector is None else selector(policy.label_selector),
                tuple(policy.match_label_keys or ()),
                read_network_topology(policy.network_topology, f"{field}.networkTopology"),
                1 if size is None else size,
                number or 0,
            )
        )
    return tuple(found)


def part_of(labels: Mapping[str, str], partitions: Sequence[Partition]) -> str:
    return next((part for each in partitions if (part := each.part_of(labels))), "")


def has_its_parts(pods: Iterable[Mapping[str, str]], partitions: Sequence[Partition]) -> bool:
    """Whether pods of these labels make as many whole parts as are needed."""
    sizes: dict[str, int] = {}
    for labels in pods:
        part = part_of(labels, partitions)
        sizes[part] = sizes.get(part, 0) + 1
    for each in partitions:
        whole = (
            part
            for part, size in sizes.items()
            if kind_of(part) == each.name and size >= max(1, each.size)
        )
        if each.number > sum(1 for _ in whole):
            return False
    return True


def nearer(partitions: Sequence[Partition]) -> tuple[tuple[str, Topology], ...]:
    """How near the parts of each policy are to sit, where it says so."""
    return tuple((each.name, each.topology) for each in partitions if each.topology is not None)


def squads(partitions: Sequence[Partition]) -> tuple[tuple[str, int, int], ...]:
    """How many of a part start together, and how many parts are needed, where that is asked."""
    return tuple(
        (each.name, max(1, each.size), each.number)
        for each in partitions
        if each.size > 1 or each.number
    )
