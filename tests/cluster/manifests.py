"""Pods and PodGroups as people write them by hand."""

from __future__ import annotations

from typing import Any

from posse.objects import keys, kinds

NAMESPACE = "default"
GPU = "nvidia.com/gpu"


def pod_group(
    name: str, minimum: int | None, annotations: dict[str, str] | None = None, **spec: Any
) -> dict[str, Any]:
    least = {} if minimum is None else {"minMember": minimum}
    return {
        "apiVersion": kinds.POD_GROUP.api_version,
        "kind": kinds.POD_GROUP.kind,
        "metadata": {"name": name, "annotations": annotations or {}},
        "spec": {**least, **spec},
    }


def pod(name: str, group: str, *, gpus: int = 0, seconds: int = 0, **spec: Any) -> dict[str, Any]:
    """A member of `group`, or of none; it runs for so many seconds, or for ever."""
    annotations = {keys.GROUP_NAME: group} if group else {}
    if seconds:
        annotations[keys.SIMULATED_DURATION] = f"{seconds}s"
    limits = {"limits": {GPU: str(gpus)}} if gpus else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": annotations},
        "spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": "sim", "resources": limits}],
            **spec,
        },
    }


def queue(name: str) -> dict[str, Any]:
    return {
        "apiVersion": kinds.QUEUE.api_version,
        "kind": kinds.QUEUE.kind,
        "metadata": {"name": name},
        "spec": {"weight": 1},
    }
