"""What the Secret holds, and when it is made anew."""

from __future__ import annotations

import base64
import random

import msgspec
import pytest
from cryptography import x509

from posse.admission.certificates import (
    AUTHORITY_RENEWED_BEFORE,
    CERTIFICATE_DAYS,
    RENEWED_BEFORE,
    Holding,
    held,
    renewed,
)
from posse.world import World

NAMES, IPS = ("posse-admission.posse-system.svc",), ("127.0.0.1",)
DAY = 86_400.0


class Calendar:
    def __init__(self) -> None:
        self.days = 20_000.0

    def now(self) -> float:
        return self.days * DAY

    def monotonic(self) -> float:
        return self.now()


@pytest.fixture
def calendar() -> Calendar:
    return Calendar()


@pytest.fixture
def world(calendar: Calendar) -> World:
    return World(calendar, random.Random(1))


def _bundled(holding: Holding) -> list[bytes]:
    return [
        certificate.fingerprint(certificate.signature_hash_algorithm)  # type: ignore[arg-type]
        for certificate in x509.load_pem_x509_certificates(holding.bundle)
    ]


def test_out_of_nothing_comes_everything(world: World) -> None:
    holding = renewed(None, NAMES, IPS, world)
    authority = x509.load_pem_x509_certificate(holding.authority)
    certificate = x509.load_pem_x509_certificate(holding.certificate)
    certificate.verify_directly_issued_by(authority)
    assert holding.bundle == holding.authority


def test_what_is_good_stays_as_it_is(world: World, calendar: Calendar) -> None:
    holding = renewed(None, NAMES, IPS, world)
    calendar.days += CERTIFICATE_DAYS - RENEWED_BEFORE - 1
    assert renewed(holding, NAMES, IPS, world) is holding


def test_a_secret_gives_back_what_it_was_given(world: World) -> None:
    holding = renewed(None, NAMES, IPS, world)
    assert held({"data": holding.data()}) == holding
    assert "PRIVATE" not in repr(holding)


@pytest.mark.parametrize(
    "secret",
    [None, {}, {"data": None}, {"data": {"ca.crt": "!"}}, {"data": {"ca.crt": ""}}, {"data": []}],
)
def test_a_secret_without_all_of_it_holds_nothing(secret: dict[str, object] | None) -> None:
    assert held(secret) is None


def test_a_certificate_is_renewed_in_good_time(world: World, calendar: Calendar) -> None:
    holding = renewed(None, NAMES, IPS, world)
    calendar.days += CERTIFICATE_DAYS - RENEWED_BEFORE + 1
    fresh = renewed(holding, NAMES, IPS, world)
    assert fresh.certificate != holding.certificate
    assert (fresh.authority, fresh.bundle) == (holding.authority, holding.bundle)


def test_another_name_needs_another_certificate(world: World) -> None:
    holding = renewed(None, NAMES, IPS, world)
    fresh = renewed(holding, ("elsewhere.posse-system.svc",), IPS, world)
    assert fresh.certificate != holding.certificate
    assert fresh.authority == holding.authority


def test_a_new_authority_is_trusted_beside_the_old_one(world: World, calendar: Calendar) -> None:
    first = renewed(None, NAMES, IPS, world)
    calendar.days += 3650 - AUTHORITY_RENEWED_BEFORE + 1
    second = renewed(first, NAMES, IPS, world)
    assert second.authority != first.authority
    assert _bundled(second) == [*_bundled(msgspec.structs.replace(second, bundle=second.authority)),
                                *_bundled(first)]  # fmt: skip
    calendar.days += AUTHORITY_RENEWED_BEFORE
    third = renewed(second, NAMES, IPS, world)
    assert third.authority == second.authority
    assert third.bundle == third.authority, "what has expired is trusted no longer"


DAMAGES = ["authority", "authority_key", "certificate", "key", "bundle"]


@pytest.mark.parametrize("part", DAMAGES)
@pytest.mark.parametrize("damage", [b"nonsense", b"-----BEGIN CERTIFICATE-----\nAA==\n"])
def test_whatever_is_damaged_is_mended(part: str, damage: bytes, world: World) -> None:
    holding = msgspec.structs.replace(renewed(None, NAMES, IPS, world), **{part: damage})
    mended = renewed(holding, NAMES, IPS, world)
    assert renewed(mended, NAMES, IPS, world) is mended
    authority = x509.load_pem_x509_certificate(mended.authority)
    x509.load_pem_x509_certificate(mended.certificate).verify_directly_issued_by(authority)
    assert mended.authority in mended.bundle


def test_data_is_text(world: World) -> None:
    for value in renewed(None, NAMES, IPS, world).data().values():
        assert base64.b64decode(value).startswith(b"-----BEGIN")
