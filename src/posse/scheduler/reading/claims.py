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
    annotations, labels = pod.metadata.annotations, pod.metadata.labels
    if annotations.get(keys.GANG) == "false":
        return ""
    if pod.spec.scheduling_group is not None and pod.spec.scheduling_group.pod_group_name:
        return pod.spec.scheduling_group.pod_group_name
    if (ref := pod.spec.workload_ref) is not None and ref.name:
        # No name has a slash: such a gang is never mistaken for one with a PodGroup.
        return f"{ref.name}/{ref.pod_group}/{ref.pod_group_replica_key}".removesuffix("/")
    return (
        annotations.get(keys.GROUP_NAME)
        or annotations.get(keys.VOLCANO_GROUP_NAME)
        or labels.get(keys.COSCHEDULING_GROUP_LABEL)
        or labels.get(keys.BARE_GROUP_LABEL)
        or _shadow(pod)
    )


def _shadow(pod: Pod) -> str:
    """What kube-batch calls a shadow PodGroup: the pods of one controller, which say how many of
    them start together. No PodGroup has the uid of a controller for a name."""
    _, said = said_minimum(pod)
    if not said:
        return ""
    owner = pod.metadata.controller
    return owner.uid if owner is not None and _whole(said) else ""


def said_minimum(pod: Pod) -> tuple[str, str]:
    """How many pods of its controller start together, and by which annotation it says so."""
    annotations = pod.metadata.annotations
    for key in (keys.GROUP_MIN_MEMBER, keys.VOLCANO_GROUP_MIN_MEMBER):
        if said := annotations.get(key):
            return key, said
    return "", ""


def minimum_named_by(pod: Pod) -> int:
    """How many start together as the pod itself says, for a group without an object; 0: unsaid."""
    labels = pod.metadata.labels
    if labels.get(keys.BARE_GROUP_LABEL):
        return _whole(labels.get(keys.BARE_MINIMUM_LABEL, ""))
    _, said = said_minimum(pod)
    return _whole(said) if said and group_named_by(pod) == _shadow(pod) else 0


def _whole(text: str) -> int:
    """The number, or 0 for what is none."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0


def is_alone(gang: str) -> bool:
    """Whether the key is that of one pod, which has no PodGroup."""
    return gang.startswith(_ALONE)


def role_of(pod: Pod) -> str:
    meta = pod.metadata
    return (
        meta.annotations.get(keys.TASK_SPEC)
        or meta.labels.get(keys.TASK_SPEC)
        or meta.labels.get(keys.REPLICA_TYPE_LABEL)
        or ""
    )
