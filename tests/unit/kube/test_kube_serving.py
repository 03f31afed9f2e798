"""Health, readiness and numbers over a socket."""

from __future__ import annotations

import asyncio
import errno
import math
import socket
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from prometheus_client import CollectorRegistry, Counter
from prometheus_client.parser import text_string_to_metric_families

from posse.kube.cache import Cache
from posse.kube.config import Settings
from posse.kube.connection import Connection
from posse.kube.errors import NotFound, Unreachable
from posse.kube.expiry import CertificateDays, days_left, sources_of
from posse.kube.inprocess import AsgiTransport
from posse.kube.metering import ServiceMetrics
from posse.kube.serving import EVERYWHERE, Address, Diagnostics, listen, serving
from posse.kube.transport import Response
from posse.objects.kinds import NODE
from posse.virtual.world import virtual_world
from tests.unit.kube.serving import to


def _app(problem: str = "") -> Diagnostics:
    registry = CollectorRegistry()
    Counter("rides", "How many.", registry=registry).inc(3)
    return Diagnostics(registry, lambda: problem)


async def _ask(app: Diagnostics, path: str, method: str = "GET") -> Response:
    return await AsgiTransport(app).request(method, path)


@pytest.mark.parametrize(
    ("path", "problem", "status", "body"),
    [
        ("/healthz", "", 200, b"ok\n"),
        ("/healthz", "no answer", 200, b"ok\n"),
        ("/readyz", "", 200, b"ok\n"),
        ("/readyz", "no answer", 503, b"no answer\n"),
        ("/", "", 404, b"there are /healthz, /readyz and /metrics\n"),
        ("/metrics/", "", 404, b"there are /healthz, /readyz and /metrics\n"),
    ],
)
async def test_each_path_has_its_answer(path: str, problem: str, status: int, body: bytes) -> None:
    answer = await _ask(_app(problem), path)
    assert (answer.status, answer.body) == (status, body)


async def test_only_reading_is_allowed() -> None:
    answer = await _ask(_app(), "/metrics", "POST")
    assert answer.status == 405
    assert answer.headers["allow"] == "GET, HEAD"


async def test_head_has_the_length_and_no_body() -> None:
    answer = await _ask(_app(), "/healthz", "HEAD")
    assert (answer.status, answer.headers["content-length"], answer.body) == (200, "3", b"")


async def test_metrics_are_served_over_a_real_socket_and_end_with_the_block() -> None:
    async with serving(_app(), Address(port=0)) as port:
        async with to(Settings(server=f"http://127.0.0.1:{port}")) as transport:
            answer = await transport.request("GET", "/metrics")
        assert answer.headers["content-type"].startswith("text/plain")
        names = [f.name for f in text_string_to_metric_families(answer.body.decode())]
        assert names == ["rides"]
    async with to(Settings(server=f"http://127.0.0.1:{port}")) as transport:
        with pytest.raises(Unreachable):
            await transport.request("GET", "/healthz")


def test_a_port_that_is_taken_is_said_in_one_line() -> None:
    first = listen(Address(port=0))
    first.listen()
    port = first.getsockname()[1]
    with pytest.raises(OSError, match=f"^cannot listen on 127.0.0.1:{port}: the port is taken$"):
        listen(Address(port=port))
    first.close()


def _has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


@pytest.mark.skipif(not _has_ipv6(), reason="this machine has no IPv6")
def test_everywhere_is_every_address_of_both_families() -> None:
    """As the pods of a cluster need it whose addresses are of one family only, whichever."""
    with listen(Address(EVERYWHERE)) as bound:
        bound.listen()
        for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
            with socket.socket(family) as client:
                client.connect((host, bound.getsockname()[1]))


def test_everywhere_is_every_address_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    real = socket.socket

    def without_ipv6(family: int, kind: int) -> socket.socket:
        if family == socket.AF_INET6:
            raise OSError(errno.EAFNOSUPPORT, "not here")
        return real(family, kind)

    monkeypatch.setattr(socket, "socket", without_ipv6)
    with listen(Address(EVERYWHERE)) as bound:
        assert bound.getsockname()[0] == "0.0.0.0"


class _Fake:
    """Answers what it is told to."""

    def __init__(self) -> None:
        self.status = 200

    async def request(self, method: str, path: str, **_: Any) -> Response:
        if not self.status:
            raise Unreachable("refused")
        return Response(self.status, {}, b'{"kind":"Status","code":%d}' % self.status)


def _service() -> tuple[ServiceMetrics, _Fake, Connection]:
    world = virtual_world()
    metrics = ServiceMetrics(CollectorRegistry(), world, "a-lease")
    fake = _Fake()
    return metrics, fake, Connection(metrics.measured(fake), world)  # type: ignore[arg-type]


