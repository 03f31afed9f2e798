"""The controllers' numbers, for Prometheus. Children with labels are made once and kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from posse.controllers.program import LEASE_NAME
from posse.controllers.runtime.observing import Observer
from posse.controllers.runtime.queue import WorkQueue
from posse.kube.metering import SECONDS, ServiceMetrics
from posse.world import World


class ControllersMetrics(ServiceMetrics, Observer):
    def __init__(self, registry: CollectorRegistry, world: World) -> None:
        super().__init__(registry, world, LEASE_NAME)
        self._reconciles = Counter(
            "posse_controllers_reconciles_total",
            "Objects looked at, by controller and result.",
            ["controller", "result"],
            registry=registry,
        )
        self._durations = Histogram(
            "posse_controllers_reconcile_seconds",
            "Time to bring one object to what it should be.",
            ["controller"],
            buckets=SECONDS,
            registry=registry,
        )
        self._results: dict[tuple[str, str], Counter] = {}
        self._of_controller: dict[str, Histogram] = {}
        self._queues = _QueuesCollector()
        registry.register(self._queues)

    def leads(self, leading: bool) -> None:
        super().leads(leading)
        if not leading:
            self.queues({})

    def queues(self, queues: Mapping[str, WorkQueue[Any]]) -> None:
        self._queues.queues = dict(queues)

    def reconciled(self, controller: str, result: str, seconds: float) -> None:
        counter = self._results.get((controller, result))
        if counter is None:
            counter = self._reconciles.labels(controller, result)
            self._results[controller, result] = counter
            self._of_controller[controller] = self._durations.labels(controller)
        counter.inc()
        self._of_controller[controller].observe(seconds)


class _QueuesCollector(Collector):
    def __init__(self) -> None:
        self.queues: dict[str, WorkQueue[Any]] = {}

    def collect(self) -> Iterator[GaugeMetricFamily]:
        depth = GaugeMetricFamily(
            "posse_controllers_workqueue_depth",
            "Objects that wait to be looked at.",
            labels=["controller"],
        )
        failing = GaugeMetricFamily(
            "posse_controllers_workqueue_failing",
            "Objects whose last look failed, and that come back later.",
            labels=["controller"],
        )
        for name, queue in self.queues.items():
            depth.add_metric([name], len(queue))
            failing.add_metric([name], queue.failing)
        yield depth
        yield failing
