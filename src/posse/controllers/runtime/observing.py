"""What controllers let others see of their work. This observer looks away; `metrics` counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from posse.controllers.runtime.queue import WorkQueue
from posse.kube.observing import ServiceObserver


class Observer(ServiceObserver):
    def queues(self, queues: Mapping[str, WorkQueue[Any]]) -> None:
        """The work queue of each controller from now on, in place of any earlier ones."""

    def reconciled(self, controller: str, result: str, seconds: float) -> None:
        """One object was looked at: ok, blocked, failed or crashed."""
