"""The numbers that every service has: who leads, what the API server answers, how long ago.

Whatever is a state is read when somebody asks for it, so that it cannot drift from what it
describes; only what happens is counted as it happens.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from posse.kube.cache import Cache
from posse.kube.errors import Unreachable
from posse.kube.expiry import Source
from posse.kube.observing import ServiceObserver
from posse.kube.transport import Headers, Query, Response, Stream, Transport
from posse.version import __version__
from posse.world import World

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_SILENCE = 30.0
_REFUSALS = (401, 403)


class ServiceMetrics(ServiceObserver):
    def __init__(self, registry: CollectorRegistry, world: World, lease: str = "") -> None:
        """Without a lease nobody leads: every replica works."""
        self.registry = registry
        self.world = world
        self._answered: float | None = None  # when the API server last answered and would have us
        self._refused = 0  # what it answered since, if it would not have us
        self._leading = False
        self._working = False
        Gauge("posse_build_info", "1, with the version.", ["version"], registry=registry).labels(
            __version__
        ).set(1)
        self._election = _Election(registry, lease) if lease else None
        self._requests = Counter(
            "posse_api_requests_total",
            "Requests to the API server by method and status; `none` where no answer came.",
            ["method", "status"],
            registry=registry,
        )
        self._seconds = Histogram(
            "posse_api_request_seconds",
            "From sending a request to its answer.",
            ["method"],
            buckets=SECONDS,
            registry=registry,
        )
        self._counters: dict[tuple[str, int], Counter] = {}
        self._histograms: dict[str, Histogram] = {}
        self._silence = _WatchSilence(world)
        registry.register(self._silence)

    def certificates(self) -> Mapping[str, Source]:
        """Those that the service shows to others, by name."""
        return {}

    def measured(self, transport: Transport) -> Transport:
        return _Measured(transport, self)

    def leads(self, leading: bool) -> None:
        if self._election is not None:
            self._election.leads(leading, began=leading and not self._leading)
        self._leading, self._working = leading, False
        if not leading:
            self.watches(())

    def watches(self, caches: Sequence[Cache[Any]]) -> None:
        self._silence.caches = tuple(caches)

    def works(self) -> None:
        self._working = True

    def unready(self) -> str:
        """What keeps the service from its work; "" for a leader at work and for a standby."""
        now = self.world.monotonic()
        refused = f" (its last answer was {self._refused})" if self._refused else ""
        if self._answered is None:
            return f"the API server has not answered yet{refused}"
        silent = now - self._answered
        if silent > _SILENCE:
            return f"the API server has not answered for {silent:.0f} s{refused}"
        if self._leading and not self._working:
            return "leads, and has not listed everything yet"
        return ""

    def answered(self, method: str, status: int, began: float) -> None:
        """Status 0: no answer."""
        now = self.world.monotonic()
        counter = self._counters.get((method, status))
        if counter is None:
            counter = self._requests.labels(method, str(status or "none"))
            self._counters[method, status] = counter
        counter.inc()
        if not status:
            self._refused = 0
            return
        histogram = self._histograms.get(method)
        if histogram is None:
            histogram = self._histograms[method] = self._seconds.labels(method)
        histogram.observe(now - began)
        if status < 500 and status not in _REFUSALS:
            self._answered, self._refused = now, 0
        else:
            self._refused = status


class _Election:
    def __init__(self, registry: CollectorRegistry, lease: str) -> None:
        leader = Gauge(
            "posse_leader",
            "1 while this process leads, 0 on standby.",
            ["lease"],
            registry=registry,
        )
        self._leader = leader.labels(lease)
        self._leader.set(0)
        terms = Counter(
            "posse_leader_terms_total",
            "How often this process began to lead.",
            ["lease"],
            registry=registry,
        )
        self._terms = terms.labels(lease)

    def leads(self, leading: bool, *, began: bool) -> None:
        if began:
            self._terms.inc()
        self._leader.set(int(leading))


class _Measured:
    """A transport whose every request is counted."""

    def __init__(self, transport: Transport, metrics: ServiceMetrics) -> None:
        self._transport = transport
        self._metrics = metrics

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        headers: Headers | None = None,
        body: bytes | None = None,
        timeout: float | None = None,
    ) -> Response:
        began = self._metrics.world.monotonic()
        try:
            response = await self._transport.request(
                method, path, query=query, headers=headers, body=body, timeout=timeout
            )
        except Unreachable:
            self._metrics.answered(method, 0, began)
            raise
        self._metrics.answered(method, response.status, began)
        return response

    def stream(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        headers: Headers | None = None,
        body: bytes | None = None,
    ) -> AbstractAsyncContextManager[Stream]:
        return self._stream(
            self._transport.stream(method, path, query=query, headers=headers, body=body)
        )

    @asynccontextmanager
    async def _stream(self, opening: AbstractAsyncContextManager[Stream]) -> AsyncIterator[Stream]:
        """Counted when it opens: how long a watch lasts is no measure of anything."""
        began = self._metrics.world.monotonic()
        async with AsyncExitStack() as stack:
            try:
                stream = await stack.enter_async_context(opening)
            except Unreachable:
                self._metrics.answered("WATCH", 0, began)
                raise
            self._metrics.answered("WATCH", stream.status, began)
            yield stream

    async def close(self) -> None:
        await self._transport.close()


class _WatchSilence(Collector):
    def __init__(self, world: World) -> None:
        self.caches: tuple[Cache[Any], ...] = ()
        self._world = world

    def collect(self) -> Iterator[GaugeMetricFamily]:
        family = GaugeMetricFamily(
            "posse_watch_silence_seconds",
            "Since the API server last said anything of this kind: an event, a bookmark, a list.",
            labels=["kind"],
        )
        now = self._world.monotonic()
        silences: dict[str, float] = {}
        for cache in self.caches:
            kind = cache.kind.qualified
            silences[kind] = max(silences.get(kind, 0.0), now - cache.heard)
        for kind, silence in silences.items():
            family.add_metric([kind], silence)
        yield family
