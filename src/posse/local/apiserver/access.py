"""Who may ask at all: the right host, the right origin, a known token.

The server listens on loopback, where every web page the user opens can send requests: a page's
requests carry its Origin, and a name that was re-bound to loopback shows in Host.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from urllib.parse import urlsplit

from posse.local.apiserver import statuses
from posse.local.apiserver.requests import Request

_HOSTS = frozenset(
    (
        "localhost",
        "127.0.0.1",
        "[::1]",
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
    )
)


def check_source(request: Request) -> None:
    """Refuses requests that were meant for another host or come from another site."""
    host = request.headers.get("host")
    if host is not None and _name(host) not in _HOSTS:
        raise statuses.Refusal(403, "Forbidden", "the Host of the request is not this server")
    origin = request.headers.get("origin")
    if origin is not None and (host is None or urlsplit(origin).netloc.lower() != host.lower()):
        raise statuses.Refusal(403, "Forbidden", "requests of other origins are not allowed")


def _name(host: str) -> str:
    """The host without its port."""
    name, colon, port = host.lower().rpartition(":")
    if not colon or host.endswith("]"):
        return host.lower()
    return name if port.isascii() and port.isdigit() else host.lower()


class Tokens:
    def __init__(self, tokens: Mapping[str, str]) -> None:
        self._tokens = [(token.encode(), user) for token, user in tokens.items() if token]

    def user(self, request: Request) -> str:
        """Whose token the request carries; 401 if nobody's."""
        scheme, _, credentials = request.header("authorization").partition(" ")
        found = self.holder(credentials.strip())
        if scheme.lower() != "bearer" or not found:
            raise statuses.unauthorized()
        return found

    def holder(self, presented: str) -> str:
        """Whose token it is, "" if nobody's. Takes as long for a near miss."""
        found = ""
        for token, user in self._tokens:
            if hmac.compare_digest(token, presented.encode("utf-8", "surrogateescape")):
                found = user
        return found

    def names(self, user: str) -> bool:
        """Whether one of the tokens is this user's."""
        return any(user == known for _, known in self._tokens)
