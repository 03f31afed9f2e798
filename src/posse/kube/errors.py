"""What can go wrong between a caller and an API server, as types.

The division that matters is whether there was an answer. An ApiError is the server's word: the
request was refused or failed, and the Status says how. Unreachable is silence: a write may have
happened, and only reading back can tell.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec


class KubeError(Exception):
    """Anything this package raises about a server; its text is one line for people."""


class ConfigError(Exception):
    """A configuration that cannot be used; the text is one line that says what to do."""


class NothingSelected(ConfigError):
    """No file says which cluster is meant; whoever is inside of one means that one."""


class SignInFailed(KubeError, ConfigError):
    """There is nothing to sign a request with, so it was not sent."""


class Unreachable(KubeError):
    """No answer: refused, reset, cut or timed out. The outcome of a write is unknown."""


class Undecodable(KubeError):
    """An answer that came and is not what it should be: broken JSON, or not of the asked model."""


class ApiError(KubeError):
    """A Status other than success."""

    def __init__(
        self,
        code: int,
        reason: str = "",
        message: str = "",
        details: Mapping[str, Any] | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message or f"the server answered {code} {reason}".rstrip())
        self.code = code
        self.reason = reason
        self.message = message or str(self)
        self.details: dict[str, Any] = dict(details or {})
        self.retry_after = retry_after


class BadRequest(ApiError):
    pass


class Unauthorized(ApiError):
    pass


class Forbidden(ApiError):
    @property
    def namespace_ending(self) -> bool:
        """Nothing is created there any more, and what is there will go: trying again is idle."""
        return _has_cause(self.details, "NamespaceTerminating")


class NotFound(ApiError):
    pass


class Conflict(ApiError):
    """409: the object has changed since it was read, or a precondition does not hold."""


class AlreadyExists(ApiError):
    """409 with reason AlreadyExists. Not a Conflict: reading again and retrying will not help."""


class Gone(ApiError):
    """410: the resourceVersion or continue token is too old; list again."""


class Invalid(ApiError):
    pass


class TooManyRequests(ApiError):
    """429: refused before it was executed."""


class ServerError(ApiError):
    """5xx: the server, or something in front of it, could not answer now."""

    @property
    def too_large_version(self) -> bool:
        """The server has not reached the resourceVersion asked for: it lags, or was restored."""
        if _has_cause(self.details, "ResourceVersionTooLarge"):
            return True
        return "too large resource version" in self.message.lower()


def _has_cause(details: Mapping[str, Any], reason: str) -> bool:
    causes = details.get("causes")
    return isinstance(causes, list) and any(
        isinstance(cause, dict) and cause.get("reason") == reason for cause in causes
    )


_BY_CODE: dict[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
    429: TooManyRequests,
}

_CODE_OF_REASON = {
    "BadRequest": 400,
    "Unauthorized": 401,
    "Forbidden": 403,
    "NotFound": 404,
    "AlreadyExists": 409,
    "Conflict": 409,
    "Gone": 410,
    "Expired": 410,
    "Invalid": 422,
    "TooManyRequests": 429,
    "ServiceUnavailable": 503,
    "Timeout": 504,
}


def from_status(
    status: Mapping[str, Any], *, code: int = 0, retry_after: float | None = None
) -> ApiError:
    """The error a Status document means. `code` is the HTTP status, for documents without one.

    The code decides; the reason only where a code has two meanings (409) or is missing.
    """
    reason = _text(status.get("reason"))
    said = status.get("code")
    if isinstance(said, int) and said >= 300:
        code = said
    code = code or _CODE_OF_REASON.get(reason, 500)
    found = status.get("details")
    details = found if isinstance(found, dict) else {}
    if retry_after is None:
        seconds = details.get("retryAfterSeconds")
        if isinstance(seconds, int) and seconds > 0:
            retry_after = float(seconds)
    kind = _BY_CODE.get(code, ServerError if code >= 500 else ApiError)
    if code == 409 and reason == "AlreadyExists":
        kind = AlreadyExists
    return kind(code, reason, _text(status.get("message")), details, retry_after)


def from_answer(code: int, headers: Mapping[str, str], body: bytes) -> ApiError:
    """The error of an HTTP answer, whether it carries a Status or a proxy's page of text."""
    retry_after = _seconds(headers.get("retry-after", ""))
    try:
        status = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        status = None
    if isinstance(status, dict) and status.get("kind") == "Status":
        return from_status(status, code=code, retry_after=retry_after)
    words = " ".join(body[:400].decode("utf-8", "replace").split())
    message = f"the server answered {code}" + (f": {words}" if words else "")
    return from_status({"code": code, "message": message}, retry_after=retry_after)


def _seconds(header: str) -> float | None:
    """Retry-After in seconds; its other form, a date, would need the server's clock."""
    return float(header) if header.isascii() and header.isdigit() else None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
