"""What a request is signed with, and where that comes from.

A `SignIn` is asked before every request. What it gives may change between two of them: a file was
replaced, a plugin's token ran out. When the server refuses it all the same, the SignIn is asked
once for something else.
"""

from __future__ import annotations

import base64
import logging
import re
from pathlib import Path
from typing import Protocol

import msgspec

from posse.kube.config import Settings
from posse.kube.errors import ConfigError

_log = logging.getLogger(__name__)

_TOKEN = re.compile(r"[\x21-\x7e]+")


class KeyPair(msgspec.Struct, frozen=True):
    """A client certificate and its key, both PEM."""

    certificate: bytes
    key: bytes

    def __repr__(self) -> str:
        return "KeyPair(...)"


class Credentials(msgspec.Struct, frozen=True):
    authorization: str = ""
    pair: KeyPair | None = None

    def __repr__(self) -> str:
        return "Credentials(...)"


class SignIn(Protocol):
    async def current(self) -> Credentials:
        """What to sign the next request with; the same object as long as nothing has changed."""
        ...

    async def renewed(self, refused: Credentials) -> Credentials | None:
        """After a 401: something else to try, or None when there is nothing else."""
        ...

    async def close(self) -> None: ...


class StoredSignIn:
    """Credentials that lie in the settings, or in files which others replace as they expire.

    A file that cannot be read now leaves what it held before in force.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._token = _optional(settings.token_file)
        self._certificate = (
            None if settings.client_cert_data else _optional(settings.client_cert_file)
        )
        self._key = None if settings.client_key_data else _optional(settings.client_key_file)
        self._files = [f for f in (self._token, self._certificate, self._key) if f is not None]
        for file in self._files:
            try:
                file.read()
            except (OSError, ValueError) as error:
                if file is self._token and settings.token:
                    continue
                raise ConfigError(f"{file.path} cannot be read: {_why(error)}") from None
        self.known = self._combined()

    async def current(self) -> Credentials:
        return self._read(anew=False)

    async def renewed(self, refused: Credentials) -> Credentials | None:
        """A file may change without a trace in its date and size, so all are read again."""
        found = self._read(anew=True)
        return None if found == refused else found

    async def close(self) -> None:
        """There is nothing to close."""

    def _read(self, *, anew: bool) -> Credentials:
        changed = False
        for file in self._files:
            try:
                changed |= file.read(anew=anew)
                file.trouble = ""
            except (OSError, ValueError) as error:
                if file.trouble != _why(error):
                    file.trouble = _why(error)
                    _log.warning(
                        "%s cannot be read, using what it held before: %s", file.path, file.trouble
                    )
        if changed:
            try:
                self.known = self._combined()
            except ConfigError as error:
                _log.warning("%s; using what was there before", error)
        return self.known

    def _combined(self) -> Credentials:
        settings = self._settings
        certificate = settings.client_cert_data or _content(self._certificate)
        key = settings.client_key_data or _content(self._key)
        if (certificate is None) != (key is None):
            raise ConfigError("a client certificate and its key go together; one is missing")
        pair = None if certificate is None or key is None else KeyPair(certificate, key)
        return Credentials(self._authorization(), pair)

    def _authorization(self) -> str:
        settings = self._settings
        written = _content(self._token)
        if written is not None:
            return bearer(written.decode("ascii", "replace"), f"the token in {settings.token_file}")
        if settings.token:
            return bearer(settings.token, "the token")
        if settings.username or settings.password:
            both = f"{settings.username}:{settings.password}".encode()
            return "Basic " + base64.b64encode(both).decode("ascii")
        return ""


def bearer(token: str, what: str) -> str:
    """The header of a token; ConfigError, which does not show it, when it could not be sent."""
    token = token.strip()
    if not _TOKEN.fullmatch(token):
        raise ConfigError(f"{what} is empty or has characters that no token has")
    return f"Bearer {token}"


class _File:
    """A file's content, read again when the file is replaced."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.content: bytes | None = None
        self.trouble = ""  # what was said last, and need not be said at every request
        self._seen: tuple[int, int, int] | None = None

    def read(self, *, anew: bool = False) -> bool:
        """Whether the content is another one now."""
        state = self.path.stat()
        seen = (state.st_ino, state.st_mtime_ns, state.st_size)
        if seen == self._seen and not anew:
            return False
        before, self.content, self._seen = self.content, self._load(), seen
        return before != self.content

    def _load(self) -> bytes:
        content = self.path.read_bytes()
        if not content.strip():
            raise ValueError("it is empty")
        return content


def _optional(path: Path | None) -> _File | None:
    return None if path is None else _File(path)


def _content(file: _File | None) -> bytes | None:
    return None if file is None else file.content


def _why(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
