"""The queue that a job names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from posse.objects.keys import QUEUE_NAME
from posse.objects.trainingjobs import SchedulingPolicy

DEFAULT_QUEUE = "default"
# Those that name no parent are part of it, where there is one.
ROOT_QUEUE = "root"


def named_queue(policy: SchedulingPolicy, metadata: Mapping[str, Any]) -> str:
    """What the scheduling policy says, else an annotation, else a label; "" where nobody does."""
    if policy.queue:
        return policy.queue
    for where in ("annotations", "labels"):
        if queue := (metadata.get(where) or {}).get(QUEUE_NAME):
            return str(queue)
    return ""
