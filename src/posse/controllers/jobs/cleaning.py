"""Which pods go when a job has finished."""

from __future__ import annotations

from collections.abc import Iterable

from posse.controllers.jobs.pods import is_ending, phase_of
from posse.controllers.runtime import Manifest
from posse.objects.jobs.policies import CLEAN_ALL, CLEAN_RUNNING


def to_delete(policy: str, pods: Iterable[Manifest]) -> list[Manifest]:
    """The pods that `cleanPodPolicy` removes; Running means pending ones too, which may yet run."""
    alive = [pod for pod in pods if not is_ending(pod)]
    if policy == CLEAN_ALL:
        return alive
    if policy == CLEAN_RUNNING:
        return [pod for pod in alive if phase_of(pod) not in ("Succeeded", "Failed")]
    return []
