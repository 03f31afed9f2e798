"""What a kubelet says of a pod that it turned away before any container ran.

Such a pod has not failed: it was at the wrong place, and another of its kind may run elsewhere.
"""

from __future__ import annotations

_SHORT_OF = "OutOf"
_REASONS = (
    "NodeAffinity", "NodeName", "NodePorts", "TaintToleration", "TopologyAffinityError",
    "UnexpectedAdmissionError",
)  # fmt: skip


def is_rejection(reason: str) -> bool:
    return reason.startswith(_SHORT_OF) or reason in _REASONS
