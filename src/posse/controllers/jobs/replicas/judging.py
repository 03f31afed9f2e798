"""What the end of a pod means for its job."""

from __future__ import annotations

from enum import Enum

from posse.controllers.jobs.pods import (
    exit_code_of,
    is_ending,
    phase_of,
    was_displaced,
    was_turned_away,
)
from posse.controllers.runtime import Manifest
from posse.objects.jobs.replicas.spec import Replicas

# From here on a process was ended by a signal: by somebody else, not by its own doing.
_FIRST_SIGNAL = 128


class Fate(Enum):
    GOES_ON = "goes on"  # it waits or runs, or is being deleted
    SUCCEEDED = "succeeded"
    REPLACED = "replaced"  # it was moved, which is not failing: another takes its place
    RESTARTED = "restarted"  # it failed, and another takes its place
    FAILED = "failed"  # and so does the job


def fate(replicas: Replicas, pod: Manifest, container: str) -> Fate:
    phase = phase_of(pod)
    if is_ending(pod) or phase not in ("Succeeded", "Failed"):
        return Fate.GOES_ON
    if phase == "Succeeded":
        return Fate.SUCCEEDED
    if was_turned_away(pod) or was_displaced(pod):
        return Fate.REPLACED
    if replicas.restart_policy == "Never":
        return Fate.FAILED
    if replicas.restart_policy == "ExitCode":
        # Without a code no process has ended: its node was lost, or put it out.
        code = exit_code_of(pod, container)
        return Fate.RESTARTED if code is None or code >= _FIRST_SIGNAL else Fate.FAILED
    return Fate.RESTARTED
