"""What a kubelet says of a pod that it turned away before any container ran.

Such a pod has not failed: it was at the wrong place, and another of its kind may run elsewhere.

Kubelets of today begin their message with the same words whatever the reason is, so a reason that
nobody has heard of yet is understood as well. Older ones are known by the reason alone, but for one
that they also give when they end a pod that runs: there, only a node that was short of something
before the pod came speaks of its own condition.
"""

from __future__ import annotations

_TURNED_AWAY = "Pod was rejected"
_SHORT_OF = "OutOf"
_REASONS = (
    "AppArmor", "InitContainerRestartPolicyForbidden", "InvalidNodeInfo", "NodeAffinity",
    "NodeName", "NodePorts", "NodeShutdown", "PodFeatureUnsupported",
    "PodLevelResourcesNotSupported", "PodOSNotSupported", "PodOSSelectorNodeLabelDoesNotMatch",
    "SMTAlignmentError", "SupplementalGroupsPolicyNotSupported", "SysctlForbidden",
    "TaintToleration", "TopologyAffinityError", "UnexpectedAdmissionError",
    "UnexpectedPredicateFailureType", "UnknownReason", "VolumeAttachmentLimitExceeded",
)  # fmt: skip
_EVICTED = "Evicted"
_CONDITION = "The node had condition:"


def is_rejection(reason: str, message: str) -> bool:
    if message.startswith(_TURNED_AWAY):
        return True
    if reason == _EVICTED:
        return _CONDITION in message
    return reason.startswith(_SHORT_OF) or reason in _REASONS