@pytest.mark.looptime
async def test_a_service_is_ready_once_the_api_server_has_answered_and_while_it_does() -> None:
    metrics, fake, connection = _service()
    assert metrics.unready() == "the API server has not answered yet"
    await connection.get(NODE, "n")
    assert metrics.unready() == ""
    fake.status = 0
    await asyncio.sleep(31)
    with pytest.raises(Unreachable):
        await connection.transport.request("GET", "/api")
    assert metrics.unready() == "the API server has not answered for 31 s"
    fake.status = 404
    with pytest.raises(NotFound):
        await connection.get(NODE, "n")
    assert metrics.unready() == ""


@pytest.mark.looptime
@pytest.mark.parametrize("status", [401, 403, 500, 503])
async def test_an_answer_that_will_not_have_us_makes_nobody_ready(status: int) -> None:
    metrics, fake, _ = _service()
    fake.status = status
    await metrics.measured(fake).request("GET", "/api")  # type: ignore[arg-type]
    words = f"the API server has not answered yet (its last answer was {status})"
    assert metrics.unready() == words


@pytest.mark.looptime
async def test_a_leader_is_ready_when_it_has_listed_everything_and_a_standby_at_once() -> None:
    metrics, _, connection = _service()
    await connection.get(NODE, "n")
    metrics.leads(True)
    assert metrics.unready() == "leads, and has not listed everything yet"
    metrics.works()
    assert metrics.unready() == ""
    metrics.leads(False)
    assert metrics.unready() == ""
    value = metrics.registry.get_sample_value
    assert value("posse_leader", {"lease": "a-lease"}) == 0
    assert value("posse_leader_terms_total", {"lease": "a-lease"}) == 1


@pytest.mark.looptime
async def test_requests_are_counted_by_what_came_of_them() -> None:
    metrics, fake, _ = _service()
    transport = metrics.measured(fake)  # type: ignore[arg-type]
    await transport.request("GET", "/api")
    fake.status = 409
    await transport.request("PUT", "/api")
    fake.status = 0
    with pytest.raises(Unreachable):
        await transport.request("PUT", "/api")
    value = metrics.registry.get_sample_value
    for method, status in (("GET", "200"), ("PUT", "409"), ("PUT", "none")):
        assert value("posse_api_requests_total", {"method": method, "status": status}) == 1
    assert value("posse_api_request_seconds_count", {"method": "PUT"}) == 1


@pytest.mark.looptime
async def test_silence_is_that_of_the_quieter_of_two_caches_of_a_kind() -> None:
    metrics, _, connection = _service()
    first = Cache(connection, NODE, dict)
    await asyncio.sleep(7)
    metrics.watches([first, Cache(connection, NODE, dict, labels="a=b")])
    value = metrics.registry.get_sample_value
    assert value("posse_watch_silence_seconds", {"kind": "nodes"}) == pytest.approx(7)
    metrics.leads(False)
    assert value("posse_watch_silence_seconds", {"kind": "nodes"}) is None


def _certificate(days: float, now: float) -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([])
    ends = datetime.fromtimestamp(now, UTC) + timedelta(days=days)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(ends - timedelta(days=400))
        .not_valid_after(ends)
        .sign(key, hashes.SHA256())
    )
    return made.public_bytes(serialization.Encoding.PEM)


@pytest.mark.looptime
async def test_days_of_certificates_are_read_anew_and_nan_where_they_cannot_be() -> None:
    world = virtual_world()
    registry = CollectorRegistry()
    pem = [_certificate(30, world.now())]
    CertificateDays(registry, world, {"serving": lambda: pem[0]})
    labels = {"certificate": "serving"}
    value = registry.get_sample_value
    assert value("posse_certificate_days_left", labels) == pytest.approx(30, abs=0.01)
    pem[0] = _certificate(-1, world.now())
    assert value("posse_certificate_days_left", labels) == pytest.approx(-1, abs=0.01)
    pem[0] = b"no certificate"
    found = value("posse_certificate_days_left", labels)
    assert found is not None
    assert math.isnan(found)


def test_a_client_relies_on_its_own_certificate_and_on_the_authority() -> None:
    pem = _certificate(10, 0)
    settings = Settings(server="https://x", client_cert_data=pem, ca_data=pem)
    sources = sources_of(settings)
    assert list(sources) == ["client", "cluster-authority"]
    assert days_left(sources["client"](), 0) == pytest.approx(10)
    assert sources_of(Settings(server="http://x")) == {}
