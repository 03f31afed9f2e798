"""Whether a kubelet turned a pod away, by what it said of it."""

from __future__ import annotations

import pytest

from posse.objects.rejections import is_rejection

PRESSED = "The node had condition: [DiskPressure]. "
LOW = "The node was low on resource: memory. Container c was using 3Gi, request is 1Gi. "
REJECTED = "Pod was rejected: "

SAID = [
    # Reason, message, whether nothing ran.
    ("OutOfcpu", "Pod Node didn't have enough resource: cpu", True),
    ("OutOfnvidia.com/gpu", "", True),
    ("NodeShutdown", "Pod was rejected as the node is shutting down.", True),
    ("NodeShutdown", "", True),
    ("SMTAlignmentError", "", True),
    ("PodOSNotSupported", "", True),
    ("VolumeAttachmentLimitExceeded", "", True),
    ("AReasonOfNextYear", REJECTED + "it did not please", True),
    ("AReasonOfNextYear", "it did not please", False),
    ("Evicted", REJECTED + PRESSED, True),
    ("Evicted", "Pod " + PRESSED, True),
    ("Evicted", LOW, False),
    ("Evicted", "", False),
    # Of a pod that ran.
    ("Terminated", "Pod was terminated in response to imminent node shutdown.", False),
    ("Preempting", "Preempted in order to admit critical pod", False),
    ("DeadlineExceeded", "Pod was active on the node longer than the specified deadline", False),
    ("", "", False),
]


@pytest.mark.parametrize(("reason", "message", "rejected"), SAID)
def test_what_a_kubelet_says_of_a_pod(reason: str, message: str, rejected: bool) -> None:
    assert is_rejection(reason, message) is rejected
