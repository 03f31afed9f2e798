"""Which pods are ours, and which gang each belongs to."""

from __future__ import annotations

import msgspec

from posse.objects import keys
from posse.objects.pods import Pod

_ALONE = "pod:"


class Claims(msgspec.Struct, frozen=True):
    """The schedulerNames that Posse answers to."""

    names: tuple[str, ...] = ("posse",)
    everything: bool = False

    def include(self, pod: Pod) -> bool:
        return self.everything or pod.spec.scheduler_name in self.names

    def gang_of(self, pod: Pod) -> str | None:
        """The key of the pod's gang; None for a pod that somebody else schedules."""
        if not self.include(pod):
            return None
        group = group_named_by(pod)
        if group:
            return f"{pod.metadata.namespace}/{group}"
        return f"{_ALONE}{pod.metadata.namespace}/{pod.metadata.name}"


def group_named_by(pod: Pod) -> str:
    """The PodGroup that the pod names; empty for one that is a group of its own."""
    annotations = pod.metadata.annotations
    if annotations.get(keys.GANG) == "false":
        return ""
    return annotations.get(keys.GROUP_NAME) or annotations.get(keys.VOLCANO_GROUP_NAME) or ""


def is_alone(gang: str) -> bool:
    """Whether the key is that of one pod, which has no PodGroup."""
    return gang.startswith(_ALONE)


def role_of(pod: Pod) -> str:
    meta = pod.metadata
    return meta.annotations.get(keys.TASK_SPEC) or meta.labels.get(keys.REPLICA_TYPE_LABEL) or ""
