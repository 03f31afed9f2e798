"""How objects of one kind are created, changed and deleted; kinds differ by overriding.

Every method is synchronous: a write is decided in one step, on one state of the store. Objects
given as `new` or `obj` are the caller's own and may be changed; `old` is in the store and may not.
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from posse.local.apiserver.store import Object, Store
from posse.objects import defaulting, validating
from posse.objects.errors import FieldError
from posse.objects.kinds import Kind
from posse.objects.meta import Key
from posse.objects.schemas.core import core_schema
from posse.world import World

_canonical = msgspec.json.Encoder(order="sorted").encode


class Context:
    """What a decision may look at, and the warnings it leaves for the client."""

    __slots__ = ("store", "warnings", "world")

    def __init__(self, store: Store, world: World, warnings: list[str] | None = None) -> None:
        self.store = store
        self.world = world
        self.warnings = [] if warnings is None else warnings

    def latest(self, kind: Kind, namespace: str, name: str) -> Object | None:
        """An object as this write must see it."""
        stored = self.store.latest(kind.qualified, (namespace, name))
        return None if stored is None else stored.obj


class Scaling(msgspec.Struct, frozen=True):
    """Where a kind says how many it wants, how many there are, and which pods those are."""

    wanted: tuple[str, ...]
    present: tuple[str, ...]
    selector: tuple[str, ...] = ()


class Strategy:
    status_apart: ClassVar[bool] = False
    keeps_status_on_create: ClassVar[bool] = False
    counts_generations: ClassVar[bool] = False
    unconditional_update: ClassVar[bool] = True
    """A PUT without a resourceVersion overwrites."""
    create_on_update: ClassVar[bool] = False
    """A PUT where there is nothing creates."""
    returns_deleted: ClassVar[bool] = False
    """DELETE answers with the object rather than with a Status."""
    marks_grace: ClassVar[bool] = True
    """A deleted object that stays for a while says how many seconds it has, even none."""
    default_propagation: ClassVar[str] = ""

    def has_status(self, kind: Kind) -> bool:
        """Whether `status` is written through its own subresource alone."""
        return self.status_apart

    def scaling(self, kind: Kind) -> Scaling | None:
        """How the `scale` subresource reads and writes the kind; None where it has none."""
        return None

    def prune(self, kind: Kind, obj: Object) -> list[str]:
        """Drops the fields the kind does not have; returns their paths."""
        return core_schema(kind).prune(obj)

    def mistyped(self, kind: Kind, obj: Object) -> list[FieldError]:
        """Fields whose type alone makes the object unreadable: 400 rather than 422."""
        return core_schema(kind).validate(obj)

    def default(self, kind: Kind, obj: Object) -> None:
        defaulting.default(kind, obj)

    def admit(self, context: Context, kind: Kind, obj: Object) -> None:
        """Fills in what the cluster decides; raises Refusal where it forbids the object."""

    def prepare_create(self, context: Context, kind: Kind, obj: Object) -> None:
        """Sets what clients may not: the object has its name, uid and metadata by now."""

    def validate_create(self, kind: Kind, obj: Object) -> list[FieldError]:
        return validating.validate_create(kind, obj)

    def prepare_update(self, context: Context, kind: Kind, new: Object, old: Object) -> None:
        """Puts back what clients may not change silently."""

    def admit_update(self, context: Context, kind: Kind, new: Object, old: Object) -> None:
        """Like `admit`, for a change."""

    def validate_update(self, kind: Kind, new: Object, old: Object) -> list[FieldError]:
        return validating.validate_update(kind, new, old)

    def prepare_status(self, context: Context, kind: Kind, new: Object, old: Object) -> Object:
        """The object that results from writing `new` to the status subresource."""
        result = dict(old)
        result["metadata"] = new["metadata"]
        result.pop("status", None)
        if (status := new.get("status")) is not None:
            result["status"] = status
        return result

    def validate_status(self, kind: Kind, new: Object, old: Object) -> list[FieldError]:
        return validating.validate_status(kind, new, old)

    def grace(self, obj: Object, asked: int | None) -> int | None:
        """Seconds to wait before the object goes; None for kinds that go at once."""
        return None

    def begin_deletion(self, context: Context, kind: Kind, obj: Object) -> None:
        """Changes to an object (the caller's own) that now waits for its end."""

    def holds(self, obj: Object) -> bool:
        """Whether something other than finalizers keeps a deleted object in existence."""
        return False

    def created(self, context: Context, kind: Kind, obj: Object) -> list[tuple[Kind, Object]]:
        """Objects that come into being with this one."""
        return []

    def next_generation(self, kind: Kind, new: Object, old: Object) -> int:
        """One more when anything but metadata and status differs."""
        generation: int = old["metadata"].get("generation", 0)
        ignored = {"metadata", "apiVersion", "kind"}
        if self.has_status(kind):
            ignored.add("status")
        fields = dict.fromkeys([*new, *old])
        changed = any(
            not same(new.get(field), old.get(field)) for field in fields if field not in ignored
        )
        return generation + 1 if changed else generation


def same(one: Any, other: Any) -> bool:
    """Equal as JSON: unlike Python's equality, 1, 1.0 and true are three things."""
    return one is other or (one == other and _canonical(one) == _canonical(other))


def key_of(obj: Object) -> Key:
    metadata = obj["metadata"]
    return (metadata.get("namespace") or "", metadata["name"])
