"""What every object carries, and how objects are read.

The structs name only the fields that Posse reads; whatever else a server sends is skipped while
decoding. An object that is to be written back whole is kept as a dict instead.

Servers send `null` or nothing for an empty collection, and both read as an empty one: no reader
ever meets None where a collection is declared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Optional, TypeVar

import msgspec
from msgspec import field

Key = tuple[str, str]
"""(namespace, name); the namespace of a cluster-scoped object is empty."""

T = TypeVar("T")

if TYPE_CHECKING:
    Nullable = Annotated[T, "null reads as empty"]
else:
    Nullable = Optional[T]  # noqa: UP045 - the type variable must be given later

Amount = str | int | float
"""A quantity as it stands in JSON; `posse.objects.quantity` gives it meaning."""


class KubeStruct(msgspec.Struct, rename="camel", gc=False, omit_defaults=True):
    """Base of all structs: camelCase on the wire, defaults left out, no cycles to collect."""


class FrozenStruct(msgspec.Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """Base of the small values that are compared and kept as keys of a mapping."""


class OwnerReference(KubeStruct, kw_only=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: Nullable[bool] = False
    block_owner_deletion: Nullable[bool] = False


class ObjectMeta(KubeStruct, kw_only=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    generate_name: str = ""
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: Nullable[dict[str, str]] = field(default_factory=dict)
    annotations: Nullable[dict[str, str]] = field(default_factory=dict)
    owner_references: Nullable[list[OwnerReference]] = field(default_factory=list)
    finalizers: Nullable[list[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.labels is None:
            self.labels = {}
        if self.annotations is None:
            self.annotations = {}
        if self.owner_references is None:
            self.owner_references = []
        if self.finalizers is None:
            self.finalizers = []

    @property
    def key(self) -> Key:
        return (self.namespace, self.name)

    @property
    def deleting(self) -> bool:
        return self.deletion_timestamp is not None

    @property
    def controller(self) -> OwnerReference | None:
        """The one owner that manages this object, if any."""
        for owner in self.owner_references:
            if owner.controller:
                return owner
        return None


class KubeObject(KubeStruct):
    """Anything that has a name of its own."""

    metadata: Nullable[ObjectMeta] = field(default_factory=ObjectMeta)

    def __post_init__(self) -> None:
        if self.metadata is None:
            self.metadata = ObjectMeta()

    @property
    def key(self) -> Key:
        return self.metadata.key


class Condition(KubeStruct, kw_only=True):
    """One entry of `status.conditions`, of whichever kind."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None
    last_update_time: str | None = None
    last_probe_time: str | None = None
    last_heartbeat_time: str | None = None
    observed_generation: int | None = None
    transition_id: str = field(default="", name="transitionID")


def without_nulls(value: Any) -> Any:
    """The same data with every null member of a mapping left out, as if it had never been sent."""
    if isinstance(value, dict):
        return {name: without_nulls(item) for name, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value


def from_raw(raw: Any, model: type[T]) -> T:
    """A struct of a raw dict that people may have written, with nulls anywhere in it.

    msgspec.ValidationError says what does not fit.
    """
    try:
        return msgspec.convert(raw, model)
    except msgspec.ValidationError:
        return msgspec.convert(without_nulls(raw), model)
