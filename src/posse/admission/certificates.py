"""The webhook's own authority and certificate, as one Secret holds them.

Trust comes before use: a new authority stands in the bundle beside those before it, and whoever
serves shows its certificate only after the API servers had time to hear of it.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Sequence

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from posse.admission.wire import Object
from posse.kube.certificates import Authority, create_authority
from posse.objects.raw import mapping, text
from posse.world import World

CERTIFICATE_DAYS = 90
RENEWED_BEFORE = 30
AUTHORITY_RENEWED_BEFORE = 365
"""Days. Whatever is renewed so early is renewed many times over before anybody misses it."""

_KEYS = ("ca.crt", "ca.key", "tls.crt", "tls.key", "bundle.crt")


class Holding(msgspec.Struct, frozen=True):
    """Everything in PEM. `bundle`: all authorities that are to be trusted, the newest first."""

    authority: bytes
    authority_key: bytes
    certificate: bytes
    key: bytes
    bundle: bytes

    def __repr__(self) -> str:
        return "Holding(...)"

    def data(self) -> dict[str, str]:
        """The `data` of the Secret."""
        parts = (self.authority, self.authority_key, self.certificate, self.key, self.bundle)
        return {
            name: base64.b64encode(part).decode() for name, part in zip(_KEYS, parts, strict=True)
        }


def held(secret: Object | None) -> Holding | None:
    """What a Secret holds; None where it holds nothing yet, or nothing that can be read."""
    data = mapping(secret, "data")
    parts: list[bytes] = []
    for name in _KEYS:
        try:
            parts.append(base64.b64decode(text(data, name), validate=True))
        except (binascii.Error, ValueError):
            return None
    return Holding(*parts) if all(parts) else None


def renewed(
    holding: Holding | None, names: Sequence[str], ips: Sequence[str], world: World
) -> Holding:
    """The same one where it will do for a while; else one in which what is old or broken is new."""
    authority = _authority(holding, world)
    bundle = b"" if holding is None else holding.bundle
    if authority is None or not authority.lasts(AUTHORITY_RENEWED_BEFORE):
        authority = create_authority(world)
    trusted = _joined([authority.certificate_pem], _still_valid(bundle, world))
    if (
        holding is not None
        and holding.authority == authority.certificate_pem
        and authority.vouches_for(holding.certificate, holding.key, days=RENEWED_BEFORE)
        and _is_for(holding.certificate, [*names, *ips])
    ):
        if trusted == bundle:
            return holding
        return msgspec.structs.replace(holding, bundle=trusted)
    certificate, key = authority.issue(names, ips, days=CERTIFICATE_DAYS)
    return Holding(authority.certificate_pem, authority.key_pem, certificate, key, trusted)


def _authority(holding: Holding | None, world: World) -> Authority | None:
    if holding is None:
        return None
    try:
        return Authority.read(holding.authority, holding.authority_key, world)
    except ValueError:
        return None


def _still_valid(bundle: bytes, world: World) -> list[bytes]:
    try:
        found = x509.load_pem_x509_certificates(bundle)
    except ValueError:
        return []
    now = world.now()
    return [
        certificate.public_bytes(Encoding.PEM)
        for certificate in found
        if certificate.not_valid_after_utc.timestamp() > now
    ]


def _joined(*groups: Iterable[bytes]) -> bytes:
    return b"".join(dict.fromkeys(one for group in groups for one in group))


def _is_for(certificate: bytes, places: Sequence[str]) -> bool:
    """Whether it names exactly these: the Service may have another name today."""
    found = x509.load_pem_x509_certificate(certificate)
    try:
        named = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return False
    return [str(place.value) for place in named] == list(places)
