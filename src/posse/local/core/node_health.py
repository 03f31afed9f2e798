"""Which nodes are alive, and what to say and do where one is not. Pure.

A node lives while its lease or its status changes, measured on our own clock: nobody's wall clock
is trusted. One that falls silent is Unknown and tainted; when its agent speaks again, the taints
go. Taints of others stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from posse.local.node.admission import tolerates
from posse.objects.nodes import Node, Taint
from posse.objects.pods import Pod
from posse.objects.times import parse_time

Manifest = dict[str, Any]

UNREACHABLE = "node.kubernetes.io/unreachable"
NOT_READY = "node.kubernetes.io/not-ready"
_CONDITIONS = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")


class Pulse:
    """When each node last showed a sign of life, on the monotonic clock."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[str, float]] = {}

    def silent_for(self, name: str, sign: str, now: float) -> float:
        """Seconds since `sign` last differed; a node seen for the first time counts as alive."""
        known = self._seen.get(name)
        if known is None or known[0] != sign:
            self._seen[name] = (sign, now)
            return 0.0
        return now - known[1]

    def restart(self, now: float) -> None:
        """Nobody could be heard: everybody has the whole grace again."""
        self._seen = {name: (sign, now) for name, (sign, _) in self._seen.items()}

    def forget(self, names: Sequence[str]) -> None:
        for name in names:
            self._seen.pop(name, None)

    def names(self) -> list[str]:
        return list(self._seen)


def unknown_conditions(node: Node, stamp: str) -> list[Manifest]:
    """The conditions of a silent node; empty when it is already said."""
    present = {c.type: c for c in node.status.conditions}
    return [
        {
            "type": kind,
            "status": "Unknown",
            "reason": "NodeStatusUnknown",
            "message": "Kubelet stopped posting node status.",
            "lastTransitionTime": stamp,
        }
        for kind in _CONDITIONS
        if (known := present.get(kind)) is None or known.status != "Unknown"
    ]


def wanted_taints(node: Node, stamp: str) -> list[Taint] | None:
    """The node's taints as its readiness wants them; None when they are so already."""
    ready = next((c.status for c in node.status.conditions if c.type == "Ready"), "Unknown")
    key = {"True": None, "False": NOT_READY}.get(ready, UNREACHABLE)
    kept = [taint for taint in node.spec.taints if taint.key not in (UNREACHABLE, NOT_READY)]
    mine = [taint for taint in node.spec.taints if taint.key == key]
    for effect in ("NoSchedule", "NoExecute") if key else ():
        if all(taint.effect != effect for taint in mine):
            mine.append(Taint(key or "", "", effect, stamp))
    wanted = [*kept, *mine]
    return None if wanted == list(node.spec.taints) else wanted


class Taints:
    """Since when each NoExecute taint stands, also where nobody has written that down."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str, str], float] = {}

    def since(self, node: Node, now: float) -> list[tuple[Taint, float]]:
        """The node's NoExecute taints with their wall times."""
        found = [taint for taint in node.spec.taints if taint.effect == "NoExecute"]
        places = {(node.metadata.name, taint.key, taint.value): taint for taint in found}
        for place in [p for p in self._seen if p[0] == node.metadata.name and p not in places]:
            del self._seen[place]
        return [
            (taint, _wall(taint.time_added) or self._seen.setdefault(place, now))
            for place, taint in places.items()
        ]


def evicted_at(pod: Pod, taints: Sequence[tuple[Taint, float]]) -> float | None:
    """Wall time at which the pod has to leave a node with these taints; None: it may stay.

    A toleration's seconds count from when the pod and the taint first met.
    """
    arrived = _wall(pod.status.start_time) or _wall(pod.metadata.creation_timestamp) or 0.0
    moments: list[float] = []
    for taint, added in taints:
        matching = [t for t in pod.spec.tolerations if tolerates(t, taint)]
        if not matching:
            return 0.0
        stays = [t.toleration_seconds for t in matching if t.toleration_seconds is not None]
        if stays:
            moments.append(max(added, arrived) + max(0, min(stays)))
    return min(moments, default=None)


def _wall(text: str | None) -> float | None:
    try:
        return parse_time(text) if text else None
    except ValueError:
        return None
