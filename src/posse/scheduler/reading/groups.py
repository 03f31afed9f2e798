"""PodGroups: how many start together, who is still to come, and which seats are held for them.

`posse.dev/expects` and `posse.dev/held` are read strictly: a scheduler that guessed at them could
start workers without room for their launcher.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from posse.engine.facts import DEFAULT_QUEUE, Expected, Shape
from posse.objects import keys
from posse.objects.groups import PodGroup
from posse.objects.kinds import POD_GROUP, POD_GROUPS, Kind
from posse.objects.meta import Amount
from posse.objects.pods import Toleration
from posse.objects.quantity import QuantityError, base_units
from posse.scheduler.reading.pods import constraints, created_at, requests
from posse.scheduler.reading.quarantine import Unreadable

MOST_EXPECTED = 100_000

PENDING = "Pending"
INQUEUE = "Inqueue"
RUNNING = "Running"
UNKNOWN = "Unknown"
COMPLETED = "Completed"
STARTED = (RUNNING, UNKNOWN)


class GroupTerms(msgspec.Struct, frozen=True):
    """What a PodGroup says by itself, before its pods are looked at."""

    uid: str
    generation: int
    queue: str
    min_member: int
    priority_class: str
    created: float
    ran: bool
    kind: Kind = POD_GROUP
    expects: tuple[Expected, ...] = ()
    holds: tuple[tuple[str, str], ...] = ()


def speaking(groups: Mapping[Kind, PodGroup]) -> Kind | None:
    """Which of the groups that several APIs have under one name speaks for the gang.

    What a user made comes before what a controller made for a job.
    """
    there = [kind for kind in POD_GROUPS if kind in groups]
    users = [kind for kind in there if groups[kind].metadata.controller is None]
    return next(iter(users or there), None)


def read_group(group: PodGroup, kind: Kind = POD_GROUP) -> GroupTerms:
    meta, spec = group.metadata, group.spec
    return GroupTerms(
        uid=meta.uid,
        generation=meta.generation,
        queue=spec.queue or DEFAULT_QUEUE,
        min_member=min_member(group),
        priority_class=spec.priority_class_name,
        created=created_at(meta),
        ran=group.status.phase in STARTED,
        kind=kind,
        expects=read_expects(meta.annotations.get(keys.EXPECTS)),
        holds=read_holds(meta.annotations.get(keys.HELD)),
    )


def min_member(group: PodGroup) -> int:
    """A group that names no minimum has started with its first pod."""
    return max(1, group.spec.min_member or 0)


class _Announced(msgspec.Struct, rename="camel", forbid_unknown_fields=True, kw_only=True):
    role: str
    count: int
    requests: dict[str, Amount] = {}
    node_selector: dict[str, str] = {}
    tolerations: list[Toleration] = []


def read_expects(text: str | None) -> tuple[Expected, ...]:
    if text is None:
        return ()
    field = f"metadata.annotations[{keys.EXPECTS}]"
    try:
        announced = msgspec.json.decode(text, type=list[_Announced])
    except (ValueError, RecursionError) as error:
        raise Unreadable(field, str(error)) from error
    roles: dict[str, Expected] = {}
    for index, entry in enumerate(announced):
        at = f"{field}[{index}]"
        if not entry.role:
            raise Unreadable(f"{at}.role", "is empty")
        if entry.role in roles:
            raise Unreadable(f"{at}.role", f"{entry.role!r} is announced twice")
        if not 0 <= entry.count <= MOST_EXPECTED:
            raise Unreadable(f"{at}.count", f"{entry.count} is not from 0 to {MOST_EXPECTED}")
        try:
            amounts = {
                resource: base_units(resource, amount, f"{at}.requests[{resource}]")
                for resource, amount in entry.requests.items()
            }
        except QuantityError as error:
            raise Unreadable(error.field, f"{error.value!r} {error.why}") from error
        asked = requests(amounts, f"{at}.requests")
        shape = Shape(asked, constraints(entry.node_selector, entry.tolerations))
        roles[entry.role] = Expected(role=entry.role, count=entry.count, shape=shape)
    return tuple(roles[role] for role in sorted(roles))


def read_holds(text: str | None) -> tuple[tuple[str, str], ...]:
    if text is None:
        return ()
    field = f"metadata.annotations[{keys.HELD}]"
    try:
        held = msgspec.json.decode(text, type=dict[str, list[str]])
    except (ValueError, RecursionError) as error:
        raise Unreadable(field, str(error)) from error
    if any(not node for nodes in held.values() for node in nodes):
        raise Unreadable(field, "holds a seat on a node without a name")
    return tuple(sorted((role, node) for role, nodes in held.items() for node in nodes))


def write_holds(holds: tuple[tuple[str, str], ...]) -> str:
    """The annotation's value: the same seats always give the same text."""
    by_role: dict[str, list[str]] = {}
    for role, node in sorted(holds):
        by_role.setdefault(role, []).append(node)
    return msgspec.json.encode(by_role).decode()
