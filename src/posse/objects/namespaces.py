"""Namespaces, as far as their names and labels go."""

from __future__ import annotations

from msgspec import field

from posse.objects.meta import Key, KubeStruct, Nullable, ObjectMeta


class Namespace(KubeStruct):
    metadata: Nullable[ObjectMeta] = field(default_factory=ObjectMeta)

    def __post_init__(self) -> None:
        if self.metadata is None:
            self.metadata = ObjectMeta()

    @property
    def key(self) -> Key:
        return ("", self.metadata.name)
