"""Keeps queues, and the namespaces that they are for, in step with their caches."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from posse.engine.facts import NamespaceFacts, QueueFacts
from posse.engine.view import View
from posse.kube.cache import Change
from posse.objects.groups import Queue
from posse.objects.kinds import QUEUE
from posse.objects.namespaces import Namespace
from posse.scheduler.reading.quarantine import Quarantine
from posse.scheduler.reading.queues import is_open, read_queue, selects_namespaces


class Tenancy:
    """`concern_all` is called when what a queue says may be another matter for any gang."""

    def __init__(self, view: View, quarantine: Quarantine, concern_all: Callable[[], None]) -> None:
        self.queues: dict[str, Queue] = {}
        self._view = view
        self._quarantine = quarantine
        self._concern_all = concern_all
        self._namespaces: dict[str, Mapping[str, str]] = {}
        self._obscure: dict[str, str] = {}  # queues that are no queues to us, and why
        self._changed = False

    def queue(self, change: Change[Queue]) -> None:
        queue = change.new or change.old
        if queue is None:
            return
        name = queue.metadata.name
        before = is_open(name, self.queues)
        if change.new is None:
            self.queues.pop(name, None)
            if name not in self._obscure:
                self._view.remove_queue(name)
                self._quarantine.discharge(queue.metadata.uid)
            self._quarantine.doubt(QUEUE, queue, queue.metadata.uid, "")
        else:
            self.queues[name] = queue
            self._set_queue(queue)
        if is_open(name, self.queues) != before or _places(change.old) != _places(change.new):
            self._concern_all()

    def undecodable(self, queues: Mapping[str, str]) -> None:
        """The queues that are no queues to us, each with the reason: nothing starts in them."""
        before, self._obscure = self._obscure, dict(queues)
        for name, why in queues.items():
            self._view.set_queue(QueueFacts(name, problem=f"cannot be understood ({why})"))
        for name in before:
            if name not in queues and name not in self.queues:
                self._view.remove_queue(name)

    def namespace(self, change: Change[Namespace]) -> None:
        """Its labels say which queues its gangs may use, and whose affinities mean its pods."""
        namespace = change.new or change.old
        if namespace is None:
            return
        name = namespace.metadata.name
        if change.new is None:
            self._namespaces.pop(name, None)
            self._view.remove_namespace(name)
        else:
            self._namespaces[name] = namespace.metadata.labels
            self._view.set_namespace(NamespaceFacts(name, namespace.metadata.labels))
        for queue in self.queues.values():
            if selects_namespaces(queue):
                self._set_queue(queue)

    def judge(self) -> None:
        """Says on each queue what is wrong with it, by itself and as part of others."""
        if not self._changed:
            return
        self._changed = False
        problems, oddities = self._view.tree.problems(), self._view.tree.oddities()
        for name, queue in self.queues.items():
            uid = queue.metadata.uid
            if name in problems:
                self._quarantine.admit(QUEUE, queue, uid, problems[name])
            else:
                self._quarantine.discharge(uid)
            self._quarantine.doubt(QUEUE, queue, uid, oddities.get(name, ""))

    def _set_queue(self, queue: Queue) -> None:
        facts, _ = read_queue(queue, self._namespaces)
        if self._view.queues.get(facts.name) != facts:
            self._view.set_queue(facts)
            self._changed = True


def _places(queue: Queue | None) -> tuple[object, ...]:
    """What of a queue says where pods may go, or whose word on that counts."""
    return () if queue is None else (queue.spec.affinity, queue.spec.parent)
