"""What an object says that can be understood as nothing, or as nothing that somebody meant.

It keeps nobody from running: it is said once, and ignored. What the scheduler wrote itself, and
what seats depend on, is read strictly instead (`quarantine`).
"""

from __future__ import annotations

from collections.abc import Iterator

from posse.objects import keys
from posse.objects.groups import PodGroup
from posse.objects.kinds import Kind
from posse.objects.meta import ObjectMeta
from posse.objects.pods import Pod
from posse.scheduler.reading.claims import group_named_by, minimum_named_by, said_minimum
from posse.scheduler.reading.estimates import read_duration
from posse.scheduler.reading.groups import is_native
from posse.scheduler.reading.pods import NO, YES

_TIMES = (
    keys.START_TIMEOUT,
    keys.MAX_RUNTIME,
    keys.MIN_RUNTIME,
    keys.CHECKPOINT_INTERVAL,
    keys.COOLDOWN_TIME,
)
_LONGEST = 60
_ON_BOTH = (keys.COOLDOWN_TIME, keys.PREEMPTABLE)
_ANNOTATIONS = {
    *_TIMES,
    *_ON_BOTH,
    keys.GANG,
    keys.GROUP_MIN_MEMBER,
    keys.VOLCANO_GROUP_MIN_MEMBER,
}
_LABELS = {*_ON_BOTH, keys.BARE_GROUP_LABEL}


def doubts_of_pod(pod: Pod) -> Iterator[str]:
    """Nearly all pods say nothing of the kind."""
    meta = pod.metadata
    if not _ANNOTATIONS.isdisjoint(meta.annotations) or not _LABELS.isdisjoint(meta.labels):
        yield from _of_wishes(meta)
        yield from _of_company(pod)


def doubts_of_group(group: PodGroup, kind: Kind) -> Iterator[str]:
    yield from _of_wishes(group.metadata)
    if is_native(kind):
        return
    least = group.spec.min_member
    if least is not None and least < 1:
        yield f"spec.minMember: {least} is less than 1; it starts with its first pod"
    of_roles = sum((group.spec.min_task_member or {}).values())
    if of_roles > max(1, least or 0):
        yield (
            f"spec.minTaskMember adds up to {of_roles}, more than spec.minMember"
            f" ({max(1, least or 0)}); it is ignored"
        )


def _of_wishes(meta: ObjectMeta) -> Iterator[str]:
    for key in _TIMES:
        text = _said(meta, key)
        if text is not None and read_duration(text) is None:
            what = f"{key}: {_quoted(text)} is not a duration such as 30s, 5m or 1h30m"
            yield f"{what}; it is ignored"
    text = _said(meta, keys.PREEMPTABLE)
    if text is not None and text not in (*YES, *NO):
        what = f"{keys.PREEMPTABLE}: {_quoted(text)} is neither true nor false"
        yield f"{what}; it is taken for false"


def _of_company(pod: Pod) -> Iterator[str]:
    meta = pod.metadata
    text = meta.annotations.get(keys.GANG)
    if text not in (None, "true", "false"):
        yield f"{keys.GANG}: {_quoted(text)} is neither true nor false; it is taken for true"
    if meta.labels.get(keys.BARE_GROUP_LABEL) == group_named_by(pod):
        key, text = keys.BARE_MINIMUM_LABEL, meta.labels.get(keys.BARE_MINIMUM_LABEL)
        but = "nobody knows how many start together"
    else:
        key, text = said_minimum(pod)
        but = "the pod is a gang of its own"
        if group_named_by(pod) or meta.controller is None:
            return
    if text and not minimum_named_by(pod):
        yield f"{key}: {_quoted(text)} is not a whole number from 1 on; {but}"


def _quoted(text: str | None) -> str:
    """As much of it as tells which one it is."""
    said = text or ""
    return repr(said if len(said) <= _LONGEST else f"{said[:_LONGEST]}...")


def _said(meta: ObjectMeta, key: str) -> str | None:
    said = meta.annotations.get(key)
    return meta.labels.get(key, said) if key in _ON_BOTH else said
