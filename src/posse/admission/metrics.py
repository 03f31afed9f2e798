"""The webhook's numbers, for Prometheus."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Histogram

from posse.admission.observing import Observer
from posse.kube.expiry import Source
from posse.kube.metering import SECONDS, ServiceMetrics
from posse.world import World


class AdmissionMetrics(ServiceMetrics, Observer):
    def __init__(self, registry: CollectorRegistry, world: World) -> None:
        super().__init__(registry, world)
        self._reviews = Counter(
            "posse_admission_reviews_total",
            "Questions of API servers by kind, stage and outcome.",
            ["kind", "stage", "outcome"],
            registry=registry,
        )
        self._review_seconds = Histogram(
            "posse_admission_review_seconds",
            "From a question that was read to its answer.",
            ["stage"],
            buckets=SECONDS,
            registry=registry,
        )
        self._shown: tuple[bytes, bytes] | None = None

    def certificates(self) -> Mapping[str, Source]:
        return {"webhook": lambda: self._held()[0], "webhook-authority": lambda: self._held()[1]}

    def unready(self) -> str:
        """Whoever can show a certificate can answer; most answers need nothing else."""
        return "" if self._shown else "there is no certificate to show yet"

    def reviewed(self, kind: str, stage: str, outcome: str, seconds: float) -> None:
        self._reviews.labels(kind, stage, outcome).inc()
        self._review_seconds.labels(stage).observe(seconds)

    def certified(self, certificate: bytes, authority: bytes) -> None:
        self._shown = (certificate, authority)

    def _held(self) -> tuple[bytes, bytes]:
        return self._shown or (b"", b"")
