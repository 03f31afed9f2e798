"""Queues: what they may use and deserve, who may use them, and whether they take work."""

from __future__ import annotations

from collections.abc import Mapping

from posse.engine.facts import DEFAULT_QUEUE, LARGEST, QueueFacts, Requests
from posse.objects import keys
from posse.objects.access import NamespaceRule, is_selector
from posse.objects.groups import Queue
from posse.objects.meta import Amount
from posse.objects.selectors import SelectorError
from posse.scheduler.reading.amounts import read_units
from posse.scheduler.reading.confines import read_confines
from posse.scheduler.reading.quarantine import Unreadable

Labels = Mapping[str, str]
_FIFO = "fifo"


def read_queue(queue: Queue, namespaces: Mapping[str, Labels]) -> tuple[QueueFacts, str]:
    """Facts, and what could not be read of them ("" when all could).

    A queue that is not wholly understood stays where it is in the tree, so that what runs in it is
    counted, but takes nothing new.
    """
    spec = queue.spec
    why: list[str] = []

    def read(written: Mapping[str, Amount], field: str) -> Requests:
        try:
            return _amounts(written, field)
        except Unreadable as error:
            why.append(str(error))
            return ()

    capability = read(spec.capability, "spec.capability")
    deserved = read(spec.deserved, "spec.deserved")
    guarantee = read(spec.guarantee.resource, "spec.guarantee.resource")
    if spec.weight is not None and spec.weight < 1:
        why.append(f"spec.weight: {spec.weight} is less than 1")
    if spec.dequeue_strategy not in ("", "traverse", _FIFO):
        why.append(f"spec.dequeueStrategy: {spec.dequeue_strategy!r} is neither fifo nor traverse")
    try:
        read_confines(queue)
    except Unreadable as error:
        why.append(str(error))
    allowed: tuple[str, ...] | None = None
    try:
        allowed = read_namespaces(queue, namespaces)
    except Unreadable as error:
        why.append(str(error))
        allowed = ()
    problem = why[0] if why else ""
    facts = QueueFacts(
        name=queue.metadata.name,
        open=queue.open and not queue.metadata.deleting,
        weight=max(1, spec.weight or 1),
        parent=spec.parent,
        priority=spec.priority or 0,
        reclaimable=spec.reclaimable is not False,
        guarantee=tuple((resource, amount) for resource, amount in guarantee if amount),
        deserved=deserved,
        capability=capability,
        fifo=spec.dequeue_strategy == _FIFO,
        namespaces=allowed,
        problem=f"cannot be understood ({problem})" if problem else "",
    )
    return facts, problem


def read_namespaces(queue: Queue, namespaces: Mapping[str, Labels]) -> tuple[str, ...] | None:
    """Whose queue it is; None where it does not say."""
    text = queue.metadata.annotations.get(keys.NAMESPACES)
    if text is None:
        return None
    try:
        return NamespaceRule(text).among(namespaces)
    except SelectorError as error:
        raise Unreadable(f"metadata.annotations[{keys.NAMESPACES}]", str(error)) from error


def selects_namespaces(queue: Queue) -> bool:
    """Whether it depends on the labels of namespaces."""
    return is_selector(queue.metadata.annotations.get(keys.NAMESPACES, ""))


def is_open(name: str, queues: Mapping[str, Queue]) -> bool:
    """A queue named `default` always exists; any other must."""
    queue = queues.get(name)
    if queue is None:
        return name == DEFAULT_QUEUE
    return queue.open and not queue.metadata.deleting


def _amounts(written: Mapping[str, Amount], field: str) -> Requests:
    """In base units, sorted; a zero says something here and stays."""
    amounts: dict[str, int] = {}
    for resource, amount in written.items():
        amounts[resource] = min(read_units(resource, amount, f"{field}[{resource}]"), LARGEST)
    return tuple(sorted(amounts.items()))
