"""How long things take or may take, as far as pods and groups say: estimates to plan by, and how
long who runs is left alone at least. What cannot be understood is as good as unsaid (`doubts`)."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from posse.objects import keys
from posse.objects.pods import Pod
from posse.objects.times import parse_duration


class Times(msgspec.Struct, frozen=True):
    """As annotations say; None where nobody did."""

    start_timeout: float | None = None
    runs_for: float | None = None
    min_runtime: float | None = None
    checkpoint_interval: float | None = None


def read_times(annotations: Mapping[str, str]) -> Times:
    return Times(
        start_timeout=read_duration(annotations.get(keys.START_TIMEOUT)),
        runs_for=read_duration(annotations.get(keys.MAX_RUNTIME)),
        min_runtime=read_duration(annotations.get(keys.MIN_RUNTIME)),
        checkpoint_interval=read_duration(annotations.get(keys.CHECKPOINT_INTERVAL)),
    )


def read_duration(text: str | None) -> float | None:
    """Seconds; None for what is no time."""
    if text is None:
        return None
    try:
        seconds = parse_duration(text)
    except ValueError:
        return None
    return seconds if seconds >= 0 else None


def estimate_of(pod: Pod) -> float | None:
    """Seconds from its start; None where it does not say, or nothing that can be understood."""
    said = read_duration(pod.metadata.annotations.get(keys.MAX_RUNTIME))
    if said is not None:
        return said
    deadline = pod.spec.active_deadline_seconds
    return None if deadline is None else float(deadline)


def cooldown_of(pod: Pod) -> float:
    """Seconds before which it is not to be ended; 0 where it says nothing of use."""
    meta = pod.metadata
    text = meta.labels.get(keys.COOLDOWN_TIME, meta.annotations.get(keys.COOLDOWN_TIME))
    return read_duration(text) or 0.0


class Estimates:
    """Those of a gang's live members, counted as these come and go."""

    def __init__(self) -> None:
        self._counts: dict[float | None, int] = {}

    def count(self, pod: Pod, step: int) -> None:
        estimate = estimate_of(pod)
        left = self._counts.get(estimate, 0) + step
        if left:
            self._counts[estimate] = left
        else:
            self._counts.pop(estimate, None)

    @property
    def longest(self) -> float | None:
        """When all of them will be gone; None where any does not say."""
        if None in self._counts:
            return None
        return max((each for each in self._counts if each is not None), default=None)
