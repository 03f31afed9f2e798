"""Queues: whether they are there and take work."""

from __future__ import annotations

from collections.abc import Mapping

from posse.engine.facts import DEFAULT_QUEUE, QueueFacts
from posse.objects.groups import Queue


def read_queue(queue: Queue) -> QueueFacts:
    return QueueFacts(
        name=queue.metadata.name,
        open=queue.open and not queue.metadata.deleting,
        weight=max(1, queue.spec.weight or 1),
    )


def is_open(name: str, queues: Mapping[str, Queue]) -> bool:
    """A queue named `default` always exists; any other must."""
    queue = queues.get(name)
    if queue is None:
        return name == DEFAULT_QUEUE
    return queue.open and not queue.metadata.deleting
