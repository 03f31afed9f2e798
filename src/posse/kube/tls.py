"""Whom we trust and how we prove who we are, as TLS contexts.

A connection belongs to the context it was made with, so that a new client certificate is a new
context and new connections, while what is under way on the old ones may end.
"""

from __future__ import annotations

import logging
import os
import ssl
import tempfile
from pathlib import Path

from posse.kube.config import Settings
from posse.kube.credentials import KeyPair
from posse.kube.errors import ConfigError

_log = logging.getLogger(__name__)


class Contexts:
    """The context for the client certificate of the moment. ConfigError when none can be made."""

    def __init__(self, settings: Settings, pair: KeyPair | None) -> None:
        self._settings = settings
        self._pair = pair
        self._context = _context(settings, pair)

    def of(self, pair: KeyPair | None) -> ssl.SSLContext:
        """A pair that cannot be used, such as one half replaced, leaves the one before in force."""
        if pair != self._pair:
            try:
                self._context = _context(self._settings, pair)
            except ConfigError as error:
                if self._pair is None:
                    raise
                _log.warning("%s; using the one before", error)
            self._pair = pair
        return self._context


def _context(settings: Settings, pair: KeyPair | None) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(
            cafile=None if settings.ca_data or settings.ca_file is None else settings.ca_file,
            cadata=settings.ca_data.decode("ascii") if settings.ca_data else None,
        )
    except (OSError, ValueError) as error:
        where = "" if settings.ca_data or settings.ca_file is None else f" in {settings.ca_file}"
        why = (error.strerror if isinstance(error, OSError) else None) or error
        raise ConfigError(f"the certificate authority{where} cannot be used: {why}") from None
    # Newer Pythons ask of a private authority what Kubernetes' own tools do not put in.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if settings.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if pair is not None:
        try:
            load_pair(context, pair)
        except (OSError, ValueError) as error:
            raise ConfigError(f"the client certificate cannot be used: {error}") from None
    return context


def load_pair(context: ssl.SSLContext, pair: KeyPair) -> None:
    """What a context shows from now on; connections that are open keep what they were shown.

    ssl reads keys from files only, so the pair is in a file of ours for a moment.
    """
    handle, name = tempfile.mkstemp(prefix="posse-")  # readable by us alone
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(pair.certificate.rstrip() + b"\n" + pair.key)
        context.load_cert_chain(name, password=_no_password)
    finally:
        Path(name).unlink()


def _no_password() -> str:
    """Without it OpenSSL would ask on the terminal and wait."""
    raise ConfigError("the key is encrypted; give one that is not")
