"""How long certificates are still good for."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Mapping

from cryptography import x509
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from posse.kube.config import Settings
from posse.world import World

_log = logging.getLogger(__name__)

_DAY = 86_400.0

Source = Callable[[], bytes]
"""The certificate as it is now, in PEM: files are replaced while a service runs."""


def days_left(pem: bytes, now: float) -> float:
    """Of the first certificate, which is the holder's own; negative once it is over.

    ValueError when there is none.
    """
    certificate = x509.load_pem_x509_certificate(pem)
    return (certificate.not_valid_after_utc.timestamp() - now) / _DAY


def sources_of(settings: Settings) -> dict[str, Source]:
    """The certificates that a client relies on: its own, and the cluster's authority."""
    found: dict[str, Source] = {}
    if settings.client_cert_file is not None:
        found["client"] = settings.client_cert_file.read_bytes
    elif settings.client_cert_data is not None:
        found["client"] = _constantly(settings.client_cert_data)
    if settings.ca_file is not None:
        found["cluster-authority"] = settings.ca_file.read_bytes
    elif settings.ca_data is not None:
        found["cluster-authority"] = _constantly(settings.ca_data)
    return found


def _constantly(pem: bytes) -> Source:
    return lambda: pem


class CertificateDays(Collector):
    """`posse_certificate_days_left`, read anew whenever somebody asks; NaN where it cannot be."""

    def __init__(
        self, registry: CollectorRegistry, world: World, sources: Mapping[str, Source]
    ) -> None:
        self._world = world
        self._sources = dict(sources)
        registry.register(self)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        family = GaugeMetricFamily(
            "posse_certificate_days_left",
            "Days until the certificate ends; NaN where it cannot be read.",
            labels=["certificate"],
        )
        for name, read in self._sources.items():
            try:
                days = days_left(read(), self._world.now())
            except (OSError, ValueError) as error:
                _log.warning("certificate %s cannot be read: %s", name, error)
                days = math.nan
            family.add_metric([name], days)
        yield family
