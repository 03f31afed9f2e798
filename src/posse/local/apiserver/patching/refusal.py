"""Why a patch is not applied."""

from __future__ import annotations


class PatchError(Exception):
    """The patch cannot be applied; `code`, `reason` and `message` are those of the Status."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message


def malformed(message: str) -> PatchError:
    return PatchError(400, "BadRequest", message)


def unprocessable(message: str) -> PatchError:
    """A well-formed patch that does not go with the object as it is."""
    said = f"the server rejected our request due to an error in our request: {message}"
    return PatchError(422, "Invalid", said)
