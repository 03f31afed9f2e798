"""An authority of our own and the certificates it issues."""

from __future__ import annotations

import random
import ssl
import stat
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from posse.kube.certificates import Authority, create_authority
from posse.world import World


class Still:
    def now(self) -> float:
        return 1_700_000_000.0

    def monotonic(self) -> float:
        return 0.0


def world(seed: int = 1) -> World:
    return World(Still(), random.Random(seed))


def parsed(pem: bytes) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pem)


def test_a_certificate_names_every_place_it_is_for() -> None:
    authority = create_authority(world())
    pem, key_pem = authority.issue(["localhost", "posse"], ["127.0.0.1", "::1"], days=30)
    certificate = parsed(pem)
    places = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert places.get_values_for_type(x509.DNSName) == ["localhost", "posse"]
    assert [str(ip) for ip in places.get_values_for_type(x509.IPAddress)] == ["127.0.0.1", "::1"]
    assert certificate.not_valid_after_utc.timestamp() == world().now() + 30 * 86400
    key = serialization.load_pem_private_key(key_pem, None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    assert key.public_key() == certificate.public_key()
    certificate.verify_directly_issued_by(parsed(authority.certificate_pem))


def test_only_the_authority_may_sign() -> None:
    authority = create_authority(world())
    issued = parsed(authority.issue(["a"], [], days=1)[0])
    for certificate, may in ((parsed(authority.certificate_pem), True), (issued, False)):
        basic = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
        usage = certificate.extensions.get_extension_for_class(x509.KeyUsage).value
        assert (basic.ca, usage.key_cert_sign) == (may, may)


def test_serials_come_from_the_world_and_differ() -> None:
    def serials() -> list[int]:
        authority = create_authority(world(7))
        issued = [parsed(authority.issue(["a"], [], days=1)[0]).serial_number for _ in range(3)]
        return [parsed(authority.certificate_pem).serial_number, *issued]

    assert serials() == serials()
    assert len(set(serials())) == 4


def test_what_is_stored_is_private_and_comes_back(tmp_path: Path) -> None:
    directory = tmp_path / "pki"
    authority = create_authority(world())
    authority.store(directory)
    authority.store(directory)
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert sorted(path.name for path in directory.iterdir()) == ["ca.crt", "ca.key"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()} == {0o600}
    loaded = Authority.load(directory, world())
    assert loaded.certificate_pem == authority.certificate_pem
    assert loaded.expires == authority.expires
    parsed(loaded.issue(["a"], [], days=1)[0]).verify_directly_issued_by(
        parsed(authority.certificate_pem)
    )


def test_a_broken_store_is_not_loaded(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Authority.load(tmp_path, world())
    create_authority(world()).store(tmp_path / "one")
    create_authority(world()).store(tmp_path / "two")
    (tmp_path / "one" / "ca.key").write_bytes((tmp_path / "two" / "ca.key").read_bytes())
    with pytest.raises(ValueError, match="is not the key"):
        Authority.load(tmp_path / "one", world())


def test_tls_trusts_what_it_issued(tmp_path: Path) -> None:
    authority = create_authority(World.real())
    pem, key = authority.issue(["localhost"], ["127.0.0.1"], days=1)
    (tmp_path / "s.pem").write_bytes(pem + key)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(tmp_path / "s.pem")
    client = ssl.create_default_context(cadata=authority.certificate_pem.decode())
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    one = client.wrap_bio(to_client, to_server, server_hostname="127.0.0.1")
    other = server.wrap_bio(to_server, to_client, server_side=True)
    for end in (one, other, one, other):
        try:
            end.do_handshake()
        except ssl.SSLWantReadError:
            continue
    assert one.getpeercert()


def test_a_certificate_is_valid_on_a_clock_a_little_behind() -> None:
    certificate = parsed(create_authority(world()).issue(["a"], [], days=1)[0])
    early = world().now() - timedelta(minutes=30).total_seconds()
    assert certificate.not_valid_before_utc.timestamp() < early


def test_a_certificate_for_nobody_is_not_issued() -> None:
    with pytest.raises(ValueError, match="name or an address"):
        create_authority(world()).issue([], [], days=1)
