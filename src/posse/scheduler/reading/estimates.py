"""How long pods run at most, as far as they say: an estimate to plan by, not a limit to enforce;
and how long they are left alone at least."""

from __future__ import annotations

from posse.objects import keys
from posse.objects.pods import Pod
from posse.objects.times import parse_duration


def estimate_of(pod: Pod) -> float | None:
    """Seconds from its start; None where it does not say, or nothing that can be understood."""
    text = pod.metadata.annotations.get(keys.MAX_RUNTIME)
    if text is not None:
        try:
            seconds = parse_duration(text)
        except ValueError:
            seconds = -1.0
        if seconds >= 0:
            return seconds
    deadline = pod.spec.active_deadline_seconds
    return None if deadline is None else float(deadline)


def cooldown_of(pod: Pod) -> float:
    """Seconds before which it is not to be ended; 0 where it says nothing of use."""
    meta = pod.metadata
    text = meta.labels.get(keys.COOLDOWN_TIME, meta.annotations.get(keys.COOLDOWN_TIME))
    if text is None:
        return 0.0
    try:
        return max(0.0, parse_duration(text))
    except ValueError:
        return 0.0


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
