"""The webhook over real sockets, and the program around it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from posse.admission.app import Webhook
from posse.admission.certificates import Holding, held, renewed
from posse.admission.metrics import AdmissionMetrics
from posse.admission.program import AdmissionConfig, run
from posse.admission.serving import Shown, serve
from posse.kube.expiry import CertificateDays
from posse.kube.serving import Address, listen
from posse.world import World
from tests.unit.admission.questions import Known, Rights, mpi_job
from tests.unit.admission.store import KEPT_IN, SYSTEM, Store, secret_path
from tests.unit.admission.test_admission_app import question

NAMES, IPS = ("localhost",), ("127.0.0.1",)


def made(world: World | None = None) -> Holding:
    return renewed(None, NAMES, IPS, world or World.real())


def trusting(holding: Holding) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=holding.bundle.decode())
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @staticmethod
    async def connect(port: int, holding: Holding, name: str = "localhost") -> Client:
        return Client(
            *await asyncio.open_connection(
                "127.0.0.1", port, ssl=trusting(holding), server_hostname=name
            )
        )

    async def ask(self, path: str = "/validate", body: bytes = b"") -> tuple[int, bytes]:
        head = (
            f"{'POST' if body else 'GET'} {path} HTTP/1.1\r\nhost: x\r\n"
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        self._writer.write(head.encode() + body)
        await self._writer.drain()
        answered = (await self._reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(answered.partition("content-length: ")[2].partition("\r\n")[0])
        return int(answered.split()[1]), await self._reader.readexactly(length)

    def close(self) -> None:
        self._writer.close()


@asynccontextmanager
async def running(shown: Shown) -> AsyncIterator[int]:
    bound = listen(Address("127.0.0.1", 0))
    webhook = Webhook(Known(), Rights(), World.real())
    task = asyncio.create_task(serve(webhook, bound, shown))
    try:
        yield bound.getsockname()[1]
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        bound.close()


async def _until_open(port: int, holding: Holding, name: str = "localhost") -> Client:
    for _ in range(500):
        try:
            return await Client.connect(port, holding, name)
        except ConnectionRefusedError:
            await asyncio.sleep(0.01)
    raise AssertionError("nobody listens")


async def test_a_new_certificate_is_shown_and_open_connections_live_on() -> None:
    old, new = made(), made()
    shown = Shown()
    shown.show(old.certificate, old.key)
    async with running(shown) as port:
        before = await _until_open(port, old)
        assert (await before.ask("/healthz"))[0] == 200
        shown.show(new.certificate, new.key)
        assert (await before.ask(body=question(mpi_job())))[0] == 200
        after = await Client.connect(port, new)
        assert (await after.ask(body=question(mpi_job())))[0] == 200
        with pytest.raises(ssl.SSLCertVerificationError):
            await Client.connect(port, old)
        before.close()
        after.close()


async def test_old_protocols_are_not_spoken() -> None:
    holding, shown = made(), Shown()
    shown.show(holding.certificate, holding.key)
    async with running(shown) as port:
        (await _until_open(port, holding)).close()
        context = trusting(holding)
        with pytest.warns(DeprecationWarning):
            context.minimum_version = ssl.TLSVersion.TLSv1
            context.maximum_version = ssl.TLSVersion.TLSv1_1
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await asyncio.open_connection(
                "127.0.0.1", port, ssl=context, server_hostname="localhost"
            )


async def test_a_head_without_end_is_cut_off() -> None:
    holding, shown = made(), Shown()
    shown.show(holding.certificate, holding.key)
    async with running(shown) as port:
        (await _until_open(port, holding)).close()
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=trusting(holding), server_hostname="localhost"
        )
        writer.write(b"POST /validate HTTP/1.1\r\nx: " + b"y" * (2 << 20))
        with contextlib.suppress(ConnectionError):
            assert b" 200 " not in await reader.read()
        writer.close()


async def test_the_program_makes_its_certificate_and_answers(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store, world = Store(), World.real()
    store.configure("jobs.posse.dev")
    store.put(secret_path(), {"metadata": {"name": KEPT_IN, "namespace": SYSTEM}})
    metrics = AdmissionMetrics(CollectorRegistry(), world)
    CertificateDays(metrics.registry, world, metrics.certificates())
    ready: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    config = AdmissionConfig(
        address=Address("127.0.0.1", 0), addresses=IPS, on_ready=ready.set_result
    )
    assert metrics.unready() == "there is no certificate to show yet"
    with caplog.at_level(logging.DEBUG):
        task = asyncio.create_task(run(config, store.connection(world), world, observer=metrics))
        port = await ready
        holding = held(store.secret())
        assert holding is not None
        client = await _until_open(port, holding, "posse-admission.posse-system.svc")
        status, body = await client.ask(body=question(mpi_job(0)))
        assert (status, json.loads(body)["response"]["allowed"]) == (200, False)
        assert metrics.unready() == ""
        told = generate_latest(metrics.registry).decode()
        client.close()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert (
        'posse_admission_reviews_total{kind="MPIJob",outcome="denied",stage="validate"} 1' in told
    )
    assert 'posse_certificate_days_left{certificate="webhook"} 89' in told
    assert "posse_leader" not in told
    assert "PRIVATE" not in caplog.text
