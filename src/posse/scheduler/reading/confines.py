"""Groups of nodes that a queue's pods keep to: Volcano's `spec.affinity` of a Queue.

A node says by a label which group it is of. A queue that names groups is confined to these, those
it prefers among them; one that only names groups to keep off may use every other node. A queue that
says nothing is confined as the nearest queue above it that does.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from posse.engine.facts import Shape
from posse.engine.fit.terms import Choice, NodeTerm, Preference, Requirement
from posse.engine.queues.lineages import ROOT
from posse.objects import keys
from posse.objects.groups import Queue
from posse.scheduler.reading.quarantine import Unreadable

# Beside what pods prefer by themselves, from 1 to 100.
_LIKED = 50
# Beyond all that.
_SPARED = 1_000_000


class Confines(msgspec.Struct, frozen=True, cache_hash=True):
    choices: tuple[Choice, ...] = ()
    prefers: tuple[Preference, ...] = ()


class _Groups(msgspec.Struct):
    required: list[str] | None = msgspec.field(
        name="requiredDuringSchedulingIgnoredDuringExecution", default=None
    )
    preferred: list[str] | None = msgspec.field(
        name="preferredDuringSchedulingIgnoredDuringExecution", default=None
    )

    @property
    def any(self) -> bool:
        return bool(self.required or self.preferred)


class _Affinity(msgspec.Struct, rename="camel"):
    node_group_affinity: _Groups | None = None
    node_group_anti_affinity: _Groups | None = None


def read_confines(queue: Queue) -> Confines | None:
    """None where it says nothing of nodes."""
    if queue.spec.affinity is None:
        return None
    try:
        said = msgspec.convert(queue.spec.affinity, _Affinity)
    except msgspec.ValidationError as error:
        raise Unreadable("spec.affinity", str(error)) from error
    on, off = said.node_group_affinity or _Groups(), said.node_group_anti_affinity or _Groups()
    if not on.any and not off.any:
        return None
    barred = set(off.required or ()) - set(off.preferred or ())
    required: Requirement | None = None
    if on.any:
        named = {*(on.required or ()), *(on.preferred or ()), *(off.preferred or ())}
        required = Requirement(keys.NODE_GROUP_LABEL, "In", tuple(sorted(named - barred)))
    elif barred:
        required = Requirement(keys.NODE_GROUP_LABEL, "NotIn", tuple(sorted(barred)))
    liked = ((on.preferred, "In"), (off.preferred, "NotIn"))
    return Confines(
        () if required is None else (Choice((NodeTerm((required,)),), queue=queue.metadata.name),),
        tuple(
            Preference(_LIKED, NodeTerm((Requirement(keys.NODE_GROUP_LABEL, how, tuple(groups)),)))
            for groups, how in liked
            if groups
        ),
    )


def confines_of(name: str, queues: Mapping[str, Queue]) -> Confines | None:
    """What the queue says, or the nearest above it; one that cannot be read takes nobody anyway."""
    seen: list[str] = []
    while name and name not in seen and (queue := queues.get(name)) is not None:
        seen.append(name)
        try:
            found = read_confines(queue)
        except Unreadable:
            return None
        if found is not None:
            return found
        name = queue.spec.parent or ROOT
    return None


def sparing(confines: Confines | None, nodes: tuple[str, ...]) -> Confines | None:
    """Besides, these nodes only where there is no other: they have turned a member away."""
    if not nodes:
        return confines
    other = Requirement("metadata.name", "NotIn", nodes)
    rather = Preference(_SPARED, NodeTerm(fields=(other,)))
    if confines is None:
        return Confines(prefers=(rather,))
    return msgspec.structs.replace(confines, prefers=(*confines.prefers, rather))


def confined(shape: Shape, to: Confines | None) -> Shape:
    """The same pod, on these nodes only."""
    if to is None:
        return shape
    where = shape.constraints
    return msgspec.structs.replace(
        shape,
        constraints=msgspec.structs.replace(
            where, choices=where.choices + to.choices, prefers=where.prefers + to.prefers
        ),
    )
