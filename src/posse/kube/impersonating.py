"""Acting as another user: what a kubeconfig asks for, and the headers that ask the server."""

from __future__ import annotations

import string

import msgspec

from posse.kube.errors import ConfigError
from posse.kube.kubeconfig import Entry

_LEGAL = frozenset((string.ascii_letters + string.digits + "!#$&'*+-.^_`|~").encode())


class Impersonation(msgspec.Struct, frozen=True, kw_only=True):
    user: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def headers(self) -> list[tuple[str, str]]:
        """A header stands once for each of its values."""
        pairs = [("Impersonate-User", self.user)]
        if self.uid:
            pairs.append(("Impersonate-Uid", self.uid))
        pairs += [("Impersonate-Group", group) for group in self.groups]
        for key, values in self.extra:
            pairs += [(f"Impersonate-Extra-{_escaped(key)}", value) for value in values]
        return pairs


def read_impersonation(user: Entry) -> Impersonation | None:
    """From the fields `as...` of a user; `act-as...` is how some programs write them."""
    prefix = "act-as" if any(field.startswith("act-as") for field in user.fields) else "as"
    name, uid = user.text(prefix), user.text(f"{prefix}-uid")
    groups = user.texts(f"{prefix}-groups")
    extra: list[tuple[str, tuple[str, ...]]] = []
    if (written := user.part(f"{prefix}-user-extra")) is not None:
        extra = [(key, written.texts(key)) for key in sorted(written.fields)]
    if not name:
        if uid or groups or extra:
            raise ConfigError(
                f"{user.file}: user {user.name!r} names groups, a uid or extra fields to act "
                f"with, but nobody to act as: {prefix!r} is missing"
            )
        return None
    asked = Impersonation(user=name, uid=uid, groups=groups, extra=tuple(extra))
    if not all(value.isprintable() for _, value in asked.headers()):
        raise ConfigError(f"{user.file}: what user {user.name!r} acts as must be printable text")
    return asked


def _escaped(key: str) -> str:
    """A key as part of a header's name: what may not stand there is percent-encoded."""
    return "".join(chr(byte) if byte in _LEGAL else f"%{byte:02X}" for byte in key.lower().encode())
