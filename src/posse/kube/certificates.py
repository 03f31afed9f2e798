"""Certificates that we issue ourselves: one authority, and what it vouches for.

Keys are EC P-256 from the operating system's generator; serial numbers and dates come from the
World. Private keys are written so that only their owner can read them, from the first byte on.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from posse.world import World

_CERTIFICATE = "ca.crt"
_KEY = "ca.key"
_AUTHORITY_DAYS = 3650
# Clocks of other machines may be behind by this much.
_BACKDATED = timedelta(hours=1)


class Authority:
    """Signs certificates; who trusts `certificate_pem` trusts them all."""

    def __init__(
        self, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey, world: World
    ) -> None:
        self._certificate = certificate
        self._key = key
        self._world = world

    @property
    def certificate_pem(self) -> bytes:
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        return _key_pem(self._key)

    @property
    def expires(self) -> float:
        """Seconds since the epoch."""
        return self._certificate.not_valid_after_utc.timestamp()

    def lasts(self, days: int) -> bool:
        """It is valid now, and will be for so many days."""
        return _lasts(self._certificate, self._world, days)

    def vouches_for(self, certificate: bytes, key: bytes, *, days: int) -> bool:
        """A certificate of ours with its own key, valid now and for so many days."""
        try:
            found = x509.load_pem_x509_certificate(certificate)
            secret = serialization.load_pem_private_key(key, password=None)
            found.verify_directly_issued_by(self._certificate)
        except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
            return False
        matches = secret.public_key() == found.public_key()
        return matches and _lasts(found, self._world, days)

    def issue(self, names: Sequence[str], ips: Sequence[str], *, days: int) -> tuple[bytes, bytes]:
        """A certificate for servers at `names` and `ips` (and clients), and its key, as PEM."""
        if not names and not ips:
            raise ValueError("a certificate needs a name or an address")
        key = ec.generate_private_key(ec.SECP256R1())
        places: list[x509.GeneralName] = [x509.DNSName(name) for name in names]
        places += [x509.IPAddress(ipaddress.ip_address(ip)) for ip in ips]
        certificate = (
            _builder(self._world, _named([*names, *ips][0]), days)
            .issuer_name(self._certificate.subject)
            .public_key(key.public_key())
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=False), critical=True)
            .add_extension(
                x509.ExtendedKeyUsage(
                    [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
                ),
                critical=False,
            )
            .add_extension(x509.SubjectAlternativeName(places), critical=False)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
            )
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                critical=False,
            )
            .sign(self._key, hashes.SHA256())
        )
        return certificate.public_bytes(serialization.Encoding.PEM), _key_pem(key)

    def store(self, directory: Path) -> None:
        """Into `directory`, which only its owner may enter."""
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        directory.chmod(0o700)
        write_private(directory / _KEY, _key_pem(self._key))
        write_private(directory / _CERTIFICATE, self.certificate_pem)

    @staticmethod
    def load(directory: Path, world: World) -> Authority:
        """The one stored there; FileNotFoundError where none is, ValueError for a broken one."""
        certificate = (directory / _CERTIFICATE).read_bytes()
        key = (directory / _KEY).read_bytes()
        try:
            return Authority.read(certificate, key, world)
        except ValueError as error:
            raise ValueError(f"{directory}: {error}") from error

    @staticmethod
    def read(certificate_pem: bytes, key_pem: bytes, world: World) -> Authority:
        """The one that these say; ValueError where they do not say one."""
        certificate = x509.load_pem_x509_certificate(certificate_pem)
        try:
            key = serialization.load_pem_private_key(key_pem, password=None)
        except (TypeError, UnsupportedAlgorithm) as error:
            raise ValueError(f"the authority's key cannot be read: {error}") from error
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise ValueError("the authority's key is no elliptic-curve key")
        if key.public_key() != certificate.public_key():
            raise ValueError("the authority's key is not the key of its certificate")
        return Authority(certificate, key, world)


def create_authority(world: World) -> Authority:
    """A new one that nobody trusts yet."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = _named("posse")
    certificate = (
        _builder(world, name, _AUTHORITY_DAYS)
        .issuer_name(name)
        .public_key(key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return Authority(certificate, key, world)


def write_private(path: Path, content: bytes) -> None:
    """Replaces the file in one step with one that only its owner can read."""
    fresh = path.with_name(f".{path.name}.new")
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


def _lasts(certificate: x509.Certificate, world: World, days: int) -> bool:
    now = datetime.fromtimestamp(int(world.now()), UTC)
    begins, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return begins <= now and now + timedelta(days=days) < ends


def _builder(world: World, subject: x509.Name, days: int) -> x509.CertificateBuilder:
    now = datetime.fromtimestamp(int(world.now()), UTC)
    serial = int.from_bytes(world.entropy(16), "big") >> 1 | 1
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .serial_number(serial)
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + timedelta(days=days))
    )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:64])])


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
