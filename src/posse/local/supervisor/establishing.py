"""What the services of a home read: options, identity, tokens, certificates.

Whatever is missing, damaged or about to expire is made anew, so that a home can be mended by
deleting what is broken in it. The store alone is never touched here.
"""

from __future__ import annotations

import logging
import shutil

from posse.kube.certificates import Authority, create_authority
from posse.local.supervisor.errors import ClusterError
from posse.local.supervisor.home import TOKENS, Home
from posse.local.supervisor.options import Options
from posse.world import World

log = logging.getLogger(__name__)

CERTIFICATE_DAYS = 3650
RENEWED_BEFORE = 30
"""Days: a cluster that starts with a certificate may well run for that long."""
NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")


def establish(home: Home, options: Options, world: World) -> None:
    """To be called under the command lock while nothing runs in the home."""
    try:
        shutil.rmtree(home.partial, ignore_errors=True)
        home.prepare()
        home.state.unlink(missing_ok=True)
        home.save(home.options, options)
        home.name(world)
        for user in TOKENS:
            home.secret(user, world)
        _certify(home, world)
    except OSError as error:
        raise ClusterError(f"cannot write to {home.path}: {error.strerror or error}") from error


def _certify(home: Home, world: World) -> None:
    authority = _authority(home, world)
    for service in ("apiserver", "node"):
        certificate, key = home.certificate(service), home.key(service)
        if (
            certificate.exists()
            and key.exists()
            and authority.vouches_for(
                certificate.read_bytes(), key.read_bytes(), days=RENEWED_BEFORE
            )
        ):
            continue
        issued = authority.issue(NAMES, ["127.0.0.1"], days=CERTIFICATE_DAYS)
        home.write(certificate, issued[0])
        home.write(key, issued[1])


def _authority(home: Home, world: World) -> Authority:
    try:
        authority = Authority.load(home.pki, world)
    except FileNotFoundError:
        authority = None
    except ValueError as error:
        log.warning("the certificate authority is made anew: %s", error)
        authority = None
    if authority is None or not authority.lasts(RENEWED_BEFORE):
        authority = create_authority(world)
        authority.store(home.pki)
    return authority
