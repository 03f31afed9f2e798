"""The scheduler's numbers, for Prometheus. Children with labels are made once and kept."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from posse.engine.decisions import Reason
from posse.kube.metering import SECONDS, ServiceMetrics
from posse.scheduler.config import LEASE_NAME
from posse.scheduler.observing import Observer, Standing, Stopwatch
from posse.world import World

PHASES = ("read", "heal", "place", "preempt", "explain")
OUTCOMES = ("bound", "gone", "otherwise", "denied")
_PHASE_SECONDS = (0.0001, 0.0005, *SECONDS[:-2])


class SchedulerMetrics(ServiceMetrics, Observer):
    def __init__(self, registry: CollectorRegistry, world: World) -> None:
        super().__init__(registry, world, LEASE_NAME)
        cycles = Histogram(
            "posse_scheduler_cycle_seconds",
            "Time of one cycle in each of its phases.",
            ["phase"],
            buckets=_PHASE_SECONDS,
            registry=registry,
        )
        self._phases = {phase: cycles.labels(phase) for phase in PHASES}
        binds = Counter(
            "posse_scheduler_binds_total",
            "Binds by what became of them.",
            ["outcome"],
            registry=registry,
        )
        self._binds = {outcome: binds.labels(outcome) for outcome in OUTCOMES}
        self._bind_seconds = Histogram(
            "posse_scheduler_bind_seconds",
            "From sending a pod's bind until its outcome is known, retries included.",
            buckets=SECONDS,
            registry=registry,
        )
        self._lag = Histogram(
            "posse_scheduler_watch_lag_seconds",
            "From sending a pod's bind until the watch tells of it.",
            buckets=SECONDS,
            registry=registry,
        )
        self._started = Counter(
            "posse_scheduler_gang_starts_total",
            "Gangs whose binds all went through.",
            registry=registry,
        )
        self._released = Counter(
            "posse_scheduler_gang_releases_total",
            "Gangs that were let go whole: half-bound, not whole again in time, or never running.",
            registry=registry,
        )
        self._evicted = Counter(
            "posse_scheduler_evictions_total", "Pods ended by the scheduler.", registry=registry
        )
        self._stumbled = Counter(
            "posse_scheduler_failures_total",
            "Times that the engine failed on a gang, which is set aside for a while.",
            registry=registry,
        )
        self._frozen = Gauge(
            "posse_scheduler_frozen",
            "1 while the policy lets it decide and carry nothing out.",
            registry=registry,
        )
        self._bad_policy = Gauge(
            "posse_scheduler_policy_bad",
            "1 while the policy file cannot be used and the last good one stays in force.",
            registry=registry,
        )
        self._standing = _StandingCollector()
        registry.register(self._standing)
        self._sent: dict[str, float] = {}
        self._unseen: dict[str, float] = {}

    def leads(self, leading: bool) -> None:
        super().leads(leading)
        self._sent.clear()
        self._unseen.clear()

    def round(self) -> Stopwatch:
        return _Running(self.world, self._phases)

    def stands(self, standing: Standing | None) -> None:
        self._standing.standing = standing

    def binding(self, uid: str) -> None:
        self._sent[uid] = self._unseen[uid] = self.world.monotonic()

    def bind_ended(self, uid: str, outcome: str) -> None:
        self._binds[outcome].inc()
        if (sent := self._sent.pop(uid, None)) is not None:
            self._bind_seconds.observe(self.world.monotonic() - sent)
        if outcome != "bound":
            self._unseen.pop(uid, None)

    def seen(self, uid: str) -> None:
        if (sent := self._unseen.pop(uid, None)) is not None:
            self._lag.observe(self.world.monotonic() - sent)

    def started(self) -> None:
        self._started.inc()

    def released(self) -> None:
        self._released.inc()

    def evicted(self) -> None:
        self._evicted.inc()

    def stumbled(self) -> None:
        self._stumbled.inc()

    def policy(self, *, frozen: bool, bad: bool) -> None:
        self._frozen.set(int(frozen))
        self._bad_policy.set(int(bad))


class _Running(Stopwatch):
    def __init__(self, world: World, phases: dict[str, Histogram]) -> None:
        self._world = world
        self._phases = phases
        self._spent = dict.fromkeys(phases, 0.0)
        self._phase = ""
        self._since = 0.0

    def enter(self, phase: str) -> None:
        self.pause()
        self._phase, self._since = phase, self._world.monotonic()

    def pause(self) -> None:
        if self._phase:
            now = self._world.monotonic()
            self._spent[self._phase] += now - self._since
            self._since = now

    def resume(self) -> None:
        self._since = self._world.monotonic()

    def stop(self) -> None:
        self.pause()
        for phase, spent in self._spent.items():
            self._phases[phase].observe(spent)


class _StandingCollector(Collector):
    """Counted when somebody looks. A standby knows of no gangs, and says zero of each reason."""

    def __init__(self) -> None:
        self.standing: Standing | None = None

    def collect(self) -> Iterator[GaugeMetricFamily]:
        waiting = GaugeMetricFamily(
            "posse_scheduler_waiting_gangs", "Gangs that wait, by reason.", labels=["reason"]
        )
        counts = {reason.value: 0 for reason in Reason}
        if self.standing is not None:
            counts.update(self.standing.waiting())
        for reason, count in counts.items():
            waiting.add_metric([reason], count)
        yield waiting
        yield GaugeMetricFamily(
            "posse_scheduler_quarantined_objects",
            "Objects that cannot be read and are set aside.",
            value=self.standing.quarantined() if self.standing is not None else 0,
        )
