"""Reading the state of pods from raw objects, which may lack any part of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from posse.controllers.runtime import Manifest, metadata_of
from posse.objects.rejections import is_rejection

# The one disruption that a pod brings upon itself, by what it uses.
_OWN_DOING = "TerminationByKubelet"


class Counts(msgspec.Struct, frozen=True):
    """One entry of `replicaStatuses`."""

    active: int = 0
    succeeded: int = 0
    failed: int = 0

    def as_status(self) -> dict[str, int]:
        """As Go writes it: a zero is left out."""
        return {
            name: count
            for name, count in (
                ("active", self.active),
                ("succeeded", self.succeeded),
                ("failed", self.failed),
            )
            if count
        }


def phase_of(pod: Manifest) -> str:
    return str(_status(pod).get("phase") or "Pending")


def reason_of(pod: Manifest) -> str:
    return str(_status(pod).get("reason") or "")


def message_of(pod: Manifest) -> str:
    return str(_status(pod).get("message") or "")


def is_ending(obj: Manifest) -> bool:
    """Deletion has been asked for; the object is not to be counted on any more."""
    return bool(metadata_of(obj).get("deletionTimestamp"))


def is_running(pod: Manifest) -> bool:
    return phase_of(pod) == "Running" and not is_ending(pod)


def is_ready(pod: Manifest) -> bool:
    """By its Ready condition; a node that reports none vouches for a pod by running it."""
    if not is_running(pod):
        return False
    for item in _mappings(_status(pod).get("conditions")):
        if item.get("type") == "Ready":
            return item.get("status") == "True"
    return True


def is_evicted(pod: Manifest) -> bool:
    """Put out by its node for want of resources: it ran, and what it held is lost."""
    put_out = phase_of(pod) == "Failed" and reason_of(pod) == "Evicted"
    return put_out and not was_turned_away(pod) and not is_ending(pod)


def was_turned_away(pod: Manifest) -> bool:
    """Its node refused it at the door: nothing ran, so a fresh pod loses nothing."""
    return phase_of(pod) == "Failed" and is_rejection(reason_of(pod), message_of(pod))


def was_displaced(pod: Manifest) -> bool:
    """Ended for somebody else's sake: preempted, drained, or lost with its node."""
    for condition in _mappings(_status(pod).get("conditions")):
        if condition.get("type") == "DisruptionTarget" and condition.get("status") == "True":
            return phase_of(pod) == "Failed" and condition.get("reason") != _OWN_DOING
    return False


def exit_code_of(pod: Manifest, container: str) -> int | None:
    """The code with which this container has ended for good; None while it has not."""
    for status in _mappings(_status(pod).get("containerStatuses")):
        if status.get("name") == container:
            state = status.get("state")
            ended = state.get("terminated") if isinstance(state, dict) else None
            code = ended.get("exitCode") if isinstance(ended, dict) else None
            return code if isinstance(code, int) else None
    return None


def failure_of(pod: Manifest) -> str:
    """Which of its containers has failed, and how; "" where none says so."""
    status = _status(pod)
    for field in ("initContainerStatuses", "containerStatuses"):
        for container in _mappings(status.get(field)):
            name = str(container.get("name"))
            code = exit_code_of({"status": {"containerStatuses": [container]}}, name)
            if code:
                return f"{name} exited with code {code}"
    return ""


def restarts_of(pod: Manifest) -> int:
    """How often the kubelet has restarted its containers in place."""
    status = _status(pod)
    containers = [
        *_mappings(status.get("containerStatuses")),
        *_mappings(status.get("initContainerStatuses")),
    ]
    counts = [one.get("restartCount") for one in containers]
    return sum(number for number in counts if isinstance(number, int))


def count(pods: Iterable[Manifest]) -> Counts:
    phases = [phase_of(pod) for pod in pods if not is_ending(pod)]
    return Counts(
        active=phases.count("Running"),
        succeeded=phases.count("Succeeded"),
        failed=phases.count("Failed"),
    )


def _mappings(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _status(pod: Manifest) -> dict[str, Any]:
    status = pod.get("status")
    return status if isinstance(status, dict) else {}
